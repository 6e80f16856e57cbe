//! A policy document: its JSON, and how many characters of it count.

use crate::iam::error::IamError;
use crate::iam::route::Route;
use serde::Serialize;
use std::fmt;

/// One policy document. It displays as its JSON, without white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub(super) json: String,
    pub(super) free: usize,
    pub(super) resources: Vec<String>,
    pub(super) routes: Vec<Route>,
}

impl Document {
    /// The JSON, without white space.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// How many characters it has. Printed with indents it has more, which only the walls of the endpoint and of the
    /// resource policy take for characters.
    #[must_use]
    pub fn characters(&self) -> usize {
        characters(&self.json)
    }

    /// How many characters its wall still leaves it.
    #[must_use]
    pub fn free_characters(&self) -> usize {
        self.free
    }

    /// The resources it grants, sorted.
    #[must_use]
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// The routes it grants, in the order of their resources.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

/// Counts the characters of a policy as IAM does: without white space (*IAM and AWS STS quotas*).
///
/// White space inside of a string is counted here, because the page does not say that it is not; a figure that is too
/// high harms less on the day of a deploy. Use it for the documents that a role has already.
///
/// ```
/// assert_eq!(eastwest::iam::characters("{\n  \"Sid\": \"a b\"\n}"), 13);
/// ```
#[must_use]
pub fn characters(json: &str) -> usize {
    let (mut count, mut in_string, mut escaped) = (0_usize, false, false);
    for letter in json.chars() {
        if in_string || !letter.is_ascii_whitespace() {
            count = count.saturating_add(1);
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    count
}

/// Writes a document that allows to invoke these resources.
pub(super) fn json(principals: Option<&[&str]>, resources: &[&str]) -> Result<String, IamError> {
    let principal = principals.map(|principals| match principals {
        ["*"] => Principal::Anyone("*"),
        principals => Principal::Some { aws: principals },
    });
    let statement =
        Statement { effect: "Allow", principal, action: "execute-api:Invoke", resource: resources };
    // With this version, `${*}` is a character; without one, it would be taken by the letter.
    let policy = Policy { version: "2012-10-17", statement: [statement] };
    serde_json::to_string(&policy)
        .map_err(|_| IamError::invalid("routes", "", "they cannot be written as JSON"))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Policy<'a> {
    version: &'static str,
    statement: [Statement<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Statement<'a> {
    effect: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Principal<'a>>,
    action: &'static str,
    resource: &'a [&'a str],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Principal<'a> {
    Anyone(&'static str),
    Some {
        #[serde(rename = "AWS")]
        aws: &'a [&'a str],
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_outside_of_strings_is_not_counted_and_inside_of_them_it_is() {
        for (text, count) in [
            ("", 0),
            (" \t\r\n", 0),
            (r#"{ "a" : [ 1 ] }"#, 9),
            (r#"{ "a b" : 1 }"#, 9),
            (r#"{ "a\" b" : 1 }"#, 11),
            (r#"{ "a\\" : 1 }"#, 9),
            ("\"é\"", 3),
        ] {
            assert_eq!(characters(text), count, "{text}");
        }
    }
}
