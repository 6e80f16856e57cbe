//! The answer that a callee gives where a call of its own has failed.

use crate::callee::answer::Answer;
use crate::error::Error;
use crate::error_kind::ErrorKind;
use bytes::Bytes;
use http::{Response, StatusCode};

/// The answer to one's own caller.
impl Error {
    /// The answer to return where this call was made to serve a request, and its failure is that request's too.
    ///
    /// The layer that made the call has sent it as often as made sense, so the answer tells the layers above not to:
    /// `x-should-retry: false` is always there. Three attempts at each of three layers would be 27.
    ///
    /// | status | kinds |
    /// |---|---|
    /// | 508 | `HopLimit` |
    /// | 503 | `CircuitOpen`, `Quota`, `RateLimited`, `Throttled` |
    /// | 504 | `Timeout`: the callee's, the gateway's, or the time of this call was spent |
    /// | 502 | `Configuration`, `Credentials`, `Decode`, `Forbidden`, `InProgress`, `Rejected`, `Route`, `Signature`, `TooLarge`, `Transport`, `Unauthorized`, `Unavailable` |
    ///
    /// `retry-after`, in whole seconds and rounded up, is there where [`retry_after`](Error::retry_after) is known.
    /// The body is JSON: `type`, the name of the [`kind`](Error::kind); a `message` of this crate's own; and
    /// `correlation_id`, if the call had one. Nothing that the callee wrote is repeated, for it was not written to be read
    /// by this function's callers. A refusal that *is* about their request, say an order without a line, is
    /// for the function to recognise and to answer with a 4xx of its own.
    ///
    /// Return it, never throw it: what a Lambda handler throws, the gateway turns into a bare 502 without headers.
    ///
    /// ```
    /// use eastwest::{CallContext, ServiceClient};
    /// use eastwest::testing::{FakeGateway, Reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let gateway = FakeGateway::builder()
    /// #     .credentials("AKIDEXAMPLE", "secret", None)
    /// #     .region("eu-central-1")
    /// #     .route("POST", "/orders", [Reply::quota_exceeded()])
    /// #     .start()
    /// #     .await?;
    /// # let orders = ServiceClient::builder(gateway.base_url())
    /// #     .region("eu-central-1")
    /// #     .static_credentials("AKIDEXAMPLE", "secret", None)
    /// #     .build()?;
    /// let context = CallContext::root().with_correlation_id("order-4711")?;
    /// let failure = orders.post(&context, "/orders").json(&["A-7"]).send().await.err().ok_or("it fails")?;
    ///
    /// let answer = failure.to_response();
    /// assert_eq!(answer.status(), 503);
    /// assert_eq!(answer.headers()["x-should-retry"], "false");
    /// let body: serde_json::Value = serde_json::from_slice(answer.body())?;
    /// assert_eq!(body["type"], "Quota");
    /// assert_eq!(body["correlation_id"], "order-4711");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        self.told().to_response()
    }

    /// The same answer as a Lambda proxy integration wants it: `statusCode`, `headers`, `body` as text and
    /// `isBase64Encoded`. Both payload formats take it (API Gateway Developer Guide, *Lambda proxy integrations in API
    /// Gateway* and *Create AWS Lambda proxy integrations for HTTP APIs*).
    ///
    /// ```
    /// use eastwest::ServiceClient;
    ///
    /// let failure = ServiceClient::builder("ftp://example.com").build().err().ok_or("it is no URL of a gateway")?;
    /// let reply = failure.to_proxy_reply();
    /// assert_eq!(reply["statusCode"], 502);
    /// assert_eq!(reply["headers"]["x-should-retry"], "false");
    /// assert_eq!(reply["isBase64Encoded"], false);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn to_proxy_reply(&self) -> serde_json::Value {
        self.told().to_proxy_reply()
    }

    fn told(&self) -> Answer<'_> {
        let (status, r#type, message) = row(self.kind());
        Answer {
            status,
            r#type,
            message,
            correlation_id: self.correlation_id(),
            retry_after: self.retry_after(),
        }
    }
}

