//! Credentials from the environment, for builds without the AWS chain; a Lambda function needs no more.

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, future};

/// Provides what `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if it is set, `AWS_SESSION_TOKEN` hold.
///
/// White space around a value is dropped; a blank value counts as none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnvironmentCredentials;

/// A variable that has to be set is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not set")]
pub(crate) struct MissingVariable(&'static str);

impl ProvideCredentials for EnvironmentCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(read(|name| std::env::var(name).ok()))
    }
}

fn read(variable: impl Fn(&str) -> Option<String>) -> provider::Result {
    let filled = |name: &str| {
        let value = variable(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let needed = |name| filled(name).ok_or_else(|| CredentialsError::not_loaded(MissingVariable(name)));
    Ok(Credentials::new(
        needed("AWS_ACCESS_KEY_ID")?,
        needed("AWS_SECRET_ACCESS_KEY")?,
        filled("AWS_SESSION_TOKEN"),
        None,
        "Environment",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::peer::in_own_process;
    use std::error::Error;

    fn from(variables: &[(&str, &str)]) -> provider::Result {
        read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn the_three_variables_become_credentials_that_do_not_expire() {
        let found = from(&[
            ("AWS_ACCESS_KEY_ID", "AKID\n"),
            ("AWS_SECRET_ACCESS_KEY", " secret "),
            ("AWS_SESSION_TOKEN", "token"),
        ])
        .unwrap();
        assert_eq!((found.access_key_id(), found.secret_access_key()), ("AKID", "secret"));
        assert_eq!((found.session_token(), found.expiry()), (Some("token"), None));
    }

    #[test]
    fn a_blank_session_token_is_none() {
        let found = from(&[
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_SESSION_TOKEN", " "),
        ]);
        assert_eq!(found.unwrap().session_token(), None);
    }

    #[test]
    fn a_missing_variable_is_named() {
        let missing = |variables: &[(&str, &str)]| {
            let error = from(variables).unwrap_err();
            error.source().unwrap().to_string()
        };
        assert_eq!(missing(&[]), "AWS_ACCESS_KEY_ID is not set");
        assert_eq!(missing(&[("AWS_ACCESS_KEY_ID", "  ")]), "AWS_ACCESS_KEY_ID is not set");
        assert_eq!(missing(&[("AWS_ACCESS_KEY_ID", "a")]), "AWS_SECRET_ACCESS_KEY is not set");
    }

    const NAMES: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
    const ID: &str = "AKIDOFTHISPROCESS";

    #[tokio::test]
    #[ignore = "run by a test below, in a process with credentials in its environment"]
    async fn they_are_found() {
        if std::env::var(NAMES[0]).is_ok_and(|id| id == ID) {
            let found = EnvironmentCredentials.provide_credentials().await.unwrap();
            let found = [found.access_key_id(), found.secret_access_key(), found.session_token().unwrap()];
            assert_eq!(found, [ID, "its-secret", "its-token"]);
        }
    }

    #[tokio::test]
    async fn what_the_process_was_given_is_what_is_provided() {
        let given: Vec<_> = NAMES.into_iter().zip([ID, "its-secret", "its-token"]).collect();
        assert!(in_own_process(&format!("{}::they_are_found", module_path!()), &given).await);
        let swapped: Vec<_> = NAMES.into_iter().zip([ID, "its-token", "its-secret"]).collect();
        assert!(!in_own_process(&format!("{}::they_are_found", module_path!()), &swapped).await);
    }
}
