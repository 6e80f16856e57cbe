//! The record of one call that was given up.

use crate::dead_letter::base64;
use crate::dead_letter::headers::{self, Sorted};
use crate::dead_letter::millis;
use crate::error::Error;
use crate::policy::classify::Class;
use crate::story::Attempt;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::SystemTime;

/// The record of a call that was given up: all that sending it again needs, and what became of it.
///
/// It is plain data, written and read with serde; fields that this version does not know are passed over. It holds the
/// body, the query and the caller's own headers as they were, but no credential, no signature, no user token, and no
/// header that looks like a secret: those are named in `withheld_headers`. `Debug` shows neither body, query, header values
/// nor the callee's message. What a letter is stored in needs the protection that the body needs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The version of this record, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Names the letter. A replay that fails gives a letter of the same id, which takes the place of this one.
    pub id: String,
    /// When the call was given up, by the caller's wall clock; of a replay, when the call was given up at first.
    #[serde(rename = "created_at_ms", with = "millis")]
    pub created_at: SystemTime,
    /// The base URL of the client. Only a client of the same one replays the letter.
    pub base_url: String,
    /// The API behind an interface endpoint's own name (`x-apigw-api-id`), where that is how the callee is reached.
    #[serde(default)]
    pub api_id: Option<String>,
    /// The method.
    pub method: String,
    /// The path below the base URL, percent-encoded.
    pub path: String,
    /// The query without its question mark, percent-encoded; empty if there is none. It is kept whole: secrets belong
    /// into no URL.
    #[serde(default)]
    pub query: String,
    /// The caller's own headers and the trace's, in order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The names of the caller's headers that were left out because they look like secrets, or are no plain text. A
    /// replay that needs them has to be given them again.
    #[serde(default)]
    pub withheld_headers: Vec<String>,
    /// The body's type.
    #[serde(default)]
    pub content_type: Option<String>,
    /// The body, in the record as base64 (RFC 4648, section 4).
    #[serde(default, with = "base64")]
    pub body: Bytes,
    /// The idempotency key, which a replay sends again.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Whether the callee recognises a repeat by a reference of its own in the request.
    #[serde(default)]
    pub repeat_safe_by_reference: bool,
    /// The correlation id.
    pub correlation_id: String,
    /// The hop count that the call carried, or would have carried.
    pub hop: u8,
    /// The last answer's status.
    #[serde(default)]
    pub status: Option<u16>,
    /// The gateway's own name for the failure.
    #[serde(default)]
    pub gateway_error: Option<String>,
    /// The callee's own code.
    #[serde(default)]
    pub code: Option<String>,
    /// The message of gateway or callee, at most 512 characters; untrusted all the same.
    #[serde(default)]
    pub message: Option<String>,
    /// The [`ErrorKind`](crate::ErrorKind), by its variant's name.
    #[serde(default)]
    pub kind: String,
    /// The [`StopReason`](crate::StopReason), by its variant's name.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// How many attempts were made.
    #[serde(default)]
    pub attempts: u32,
    /// When the key was first sent, by the caller's wall clock; none if nothing ever was.
    #[serde(default, rename = "first_attempt_at_ms", with = "millis::option")]
    pub first_attempt_at: Option<SystemTime>,
    /// When the last attempt was sent.
    #[serde(default, rename = "last_attempt_at_ms", with = "millis::option")]
    pub last_attempt_at: Option<SystemTime>,
    /// Whether the callee may have done the work.
    pub may_have_committed: bool,
}

/// The version of the record that this crate writes, and the only one that it replays.
pub const SCHEMA_VERSION: u32 = 1;

impl DeadLetter {
    fn of(error: &Error) -> Option<DeadLetter> {
        // What is wrong with a setting stays wrong on every replay.
        let intent = error.intent().filter(|_| error.field().is_none())?;
        let origin = intent.origin.as_ref();
        let Sorted { kept: headers, withheld, secrets } = headers::sorted_out(&intent.headers);
        let mut withheld_headers = withheld;
        withheld_headers.extend(intent.withheld.iter().cloned());
        withheld_headers.extend(origin.iter().flat_map(|origin| origin.withheld_headers.iter().cloned()));
        withheld_headers.sort_unstable();
        withheld_headers.dedup();
        // A value that was left out does not come back by the callee's answer.
        let told = |text: Option<&str>| {
            let secret = |text: &str| secrets.iter().any(|secret| text.contains(secret));
            text.filter(|text| !secret(text)).map(str::to_owned)
        };
        let content_type = headers::content_type(&intent.headers);
        let mut sent = error.attempts().iter().filter(|attempt| was_sent(attempt)).map(Attempt::started);
        let first = origin.and_then(|origin| origin.first_attempt_at).or(sent.next());
        let last = sent.next_back().or(error.last_attempt_at().filter(|_| first.is_some()));
        let last = last.or(origin.and_then(|origin| origin.last_attempt_at));
        Some(DeadLetter {
            schema_version: SCHEMA_VERSION,
            id: origin.map_or(&intent.id, |origin| &origin.id).clone(),
            created_at: millis::whole(origin.map_or(intent.failed_at, |origin| origin.created_at)),
            base_url: intent.base_url.clone(),
            api_id: intent.api_id.clone(),
            method: intent.method.to_string(),
            path: intent.path.clone(),
            query: intent.query.clone(),
            headers,
            withheld_headers,
            content_type,
            body: intent.body.clone(),
            idempotency_key: error.idempotency_key().map(str::to_owned),
            repeat_safe_by_reference: intent.repeat_safe_by_reference,
            correlation_id: error.correlation_id().unwrap_or_default().to_owned(),
            hop: intent.hop,
            status: error.status().map(|status| status.as_u16()),
            gateway_error: error.gateway_error().map(|name| name.as_str().to_owned()),
            code: told(error.code()),
            message: told(error.message()),
            kind: error.kind().as_str().to_owned(),
            stop_reason: error.stop_reason().map(|reason| format!("{reason:?}")),
            attempts: u32::try_from(error.attempts().len()).unwrap_or(u32::MAX),
            first_attempt_at: first.map(millis::whole),
            last_attempt_at: last.map(millis::whole),
            may_have_committed: error.may_have_committed()
                || origin.is_some_and(|origin| origin.may_have_committed),
        })
    }
}

