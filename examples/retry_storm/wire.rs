//! The answers of the simulation as they look on the wire, for the shipped status table to read.

use eastwest::ErrorKind;
use eastwest::http::{HeaderMap, HeaderValue, StatusCode, header};
use eastwest::policy::outcome::{Answer, Outcome};
use std::time::{Duration, SystemTime};

/// An answer to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// 502 of the gateway: the function threw.
    BadGateway,
    /// 504 of the gateway: it stopped waiting.
    GatewayTimeout,
    /// A function's answer after a failed call of its own, as `Error::to_response` gives it.
    Own(Own),
    /// 200.
    Success,
    /// 500 of the gateway: the function was throttled.
    ServerError,
    /// 429 of the gateway: the account's bucket is empty.
    TooManyRequests,
}

/// What a function says of a failed call of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    status: OwnStatus,
    /// Whether `x-should-retry: false` goes with it.
    marked: bool,
    /// Whole seconds, up to [`LONGEST_HINT`]; zero is no hint.
    retry_after: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnStatus {
    BadGateway,
    GatewayTimeout,
    /// 503 of the guard: the caller will be gone before the answer comes.
    NoTimeLeft,
    Unavailable,
}

impl Own {
    /// The table of `Error::to_response`, for the kinds that come up here.
    pub(crate) fn of(kind: ErrorKind, retry_after: Option<Duration>, marked: bool) -> Own {
        let status = match kind {
            ErrorKind::CircuitOpen | ErrorKind::Throttled => OwnStatus::Unavailable,
            ErrorKind::Timeout => OwnStatus::GatewayTimeout,
            _ => OwnStatus::BadGateway,
        };
        let seconds = retry_after.map_or(0, |wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        Own { status, marked, retry_after: u8::try_from(seconds).unwrap_or(u8::MAX).min(LONGEST_HINT) }
    }

    /// The refusal of a guard.
    pub(crate) fn no_time_left(marked: bool) -> Own {
        Own { status: OwnStatus::NoTimeLeft, marked, retry_after: 0 }
    }
}

/// All answers, written once.
#[derive(Debug)]
pub(crate) struct Wires {
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    status: StatusCode,
    headers: HeaderMap,
    body: &'static str,
}

impl Wires {
    pub(crate) fn new() -> Wires {
        let gateway = |status, r#type: &'static str, body| {
            let mut headers = HeaderMap::new();
            headers.insert("x-amzn-requestid", HeaderValue::from_static("simulated"));
            headers.insert("x-amzn-errortype", HeaderValue::from_static(r#type));
            Page { status, headers, body }
        };
        let internal = "InternalServerErrorException";
        let mut pages = vec![
            Page { status: StatusCode::OK, headers: HeaderMap::new(), body: "{}" },
            gateway(StatusCode::BAD_GATEWAY, internal, r#"{"message": "Internal server error"}"#),
            gateway(StatusCode::GATEWAY_TIMEOUT, internal, r#"{"message": "Endpoint request timed out"}"#),
            gateway(StatusCode::INTERNAL_SERVER_ERROR, internal, r#"{"message": "Internal server error"}"#),
            gateway(
                StatusCode::TOO_MANY_REQUESTS,
                "TooManyRequestsException",
                r#"{"message":"Too Many Requests"}"#,
            ),
        ];
        let own = [
            (StatusCode::BAD_GATEWAY, r#"{"type":"Unavailable"}"#),
            (StatusCode::GATEWAY_TIMEOUT, r#"{"type":"Timeout"}"#),
            (StatusCode::SERVICE_UNAVAILABLE, r#"{"type":"NoTimeLeft"}"#),
            (StatusCode::SERVICE_UNAVAILABLE, r#"{"type":"CircuitOpen"}"#),
        ];
        for (status, body) in own {
            for marked in [false, true] {
                for retry_after in 0..=LONGEST_HINT {
                    let mut headers = HeaderMap::new();
                    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    if marked {
                        headers.insert("x-should-retry", HeaderValue::from_static("false"));
                    }
                    if retry_after > 0 {
                        headers.insert(header::RETRY_AFTER, HeaderValue::from(u16::from(retry_after)));
                    }
                    pages.push(Page { status, headers, body });
                }
            }
        }
        Wires { pages }
    }

    /// What the caller's attempt shows with this answer.
    pub(crate) fn outcome(&self, reply: Reply) -> Outcome<'_> {
        let page = &self.pages[index(reply)];
        Outcome::Answered(Answer {
            status: page.status,
            headers: &page.headers,
            body: page.body.as_bytes(),
            oversized: false,
            broken: false,
            clock_gap: None,
            signature_age: None,
            gateway_now: SystemTime::UNIX_EPOCH,
        })
    }
}

fn index(reply: Reply) -> usize {
    match reply {
        Reply::Success => 0,
        Reply::BadGateway => 1,
        Reply::GatewayTimeout => 2,
        Reply::ServerError => 3,
        Reply::TooManyRequests => 4,
        Reply::Own(own) => {
            let hints = usize::from(LONGEST_HINT) + 1;
            let group = own.status as usize * 2 + usize::from(own.marked);
            5 + group * hints + usize::from(own.retry_after)
        }
    }
}

/// Longer than the longest open time of a breaker, jitter included.
const LONGEST_HINT: u8 = 8;
