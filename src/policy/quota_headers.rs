//! What a callee's own headers say is left of a quota.

use crate::policy::retry_after::{digits, single};
use http::{HeaderMap, HeaderName};
use std::time::{Duration, SystemTime};

/// Which headers of an answer say what is left of the callee's quota, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaHeaders(Form);

/// What a header such as `x-ratelimit-reset` counts; no standard says, and callees differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds of the Unix epoch, by the callee's clock.
    PointInTime,
    /// Seconds from the answer on.
    SecondsFromNow,
}

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// How many more requests are served until the quota begins anew.
    pub(crate) remaining: u64,
    /// How long that is; none where nothing usable is said.
    pub(crate) begins_anew: Option<Duration>,
}

impl QuotaHeaders {
    /// `x-ratelimit-remaining` and `x-ratelimit-reset`.
    #[must_use]
    pub fn x_ratelimit(reset: Reset) -> QuotaHeaders {
        QuotaHeaders::named(X_REMAINING, X_RESET, reset)
    }

    /// Two headers of the callee's own naming: how many requests are left, and when the quota begins anew.
    #[must_use]
    pub fn named(remaining: HeaderName, reset: HeaderName, meaning: Reset) -> QuotaHeaders {
        QuotaHeaders(Form::Pair { remaining, reset, meaning })
    }

    /// The fields of the IETF's draft *RateLimit header fields for HTTP*: `ratelimit` as a list of policies (`"a";r=5;t=30`)
    /// or, of earlier versions, as a dictionary (`remaining=5, reset=30`), or else `ratelimit-remaining` and
    /// `ratelimit-reset`. Times are seconds from the answer on. Of several policies the one with the least left counts.
    #[must_use]
    pub fn ietf() -> QuotaHeaders {
        QuotaHeaders(Form::Ietf)
    }

    /// Reads what an answer says; none where it says nothing that can be read. A point in time is measured against `now`, the
    /// callee's time as well as it is known.
    pub(crate) fn read(&self, headers: &HeaderMap, now: SystemTime) -> Option<Left> {
        match &self.0 {
            Form::Pair { remaining, reset, meaning } => pair(headers, remaining, reset, *meaning, now),
            Form::Ietf => ietf(headers).or_else(|| {
                pair(headers, &RATELIMIT_REMAINING, &RATELIMIT_RESET, Reset::SecondsFromNow, now)
            }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Ietf,
    Pair { remaining: HeaderName, reset: HeaderName, meaning: Reset },
}

fn pair(
    headers: &HeaderMap,
    remaining: &HeaderName,
    reset: &HeaderName,
    meaning: Reset,
    now: SystemTime,
) -> Option<Left> {
    let remaining = single(headers, remaining).and_then(digits)?;
    let seconds = single(headers, reset).and_then(digits).map(Duration::from_secs);
    let begins_anew = seconds.and_then(|seconds| match meaning {
        Reset::SecondsFromNow => Some(seconds),
        Reset::PointInTime => SystemTime::UNIX_EPOCH.checked_add(seconds)?.duration_since(now).ok(),
    });
    Some(Left { remaining, begins_anew })
}

/// A lenient reading of two structured fields (RFC 9651): what is no integer under a name that is known is passed over.
fn ietf(headers: &HeaderMap) -> Option<Left> {
    let lines = headers.get_all(&RATELIMIT).iter().filter_map(|line| line.to_str().ok());
    let members: Vec<&str> = lines.flat_map(|line| unquoted(line, ',')).collect();
    let policies = members.iter().filter_map(|member| {
        let remaining = number(unquoted(member, ';'), "r")?;
        Some(Left { remaining, begins_anew: number(unquoted(member, ';'), "t").map(Duration::from_secs) })
    });
    // The least left, and of equals the one that lasts longest.
    let scarcest = policies.min_by_key(|left| (left.remaining, std::cmp::Reverse(left.begins_anew)));
    scarcest.or_else(|| {
        let remaining = number(members.iter().copied(), "remaining")?;
        let begins_anew = number(members.iter().copied(), "reset").map(Duration::from_secs);
        Some(Left { remaining, begins_anew })
    })
}

/// The value of `name=value`, where it is a whole number.
fn number<'a>(mut pieces: impl Iterator<Item = &'a str>, name: &str) -> Option<u64> {
    pieces.find_map(|piece| digits(piece.trim().strip_prefix(name)?.strip_prefix('=')?))
}

/// The parts between separators that stand outside of quotes.
fn unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        let literal = std::mem::take(&mut escaped);
        match c {
            '\\' if quoted && !literal => escaped = true,
            '"' if !literal => quoted = !quoted,
            _ => {}
        }
        c == separator && !quoted
    })
}

