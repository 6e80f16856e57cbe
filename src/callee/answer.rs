//! The answer of a guard or of a failed call: JSON that forbids a retry, as HTTP and as a Lambda proxy integration's.

use crate::context::headers::SHOULD_RETRY;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;

/// What is told of a request that was not, or not wholly, worked on. Nothing in it is another's text.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Answer<'a> {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    pub(crate) r#type: &'static str,
    pub(crate) message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<&'a str>,
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

impl Answer<'_> {
    /// Text rather than bytes: of it every kind of body can be made, `lambda_http`'s too.
    pub(crate) fn to_response<B: From<String>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(self.body()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers();
        response
    }

    pub(crate) fn to_proxy_reply(&self) -> Value {
        let headers = self.headers();
        // All values are ASCII.
        let headers: serde_json::Map<_, _> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap_or_default())))
            .collect();
        json!({
            "statusCode": self.status.as_u16(),
            "headers": headers,
            "body": self.body(),
            "isBase64Encoded": false,
        })
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        headers
    }

    fn body(&self) -> String {
        // Three strings always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Rounded up, as who comes early is refused again (RFC 9110, section 10.2.3: whole seconds).
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds_and_never_shortened() {
        let table = [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (2_500, 3)];
        for (millis, seconds) in table {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
        assert_eq!(whole_seconds(Duration::from_nanos(1)), 1);
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
    }
}
