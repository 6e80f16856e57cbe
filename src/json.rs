//! JSON that is not what was asked for.

/// Where a body stops being the JSON that was asked for. It quotes nothing of the body.
#[derive(Debug, thiserror::Error)]
#[error("{category} at line {line}, column {column}")]
pub(crate) struct NotThisJson {
    category: &'static str,
    line: usize,
    column: usize,
}

impl From<&serde_json::Error> for NotThisJson {
    fn from(cause: &serde_json::Error) -> NotThisJson {
        let category = match cause.classify() {
            serde_json::error::Category::Data => "JSON of another shape",
            serde_json::error::Category::Eof => "the JSON ends early",
            serde_json::error::Category::Io => "unreadable",
            serde_json::error::Category::Syntax => "not JSON",
        };
        NotThisJson { category, line: cause.line(), column: cause.column() }
    }
}