const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATELIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOON: u64 = 1_790_942_400;

    fn read(form: &QuotaHeaders, lines: &[(&'static str, &str)]) -> Option<(u64, Option<u64>)> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let left = form.read(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(NOON))?;
        Some((left.remaining, left.begins_anew.map(|reset| reset.as_secs())))
    }

    #[test]
    fn a_reset_is_seconds_or_a_point_in_time_as_the_owner_says() {
        let (soon, then) = ("20", (NOON + 20).to_string());
        let with = |reset| [("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", reset)];
        let seconds = QuotaHeaders::x_ratelimit(Reset::SecondsFromNow);
        assert_eq!(read(&seconds, &with(soon)), Some((3, Some(20))));
        let point = QuotaHeaders::x_ratelimit(Reset::PointInTime);
        assert_eq!(read(&point, &with(&then)), Some((3, Some(20))));
        assert_eq!(read(&point, &with(soon)), Some((3, None)), "a point in the past is none");
    }

    #[test]
    fn the_names_can_be_the_callee_s_own() {
        let named = |name| HeaderName::from_static(name);
        let own = QuotaHeaders::named(named("x-left"), named("x-anew"), Reset::SecondsFromNow);
        assert_eq!(read(&own, &[("x-left", "0"), ("x-anew", "7")]), Some((0, Some(7))));
        assert_eq!(read(&own, &[("x-ratelimit-remaining", "0")]), None);
    }

    #[test]
    fn what_is_no_whole_number_or_is_said_twice_says_nothing() {
        let form = QuotaHeaders::x_ratelimit(Reset::SecondsFromNow);
        for value in ["", "-1", "1.5", "many", "1, 2"] {
            assert_eq!(read(&form, &[("x-ratelimit-remaining", value)]), None, "{value}");
        }
        let twice = [("x-ratelimit-remaining", "1"), ("x-ratelimit-remaining", "1")];
        assert_eq!(read(&form, &twice), None);
        let no_reset = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "soon")];
        assert_eq!(read(&form, &no_reset), Some((1, None)));
    }

    #[test]
    fn of_the_ietf_s_fields_every_form_is_read() {
        for (lines, expected) in [
            (&[("ratelimit", r#""default";r=50;t=30"#)][..], (50, Some(30))),
            (&[("ratelimit", r#""a";r=50;t=30, "b";t=60 ; r=4"#)], (4, Some(60))),
            (&[("ratelimit", r#""a";r=9;t=1"#), ("ratelimit", r#""b";r=2"#)], (2, None)),
            (&[("ratelimit", r#""a,;r=1\";r=0";r=8;t=5"#)], (8, Some(5))),
            (&[("ratelimit", "limit=100, remaining=5, reset=30")], (5, Some(30))),
            (&[("ratelimit-remaining", "6"), ("ratelimit-reset", "12")], (6, Some(12))),
            (&[("ratelimit", r#""a";q=5"#), ("ratelimit-remaining", "6")], (6, None)),
            (&[("ratelimit", r#""a";r=0;t=5, "b";r=0;t=9"#)], (0, Some(9))),
        ] {
            assert_eq!(read(&QuotaHeaders::ietf(), lines), Some(expected), "{lines:?}");
        }
        for nothing in [r#""a""#, "r", "", r#""a";r="5""#, r#""a";rr=5"#] {
            assert_eq!(read(&QuotaHeaders::ietf(), &[("ratelimit", nothing)]), None, "{nothing}");
        }
    }

    #[test]
    fn a_separator_between_quotes_separates_nothing_and_an_escaped_quote_ends_none() {
        let parts = |text| unquoted(text, ';').collect::<Vec<_>>();
        assert_eq!(parts(r#""a;b";c"#), [r#""a;b""#, "c"]);
        assert_eq!(parts(r#""a\";b";c"#), [r#""a\";b""#, "c"]);
        assert_eq!(parts(r#""a\\";b"#), [r#""a\\""#, "b"]);
        // Outside of quotes nothing is escaped.
        assert_eq!(parts(r#"\"a;b""#), [r#"\"a;b""#]);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[ -~]{0,60}", seconds in any::<u64>()) {
            read(&QuotaHeaders::ietf(), &[("ratelimit", text.as_str())]);
            let seconds = seconds.to_string();
            let lines = [("x-ratelimit-remaining", seconds.as_str()), ("x-ratelimit-reset", seconds.as_str())];
            for meaning in [Reset::PointInTime, Reset::SecondsFromNow] {
                read(&QuotaHeaders::x_ratelimit(meaning), &lines);
            }
        }
    }
}
