//! The headers of a chain as they arrived, before anything is believed.

use crate::context::headers;
use crate::context::trace::{MOST_BYTES, Trace};
use http::HeaderName;

/// The headers that are looked at, as they came.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    pub(crate) hop_count: Field,
    pub(crate) correlation_id: Field,
    pub(crate) idempotency_key: Field,
    pub(crate) time_budget: Field,
    xray: Field,
    traceparent: Field,
    tracestate: Vec<Vec<u8>>,
}

impl Inbound {
    /// `key` is the name of the header that carries the idempotency key.
    pub(crate) fn read<N: AsRef<str>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
        key: &HeaderName,
    ) -> Self {
        let mut inbound = Inbound::default();
        for (name, value) in headers {
            inbound.take(name.as_ref(), value.as_ref(), key);
        }
        inbound
    }

    pub(crate) fn trace(&self) -> Trace {
        let mut trace = Trace::default();
        // Of two, nobody can say which is meant: only a list may be spread over lines (RFC 9110, section 5.3).
        if let Some(xray) = self.xray.one() {
            trace.set_xray(xray);
        }
        if let Some(parent) = self.traceparent.one() {
            trace.set_parent(parent);
        }
        trace.set_state(self.tracestate.iter().map(Vec::as_slice));
        trace
    }

    fn take(&mut self, name: &str, value: &[u8], key: &HeaderName) {
        let is = |header: HeaderName| header.as_str().eq_ignore_ascii_case(name);
        if is(headers::HOP_COUNT) {
            self.hop_count.take(value);
        } else if is(headers::CORRELATION_ID) {
            self.correlation_id.take(value);
        } else if key.as_str().eq_ignore_ascii_case(name) {
            self.idempotency_key.take(value);
        } else if is(headers::TIME_BUDGET_MS) {
            self.time_budget.take(value);
        } else if is(headers::X_AMZN_TRACE_ID) {
            self.xray.take(value);
        } else if is(headers::TRACEPARENT) {
            self.traceparent.take(value);
        } else if is(headers::TRACESTATE) {
            self.tracestate.push(value.to_vec());
        }
    }
}

/// A header that may be there once.
#[derive(Debug, Default)]
pub(crate) enum Field {
    #[default]
    Absent,
    One(Vec<u8>),
    /// More than one value, equal ones too, or one that is longer than any of these headers may be.
    Unusable,
}

impl Field {
    fn take(&mut self, value: &[u8]) {
        *self = match self {
            Field::Absent if value.len() <= MOST_BYTES => Field::One(value.to_vec()),
            _ => Field::Unusable,
        };
    }

    pub(crate) fn one(&self) -> Option<&[u8]> {
        match self {
            Field::One(value) => Some(value),
            Field::Absent | Field::Unusable => None,
        }
    }
}
