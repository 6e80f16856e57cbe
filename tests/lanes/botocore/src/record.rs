//! What arrived, as one line of JSON.

use crate::case::Case;
use eastwest::testing::RecordedAttempt;
use serde_json::{Value, json};
use std::time::SystemTime;

/// The raw bytes of a request, each as the character of its number, and what is needed to sign it once more.
pub(crate) fn line(number: usize, case: &Case, arrived: &RecordedAttempt) -> Value {
    let request = arrived.request();
    let headers: Vec<String> = request.header_lines().map(bytes_as_text).collect();
    let at = case.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    json!({
        "number": number,
        "service": case.service.name(),
        "region": case.region,
        "at": at.as_secs(),
        "access_key_id": case.credentials.id,
        "secret_access_key": case.credentials.secret,
        "session_token": case.credentials.token,
        "method": request.method(),
        "target": bytes_as_text(request.target()),
        "headers": headers,
        "body": bytes_as_text(request.body()),
        "canonical_request": String::from_utf8_lossy(arrived.verification().canonical_request()),
        "meant": {
            "method": case.method.as_str(),
            "segments": case.path.segments,
            "query": case.query,
            "idempotency_header": case.idempotency_header.to_ascii_lowercase(),
        },
    })
}

fn bytes_as_text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
