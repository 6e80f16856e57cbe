//! The trace headers that are passed through, untouched and bounded.

use crate::context::headers::{TRACEPARENT, TRACESTATE, X_AMZN_TRACE_ID};
use http::{HeaderName, HeaderValue};

/// The trace that calls pass on.
///
/// Nothing of it is parsed: whoever reads a trace knows its format better. What is empty, too long or no header value
/// is dropped, since a trace never fails a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    xray: Option<HeaderValue>,
    parent: Option<HeaderValue>,
    state: Vec<HeaderValue>,
}

impl Trace {
    pub(crate) fn set_xray(&mut self, value: &[u8]) {
        self.xray = kept(X_AMZN_TRACE_ID, value);
    }

    pub(crate) fn set_parent(&mut self, value: &[u8]) {
        self.parent = kept(TRACEPARENT, value);
    }

    /// Takes all lines or, where one is no header value or all together are too long, none: half a state is no state.
    pub(crate) fn set_state<'a>(&mut self, lines: impl IntoIterator<Item = &'a [u8]>) {
        self.state = whole_state(lines).unwrap_or_default();
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, &HeaderValue)> {
        let xray = self.xray.iter().map(|value| (X_AMZN_TRACE_ID, value));
        let parent = self.parent.iter().map(|value| (TRACEPARENT, value));
        let state = self.state.iter().map(|value| (TRACESTATE, value));
        xray.chain(parent).chain(state)
    }
}

fn whole_state<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<HeaderValue>> {
    let (mut state, mut bytes) = (Vec::new(), 0_usize);
    // An empty line is a valid list of no members.
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        bytes = bytes.saturating_add(line.len());
        let value = kept(TRACESTATE, line)?;
        if bytes > MOST_BYTES || state.len() == MOST_STATE_LINES {
            return None;
        }
        state.push(value);
    }
    Some(state)
}

fn kept(name: HeaderName, value: &[u8]) -> Option<HeaderValue> {
    let value = Some(value)
        .filter(|value| !value.is_empty() && value.len() <= MOST_BYTES)
        .and_then(|value| HeaderValue::from_bytes(value).ok());
    if value.is_none() {
        tracing::debug!(header = name.as_str(), "a trace header that cannot be passed on was dropped");
    }
    value
}

/// The longest value that is passed on, of `tracestate` all lines together: the gateway's room for headers is small.
pub(crate) const MOST_BYTES: usize = 1024;
/// A `tracestate` has at most 32 members (W3C Trace Context, section 3.3.1.1), so no more lines either.
const MOST_STATE_LINES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(trace: &Trace) -> Vec<(String, Vec<u8>)> {
        let owned = |(name, value): (HeaderName, &HeaderValue)| (name.to_string(), value.as_bytes().to_vec());
        trace.headers().map(owned).collect()
    }

    #[test]
    fn a_trace_is_passed_on_byte_for_byte() {
        let xray =
            "Root=1-6858764a-5c96ac04102925a7698c3690;Parent=77eb47fb7ef089fe;Sampled=0;Lineage=1:23e64a83:0";
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut trace = Trace::default();
        trace.set_xray(xray.as_bytes());
        trace.set_parent(parent.as_bytes());
        trace.set_state([b"b=2 , a=1".as_slice(), b"", b"\xe9=3"]);
        let expected = [
            ("x-amzn-trace-id", xray.as_bytes()),
            ("traceparent", parent.as_bytes()),
            ("tracestate", b"b=2 , a=1"),
            ("tracestate", b"\xe9=3"),
        ];
        assert_eq!(sent(&trace), expected.map(|(name, value)| (name.to_owned(), value.to_vec())));
    }

    #[test]
    fn what_is_empty_too_long_or_no_header_value_is_dropped() {
        let most = vec![b'a'; MOST_BYTES];
        let over = vec![b'a'; MOST_BYTES + 1];
        let mut trace = Trace::default();
        trace.set_parent(&most);
        assert_eq!(sent(&trace).len(), 1);
        for bad in [b"".as_slice(), b"a\r\nx-evil: 1", b"a\0", &over] {
            trace.set_parent(&most);
            trace.set_parent(bad);
            trace.set_xray(bad);
            trace.set_state([bad]);
            assert_eq!(sent(&trace), [], "{bad:?}");
        }
    }

    #[test]
    fn a_tracestate_is_kept_whole_or_not_at_all() {
        let half = vec![b'a'; MOST_BYTES / 2];
        let mut trace = Trace::default();
        trace.set_state([half.as_slice(), &half]);
        assert_eq!(sent(&trace).len(), 2);
        trace.set_state([half.as_slice(), &half, b"a"]);
        assert_eq!(sent(&trace), []);
        trace.set_state([b"a=1".as_slice(), b"a\n"]);
        assert_eq!(sent(&trace), []);
        trace.set_state([b"a".as_slice(); MOST_STATE_LINES]);
        assert_eq!(sent(&trace).len(), MOST_STATE_LINES);
        trace.set_state([b"a".as_slice(); MOST_STATE_LINES + 1]);
        assert_eq!(sent(&trace), []);
    }
}
