//! The events of the rehearsal, and what must come of each.

use eastwest::testing::{RecordedAttempt, Reply};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::time::Duration;

/// One event, the order service's part in it, and what must come of it.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) body: &'static str,
    /// What Lambda leaves the function for it.
    pub(crate) time_left: Duration,
    /// How the order service's gateway answers, the last one for ever.
    pub(crate) script: Vec<Reply>,
    /// What each attempt must be answered with, in order.
    pub(crate) must_show: &'static [u16],
    pub(crate) must_be: u16,
    pub(crate) must_forbid_a_retry: bool,
    /// In what range `retry-after` must be, in seconds, if there must be one.
    pub(crate) must_come_back: Option<RangeInclusive<u64>>,
}

/// All rows, in order: they meet one sandbox, so breaker and retry budget remember.
pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row { script: vec![placed()], must_show: &[201], ..ends("an order from another service", 201) },
        Row {
            headers: &[("Accept", "*/*"), ("X-Note", "\u{fc}ber")],
            script: vec![Reply::integration_timeout(), placed()],
            must_show: &[504, 201],
            ..ends("an outsider's order, lost once", 201)
        },
        Row { headers: &[("X-Hop-Count", "8")], must_forbid_a_retry: true, ..ends("a loop", 508) },
        Row {
            headers: &[("X-Hop-Count", "7")],
            must_forbid_a_retry: true,
            ..ends("the last of a chain", 508)
        },
        Row { body: "one of each", ..ends("not an order", 400) },
        Row {
            time_left: Duration::from_secs(3),
            script: vec![Reply::throttled().header("retry-after", "3")],
            must_show: &[429],
            must_forbid_a_retry: true,
            must_come_back: Some(3..=3),
            ..ends("a wait longer than Lambda's", 503)
        },
        Row {
            time_left: Duration::from_millis(120),
            must_forbid_a_retry: true,
            ..ends("next to no time left", 504)
        },
        Row {
            script: vec![Reply::lambda_failed()],
            must_show: &[502, 502],
            must_forbid_a_retry: true,
            ..ends("the callee fails, and again", 502)
        },
        Row {
            script: vec![Reply::json(503, "{}").header("x-should-retry", "false")],
            must_show: &[503],
            must_forbid_a_retry: true,
            ..ends("the callee says: not again", 502)
        },
        Row {
            script: vec![Reply::unavailable()],
            must_show: &[503],
            must_forbid_a_retry: true,
            ..ends("an outage, no retry token left", 502)
        },
        Row {
            script: vec![Reply::unavailable()],
            must_show: &[503],
            must_forbid_a_retry: true,
            must_come_back: Some(1..=3),
            ..ends("an outage, the breaker opens", 502)
        },
        Row {
            script: vec![Reply::unavailable()],
            must_come_back: Some(1..=3),
            ..ends("an outage, the fallback", 202)
        },
    ]
}

/// A row of a service's order that no call must come of.
fn ends(name: &'static str, must_be: u16) -> Row {
    Row {
        name,
        headers: FROM_A_SERVICE,
        body: r#"{"sku":"A-7","quantity":3}"#,
        time_left: Duration::from_secs(29),
        script: vec![placed()],
        must_show: &[],
        must_be,
        must_forbid_a_retry: false,
        must_come_back: None,
    }
}

fn placed() -> Reply {
    Reply::json(201, r#"{"id":"o-1"}"#)
}

impl Row {
    /// Makes the row a plain order to which the order service says 400 without end.
    pub(crate) fn turn(&mut self) {
        let plain = ends("", 0);
        self.headers = plain.headers;
        self.body = plain.body;
        self.time_left = plain.time_left;
        self.script = vec![Reply::json(400, "{}")];
    }

    /// The event as a REST API hands it over.
    pub(crate) fn event(&self) -> Value {
        let single: serde_json::Map<_, _> = self.pairs().map(|(name, value)| (name, json!(value))).collect();
        let multi: serde_json::Map<_, _> = self.pairs().map(|(name, value)| (name, json!([value]))).collect();
        json!({
            "resource": "/orders",
            "path": "/orders",
            "httpMethod": "POST",
            "headers": single,
            "multiValueHeaders": multi,
            "queryStringParameters": null,
            "requestContext": {"stage": "prod", "httpMethod": "POST"},
            "body": self.body,
            "isBase64Encoded": false,
        })
    }

    /// Whether the order service saw what it must: every call signed, at the next hop, of one id and key, and in time.
    pub(crate) fn saw_as_ruled(&self, calls: &[RecordedAttempt]) -> bool {
        let shown: Vec<_> = calls.iter().map(|call| call.status().unwrap_or(0)).collect();
        let hop = 1 + self.header("X-Hop-Count").and_then(number).unwrap_or(0);
        let longest = self.time_left.saturating_sub(RESERVE).as_millis();
        let in_time = |ms: u64| u128::from(ms) <= longest;
        let all_of_one = |name: &str| {
            let first = calls.first().and_then(|call| call.header(name));
            let wanted = self.header(name).or(first);
            calls.iter().all(|call| wanted.is_some() && call.header(name) == wanted)
        };
        shown == self.must_show
            && all_of_one("X-Correlation-Id")
            && all_of_one("X-Idempotency-Key")
            && calls.iter().all(|call| {
                let told = |name| call.header(name).and_then(number);
                call.signature_valid()
                    && told("X-Hop-Count") == Some(hop)
                    && told("X-Time-Budget-Ms").is_some_and(in_time)
            })
    }

    /// Whether the function's reply is what it must be.
    pub(crate) fn replied_as_ruled(&self, reply: &Value) -> bool {
        let told = |pointer| reply.pointer(pointer).and_then(Value::as_str);
        let come_back = told("/headers/retry-after").and_then(number);
        reply.pointer("/statusCode") == Some(&json!(self.must_be))
            && (told("/headers/x-should-retry") == Some("false")) == self.must_forbid_a_retry
            && match (&self.must_come_back, come_back) {
                (Some(range), Some(seconds)) => range.contains(&seconds),
                (None, None) => true,
                _ => false,
            }
    }

    fn pairs(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.headers.iter().map(|(name, value)| ((*name).to_owned(), *value))
    }

    fn header(&self, wanted: &str) -> Option<&'static str> {
        let found = self.headers.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| *value)
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// What another service's client sends along.
const FROM_A_SERVICE: &[(&str, &str)] = &[
    ("X-Hop-Count", "2"),
    ("X-Correlation-Id", "order-4711"),
    ("X-Idempotency-Key", "the-key-of-order-4711"),
];

/// What the client keeps of Lambda's deadline by default.
const RESERVE: Duration = Duration::from_millis(100);
