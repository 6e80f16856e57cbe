//! How far down a chain a call is.

use std::fmt;

/// The first hop count that every callee refuses. A call that would carry it is not sent.
pub const MAX_HOPS: u8 = 8;

/// The place of a call in its chain, 1 to 99: the call that begins a chain is at hop 1, a call made to serve it at hop 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopCount(u8);

impl HopCount {
    /// Reads the header's grammar, `[1-9][0-9]?`, and nothing more lenient: junk that counts as 0 is a loop without end.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match *text {
            [ones @ b'1'..=b'9'] => Some(HopCount(ones - b'0')),
            [tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => Some(HopCount((tens - b'0') * 10 + (ones - b'0'))),
            _ => None,
        }
    }

    /// The hop after the inbound one, the first where there is none.
    pub(crate) fn after(inbound: Option<HopCount>) -> Result<HopCount, HopLimit> {
        let inbound = inbound.map_or(0, HopCount::get);
        let next = inbound.saturating_add(1);
        if next >= MAX_HOPS {
            return Err(HopLimit { inbound });
        }
        Ok(HopCount(next))
    }

    /// The hop as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for HopCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The chain is too long for another call: the next hop would be [`MAX_HOPS`] or beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the call would be hop {}, and every callee refuses hop {MAX_HOPS}: the chain is taken to be a loop",
    inbound.saturating_add(1)
)]
pub struct HopLimit {
    inbound: u8,
}

impl HopLimit {
    /// The hop that the request being served arrived with.
    #[must_use]
    pub const fn hop(&self) -> u8 {
        self.inbound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_numbers_1_to_99_are_hop_counts() {
        for n in 0..=255_u8 {
            let read = HopCount::parse(n.to_string().as_bytes());
            assert_eq!(read.map(HopCount::get), (1..=99).contains(&n).then_some(n), "{n}");
        }
        for text in [
            "", "0", "00", "01", "03", "-1", "+3", " 3", "3 ", "3.0", "1e1", "abc", "3,3", "٣", "3\0", "100",
            "0x3",
        ] {
            assert_eq!(HopCount::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_hop_count_is_written_as_it_is_read() {
        for text in ["1", "7", "10", "99"] {
            assert_eq!(HopCount::parse(text.as_bytes()).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_hop_limit_says_which_hop_would_be_refused() {
        let limit = HopCount::after(HopCount::parse(b"7")).unwrap_err();
        assert_eq!(
            limit.to_string(),
            "the call would be hop 8, and every callee refuses hop 8: the chain is taken to be a loop"
        );
    }
}
