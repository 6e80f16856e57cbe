//! JSON that is not what was asked for.

use serde_json::error::Category;

/// Where and how a body stops being the JSON that was asked for.
///
/// It tells what the caller's own type wants (`missing field`, `expected`), and quotes nothing of the body.
#[derive(Debug, thiserror::Error)]
#[error("{what} (line {line}, column {column})")]
pub(crate) struct NotThisJson {
    what: String,
    line: usize,
    column: usize,
}

impl From<&serde_json::Error> for NotThisJson {
    fn from(cause: &serde_json::Error) -> NotThisJson {
        let what = match cause.classify() {
            Category::Data => wanted(&cause.to_string()),
            Category::Eof => "the JSON ends early".to_owned(),
            Category::Io => "unreadable".to_owned(),
            Category::Syntax => "not JSON".to_owned(),
        };
        NotThisJson { what, line: cause.line(), column: cause.column() }
    }
}

/// The part of a parser's message that is about the type and not about the text.
fn wanted(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(told, _)| told);
    if message.starts_with("missing field `") {
        return message.to_owned();
    }
    // What comes last was written by the type; what stands before it may be a value with the same words in it.
    match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("something else than {expected}"),
        None => "JSON of another shape".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[allow(dead_code, reason = "only read from JSON")]
        id: u32,
    }

    fn told(body: &str) -> String {
        NotThisJson::from(&serde_json::from_str::<Order>(body).unwrap_err()).to_string()
    }

    #[test]
    fn what_is_missing_or_expected_is_named_and_what_was_sent_is_not() {
        assert_eq!(told("{}"), "missing field `id` (line 1, column 2)");
        assert_eq!(told(r#"{"id":"hush"}"#), "something else than u32 (line 1, column 12)");
        assert_eq!(told(r#"{"hush":1}"#), "something else than `id` (line 1, column 7)");
        assert_eq!(told("<html>"), "not JSON (line 1, column 1)");
        assert_eq!(told(r#"{"id":"#), "the JSON ends early (line 1, column 6)");
        for hostile in [r#"{"id":"x, expected hush"}"#, r#"{"a, expected hush":1}"#] {
            assert!(!told(hostile).contains("hush"), "{}", told(hostile));
        }
    }
}
