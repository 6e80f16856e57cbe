//! What one attempt meets, drawn from the dice, with what the README's status table says of it, written down once more.

use super::record::{Came, Ended};
use super::*;
use crate::edge::Shown;
use crate::policy::moment::Moment;
use crate::policy::outcome::{Loss, Unsent};
use http::StatusCode;

/// What an attempt meets.
pub(super) struct Scene {
    pub(super) shown: Shown,
    pub(super) takes: Duration,
    pub(super) commits: bool,
    pub(super) ended: Ended,
}

/// A row: status, gateway type, body, whether the work may be done, whether it is never sent again.
type Row = (u16, &'static str, &'static str, bool, bool);

const ROWS: [Row; 26] = [
    (400, "", "{}", false, true),
    (401, "", "{}", false, false),
    (403, "", r#"{"message":"not yours"}"#, false, true),
    (403, "AccessDeniedException", r#"{"Message":"not authorized"}"#, false, true),
    (
        403,
        "MissingAuthenticationTokenException",
        r#"{"message":"Missing Authentication Token"}"#,
        false,
        true,
    ),
    (403, "InvalidSignatureException", r#"{"message":"Signature expired: 20261002T110000Z"}"#, false, false),
    (
        403,
        "ExpiredTokenException",
        r#"{"message":"The security token included in the request is expired"}"#,
        false,
        false,
    ),
    (404, "", "{}", false, true),
    (408, "", "{}", true, false),
    (409, "", "{}", false, true),
    (409, "", r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#, true, false),
    (413, "", "", false, true),
    (422, "", "{}", false, true),
    (429, "TooManyRequestsException", r#"{"message":"Too Many Requests"}"#, false, false),
    (429, "LimitExceededException", r#"{"message":"Limit Exceeded"}"#, false, true),
    (500, "", r#"{"message":null}"#, true, false),
    (500, "", "{}", true, false),
    (501, "", "", false, true),
    (502, "", r#"{"message":"Internal server error"}"#, true, false),
    (503, "", r#"{"message":"Service Unavailable"}"#, true, false),
    (503, "", "", true, false),
    (504, "", r#"{"message":"Endpoint request timed out"}"#, true, false),
    (505, "", "", false, true),
    (508, "", "{}", false, true),
    (599, "", "", true, false),
    (302, "", "", false, true),
];

/// Draws what an attempt meets.
pub(super) fn scene(clock: &Clock, health: u32, timeout: Duration, sent: Moment) -> Scene {
    let takes = timeout.mul_f64(f64::from(clock.roll(1_200)) / 1_000.0);
    let takes = if clock.roll(3) == 0 { Duration::ZERO } else { takes };
    let coin = clock.roll(2) == 0;
    if takes >= timeout {
        // The attempt's own limit ends it; the callee may go on.
        let shown = lost(Loss::TimedOut, clock.roll(2) == 0);
        return Scene { shown, takes: timeout, commits: coin, ended: ended(None, true) };
    }
    if clock.roll(1_000) < health {
        let status = [StatusCode::OK, StatusCode::CREATED, StatusCode::NO_CONTENT][clock.roll(3) as usize];
        let shown = answered(status, HeaderMap::new(), "");
        return Scene { shown, takes, commits: true, ended: ended(Some(status), true) };
    }
    match clock.roll(10) {
        0 => {
            let how = [Loss::Connection, Loss::Garbage, Loss::Truncated, Loss::HeadTooLarge]
                [clock.roll(4) as usize];
            // An answer that is too large to read was one all the same.
            let ended = Ended { never_again: how == Loss::HeadTooLarge, ..ended(None, true) };
            Scene { shown: lost(how, clock.roll(2) == 0), takes, commits: coin, ended }
        }
        1 => never_sent(clock.roll(6), takes),
        _ => {
            let (status, named, body, doubt, never_again) = ROWS[clock.roll(ROWS.len() as u32) as usize];
            let status = StatusCode::from_u16(status).unwrap();
            let mut headers = HeaderMap::new();
            if !named.is_empty() {
                headers.insert("x-amzn-errortype", HeaderValue::from_static(named));
            }
            let mut ended = Ended { never_again, ..ended(Some(status), doubt) };
            ended.forbids = clock.roll(12) == 0;
            if ended.forbids {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
            ended.hint = hint(clock, &mut headers, sent);
            Scene { shown: answered(status, headers, body), takes, commits: doubt && coin, ended }
        }
    }
}

/// A `Retry-After` of either form, of no use, or none.
fn hint(clock: &Clock, headers: &mut HeaderMap, sent: Moment) -> Option<Duration> {
    let seconds = u64::from(clock.roll(4));
    let (text, hint) = match clock.roll(9) {
        0 => (seconds.to_string(), Some(Duration::from_secs(seconds))),
        1 => {
            // Against the answer's own date, so the clocks do not matter.
            let date = |wall| httpdate::fmt_http_date(wall);
            headers.insert("date", HeaderValue::from_str(&date(sent.wall)).unwrap());
            (date(sent.wall + Duration::from_secs(seconds)), Some(Duration::from_secs(seconds)))
        }
        2 => (["soon", "-1", "1.5", "0"][clock.roll(4) as usize].to_owned(), None),
        // More than a number holds is a long time all the same.
        3 => ("99999999999999999999999".to_owned(), Some(Duration::from_secs(u64::MAX))),
        _ => return None,
    };
    headers.insert("retry-after", HeaderValue::from_str(&text).unwrap());
    hint.filter(|hint| !hint.is_zero())
}

fn ended(status: Option<StatusCode>, in_doubt: bool) -> Ended {
    let at = crate::policy::moment::some_moment().monotonic;
    let came = match (status, in_doubt) {
        (Some(_), _) => Came::Answer,
        (None, true) => Came::Loss,
        (None, false) => Came::Nothing,
    };
    Ended { came, status, at, in_doubt, forbids: false, never_again: false, hint: None }
}

fn answered(status: StatusCode, headers: HeaderMap, body: &'static str) -> Shown {
    let body = bytes::Bytes::from_static(body.as_bytes());
    Shown::Answered { status, headers, body, oversized: false, broken: false }
}

fn lost(how: Loss, thawed: bool) -> Shown {
    Shown::Lost { how, thawed, cause: std::io::Error::other("lost").into() }
}

fn never_sent(roll: u32, takes: Duration) -> Scene {
    let why = [
        Unsent::Certificate,
        Unsent::ConnectTimeout,
        Unsent::Dns,
        Unsent::HandshakeCut,
        Unsent::Refused,
        Unsent::StreamRefused,
    ][roll as usize];
    let cause = std::io::Error::other("never sent").into();
    let shown = Shown::NeverSent { why, reason: "never sent".into(), cause };
    let ended = Ended { never_again: why == Unsent::Certificate, ..ended(None, false) };
    Scene { shown, takes, commits: false, ended }
}