/// Whether anything of the attempt left this process.
fn was_sent(attempt: &Attempt) -> bool {
    !matches!(attempt.class(), Class::CertificateRefused | Class::NeverSent)
}

impl Error {
    /// The record of the call, to be kept and [replayed](crate::ServiceClient::replay).
    ///
    /// There is one of every call that was begun, and of those that the breaker or the hop limit did not let begin. There
    /// is none of what is wrong with a setting or with the call itself: that stays wrong on every replay.
    #[must_use]
    pub fn dead_letter(&self) -> Option<DeadLetter> {
        DeadLetter::of(self)
    }
}

/// Shows neither body, query, header values nor the callee's message.
impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("schema_version", &self.schema_version)
            .field("id", &self.id)
            .field("created_at", &self.created_at)
            .field("base_url", &self.base_url)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("header_names", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("body_len", &self.body.len())
            .field("idempotency_key", &self.idempotency_key)
            .field("correlation_id", &self.correlation_id)
            .field("hop", &self.hop)
            .field("status", &self.status)
            .field("gateway_error", &self.gateway_error)
            .field("kind", &self.kind)
            .field("stop_reason", &self.stop_reason)
            .field("attempts", &self.attempts)
            .field("first_attempt_at", &self.first_attempt_at)
            .field("may_have_committed", &self.may_have_committed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error_kind::ErrorKind;
    use crate::intent::Intent;
    use http::{HeaderMap, Method};
    use proptest::prelude::*;
    use std::time::Duration;

    /// A letter of a call that was never sent.
    pub(crate) fn letter(id: &str) -> DeadLetter {
        let mut error = Error::of(ErrorKind::CircuitOpen, None, "the circuit is open".to_owned());
        error.inner_mut().intent = Some(Box::new(Intent {
            id: id.to_owned(),
            failed_at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_790_000_000_123_456),
            base_url: "https://orders.example.test/prod".to_owned(),
            api_id: None,
            withheld: Vec::new(),
            method: Method::POST,
            path: "/orders".to_owned(),
            query: "a=b".to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{\"sku\":\"A-7\"}\n\xff"),
            hop: 1,
            repeat_safe_by_reference: false,
            origin: None,
        }));
        error.dead_letter().unwrap()
    }

    #[test]
    fn a_letter_is_read_as_it_was_written_and_what_is_not_known_is_passed_over() {
        let written = letter("l-1");
        let mut json = serde_json::to_value(&written).unwrap();
        assert_eq!(json["schema_version"], 1);
        assert_eq!(json["created_at_ms"], 1_790_000_000_123_u64);
        assert_eq!(json["body"], "eyJza3UiOiJBLTcifQr/");
        assert_eq!(serde_json::from_value::<DeadLetter>(json.clone()).unwrap(), written);
        json["of_a_later_version"] = serde_json::json!([1]);
        assert_eq!(serde_json::from_value::<DeadLetter>(json).unwrap(), written);
    }

    #[test]
    fn debug_hides_what_the_letter_carries() {
        let shown = format!("{:?}", letter("l-1"));
        assert!(shown.contains("l-1") && !shown.contains("A-7") && !shown.contains("a=b"), "{shown}");
    }

    #[test]
    fn there_is_no_letter_of_a_wrong_setting() {
        assert!(Error::configuration("region", "not set").dead_letter().is_none());
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_a_letter_panic(text in any::<String>(), number in any::<u64>()) {
            let _ = serde_json::from_str::<DeadLetter>(&text);
            let mut json = serde_json::to_value(letter("l-1")).unwrap();
            json["created_at_ms"] = number.into();
            json["first_attempt_at_ms"] = number.into();
            if let Ok(read) = serde_json::from_value::<DeadLetter>(json.clone()) {
                let _ = (format!("{read:?}"), serde_json::to_string(&read));
            }
            json["body"] = text.into();
            let _ = serde_json::from_value::<DeadLetter>(json);
        }
    }
}
