//! SigV4 as one writes it by hand with `aws-sigv4`, and the credentials that all contenders sign with.

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningInstructions, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;
use http::{HeaderMap, HeaderValue};
use std::time::SystemTime;

/// Signs a request and says which headers make it so.
pub(crate) fn instructions(
    identity: &Identity,
    url: &str,
    headers: &HeaderMap,
    body: SignableBody<'_>,
    at: SystemTime,
) -> Result<SigningInstructions, BoxError> {
    let params = v4::SigningParams::builder()
        .identity(identity)
        .region(REGION)
        .name("execute-api")
        .time(at)
        .settings(SigningSettings::default())
        .build()?
        .into();
    let mut texts = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        texts.push((name.as_str(), value.to_str()?));
    }
    let request = SignableRequest::new("POST", url, texts.into_iter(), body)?;
    let (instructions, _) = sign(request, &params)?.into_parts();
    Ok(instructions)
}

/// Adds the headers of a signature to those that were signed.
pub(crate) fn apply(instructions: SigningInstructions, headers: &mut HeaderMap) -> Result<(), BoxError> {
    for header in instructions.into_parts().0 {
        let mut value = HeaderValue::from_str(header.value())?;
        value.set_sensitive(header.sensitive());
        headers.insert(header.name(), value);
    }
    Ok(())
}

/// Credentials with a session token of the length that a Lambda's role has.
pub(crate) fn credentials() -> Credentials {
    let token = "IQoJb3JpZ2luX2VjE0P/".repeat(TOKEN / 20);
    Credentials::new(KEY_ID, SECRET, Some(token), None, "bench")
}

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) const REGION: &str = "eu-central-1";
const KEY_ID: &str = "ASIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const TOKEN: usize = 800;