/// The table: status, `type` and `message` of a kind.
fn row(kind: ErrorKind) -> (StatusCode, &'static str, &'static str) {
    let bad_gateway = StatusCode::BAD_GATEWAY;
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match kind {
        ErrorKind::CircuitOpen => {
            (unavailable, "CircuitOpen", "a service that is needed is taken to be down and was not called")
        }
        ErrorKind::Configuration => {
            (bad_gateway, "Configuration", "a call to a service that is needed is not set up as it must be")
        }
        ErrorKind::Credentials => {
            (bad_gateway, "Credentials", "there are no credentials for a service that is needed")
        }
        ErrorKind::Decode => {
            (bad_gateway, "Decode", "a service that is needed answered what was not asked for")
        }
        ErrorKind::Forbidden => {
            (bad_gateway, "Forbidden", "a service that is needed may not be called from here")
        }
        ErrorKind::HopLimit => {
            (StatusCode::LOOP_DETECTED, "HopLimit", "the chain of calls is too long and taken to be a loop")
        }
        ErrorKind::InProgress => {
            (bad_gateway, "InProgress", "a service that is needed is still at work on this very request")
        }
        ErrorKind::Quota => (unavailable, "Quota", "the quota for a service that is needed is used up"),
        ErrorKind::RateLimited => {
            (unavailable, "RateLimited", "too many calls are made from here to a service that is needed")
        }
        ErrorKind::Rejected => {
            (bad_gateway, "Rejected", "a service that is needed did not take what it was sent")
        }
        ErrorKind::Route => {
            (bad_gateway, "Route", "a service that is needed was called by a path that it has not")
        }
        ErrorKind::Signature => {
            (bad_gateway, "Signature", "a signature for a service that is needed did not stand")
        }
        ErrorKind::Throttled => (unavailable, "Throttled", "a service that is needed is called too often"),
        ErrorKind::Timeout => {
            (StatusCode::GATEWAY_TIMEOUT, "Timeout", "a service that is needed did not answer in time")
        }
        ErrorKind::TooLarge => {
            (bad_gateway, "TooLarge", "a request to a service that is needed, or its answer, is too large")
        }
        ErrorKind::Transport => (bad_gateway, "Transport", "a service that is needed could not be reached"),
        ErrorKind::Unauthorized => {
            (bad_gateway, "Unauthorized", "a service that is needed did not accept who is calling")
        }
        ErrorKind::Unavailable => (bad_gateway, "Unavailable", "a service that is needed has failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::CallContext;
    use crate::edge::base_url::BaseUrl;
    use crate::policy::classify::Class;
    use crate::story::{Story, Subject};
    use http::Method;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    /// Every kind there is, by name. Those that no class ends in are listed; that none is missing is what `row`'s match and
    /// the number below hold.
    fn kinds() -> BTreeMap<String, ErrorKind> {
        let others =
            [ErrorKind::CircuitOpen, ErrorKind::Configuration, ErrorKind::Decode, ErrorKind::RateLimited];
        let of_classes = Class::ALL.iter().copied().map(ErrorKind::of_class);
        of_classes.chain(others).map(|kind| (format!("{kind:?}"), kind)).collect()
    }

    fn failed(kind: ErrorKind) -> Error {
        let mut error = Error::of(kind, None, "the callee says: secret-of-the-callee".to_owned());
        let base = BaseUrl::parse("https://api.example.test", false).unwrap();
        let subject = Subject {
            method: Method::POST,
            target: base.target(&"/orders".into(), &[]).unwrap(),
            url_template: None,
            context: CallContext::root().with_correlation_id("order-1").unwrap(),
            idempotency_key: None,
        };
        error.inner_mut().story = Some(Story::of(Arc::new(subject)));
        error
    }

    /// The rows of the table in the documentation of `to_response`.
    fn documented() -> BTreeMap<String, u16> {
        let rows = include_str!("reply.rs").lines().filter_map(|line| line.trim().strip_prefix("/// | "));
        let rows = rows.filter_map(|row| row.split_once(" | "));
        let rows = rows.filter_map(|(status, kinds)| Some((status.parse().ok()?, kinds)));
        rows.flat_map(|(status, kinds)| {
            kinds.split('`').skip(1).step_by(2).map(move |kind| (kind.to_owned(), status))
        })
        .collect()
    }

    #[test]
    fn every_kind_is_answered_as_the_table_says_and_never_to_be_sent_again() {
        let answered: BTreeMap<String, u16> = kinds()
            .into_iter()
            .map(|(name, kind)| {
                let answer = failed(kind).to_response();
                assert_eq!(answer.headers()["x-should-retry"], "false", "{name}");
                assert_eq!(answer.headers()["content-type"], "application/json", "{name}");
                let body: Value = serde_json::from_slice(answer.body()).unwrap();
                assert_eq!((&body["type"], &body["correlation_id"]), (&json!(name), &json!("order-1")));
                assert!(body["message"].as_str().unwrap().len() > 20 && !body.to_string().contains("secret"));
                (name, answer.status().as_u16())
            })
            .collect();
        assert_eq!((answered.len(), &answered), (18, &documented()));
    }

    #[test]
    fn a_proxy_reply_is_the_same_answer() {
        for kind in kinds().into_values() {
            let mut error = failed(kind);
            error.inner_mut().retry_after = Some(Duration::from_millis(1_200));
            let (answer, reply) = (error.to_response(), error.to_proxy_reply());
            assert_eq!(reply["statusCode"], answer.status().as_u16());
            assert_eq!(reply["body"].as_str().unwrap().as_bytes(), answer.body());
            assert_eq!(reply["isBase64Encoded"], false);
            let headers =
                json!({"content-type": "application/json", "x-should-retry": "false", "retry-after": "2"});
            assert_eq!(reply["headers"], headers);
            assert_eq!(answer.headers().len(), 3);
        }
    }

    #[test]
    fn when_to_come_back_is_told_where_it_is_known_and_only_there() {
        let mut error = failed(ErrorKind::CircuitOpen);
        assert!(!error.to_response().headers().contains_key("retry-after"));
        error.inner_mut().retry_after = Some(Duration::from_millis(2_001));
        assert_eq!(error.to_response().headers()["retry-after"], "3");
    }

    #[test]
    fn a_failure_before_any_call_has_no_correlation_id_to_tell() {
        let reply = Error::configuration("region", "is missing").to_proxy_reply();
        let body: Value = serde_json::from_str(reply["body"].as_str().unwrap()).unwrap();
        assert_eq!((body.get("correlation_id"), &body["type"]), (None, &json!("Configuration")));
    }
}
