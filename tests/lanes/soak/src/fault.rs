//! What the proxy does to one exchange, and the course that the exchange takes for it.

use crate::time::up_to;
use fastrand::Rng;
use std::time::Duration;

/// What is done to one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The answer comes as over a slow line.
    Bandwidth,
    /// The answer comes whole, and the connection is closed after it although it was promised to stay.
    CloseAfter,
    /// The answer breaks off in its body, by a close.
    Cut,
    /// The answer breaks off in its body, by a reset.
    CutByReset,
    /// The answer comes a few bytes at a time.
    Drip,
    /// The request goes on a few bytes at a time.
    DripRequest,
    /// The request goes on, and the client is told that nothing will come back.
    HalfClose,
    /// The gateway is told that nothing more will come, and answers all the same.
    HalfCloseUpstream,
    /// Request and answer wait on their way.
    Latency,
    /// Nothing.
    Pass,
    /// The request goes on and is carried out, and the client's connection is reset.
    ResetAfter,
    /// The answer comes whole, and a reset right after it.
    ResetAnswered,
    /// The client's connection is reset before any of its request goes on.
    ResetBefore,
    /// Half of the request goes on, and both connections are reset.
    ResetWithin,
    /// The request goes on and no answer comes; the connection stays open.
    Stall,
}

/// What becomes of an exchange, step by step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    pub reset_before: bool,
    pub wait_before: Duration,
    pub request_pace: Option<Pace>,
    pub reset_within: bool,
    pub half_close_upstream: bool,
    pub instead_of_answer: Option<Silence>,
    pub wait_after: Duration,
    pub answer_pace: Option<Pace>,
    /// So many thousandths of the body come, and then a reset (or else a close).
    pub cut: Option<(usize, bool)>,
    pub then: Then,
}

/// So many bytes each time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub bytes: usize,
    pub every: Duration,
}

/// What the client sees in the place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    Close,
    Reset,
    Stall,
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    Close,
    #[default]
    Keep,
    Reset,
}

impl Fault {
    /// All of them, [`Fault::Pass`] among them.
    pub const ALL: [Fault; 15] = [
        Fault::Bandwidth,
        Fault::CloseAfter,
        Fault::Cut,
        Fault::CutByReset,
        Fault::Drip,
        Fault::DripRequest,
        Fault::HalfClose,
        Fault::HalfCloseUpstream,
        Fault::Latency,
        Fault::Pass,
        Fault::ResetAfter,
        Fault::ResetAnswered,
        Fault::ResetBefore,
        Fault::ResetWithin,
        Fault::Stall,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Fault::Bandwidth => "over a slow line",
            Fault::CloseAfter => "closed after the answer",
            Fault::Cut => "cut in the answer's body",
            Fault::CutByReset => "reset in the answer's body",
            Fault::Drip => "answer dripped",
            Fault::DripRequest => "request dripped",
            Fault::HalfClose => "closed in place of an answer",
            Fault::HalfCloseUpstream => "half-closed to the gateway",
            Fault::Latency => "delayed",
            Fault::Pass => "passed",
            Fault::ResetAfter => "reset in place of an answer",
            Fault::ResetAnswered => "reset after the answer",
            Fault::ResetBefore => "reset before the request went on",
            Fault::ResetWithin => "reset within the request",
            Fault::Stall => "stalled in place of an answer",
        }
    }

    /// Draws one; so many exchanges in a hundred are not passed.
    pub fn draw(rng: &mut Rng, percent: u32) -> Fault {
        if rng.u32(0..100) >= percent {
            return Fault::Pass;
        }
        loop {
            match Fault::ALL[rng.usize(0..Fault::ALL.len())] {
                Fault::Pass => {}
                fault => return fault,
            }
        }
    }

    pub fn course(self, rng: &mut Rng) -> Course {
        let course = Course::default();
        match self {
            Fault::Bandwidth => {
                let bytes = rng.usize(200..4_000);
                Course { answer_pace: Some(Pace { bytes, every: Duration::from_millis(20) }), ..course }
            }
            Fault::CloseAfter => Course { then: Then::Close, ..course },
            Fault::Cut => Course { cut: Some((rng.usize(0..1_000), false)), ..course },
            Fault::CutByReset => Course { cut: Some((rng.usize(0..1_000), true)), ..course },
            Fault::Drip => Course { answer_pace: Some(drip(rng)), ..course },
            Fault::DripRequest => Course { request_pace: Some(drip(rng)), ..course },
            Fault::HalfClose => Course { instead_of_answer: Some(Silence::Close), ..course },
            Fault::HalfCloseUpstream => Course { half_close_upstream: true, ..course },
            Fault::Latency => {
                Course { wait_before: up_to(rng, 300), wait_after: up_to(rng, 1_200), ..course }
            }
            Fault::Pass => course,
            Fault::ResetAfter => Course { instead_of_answer: Some(Silence::Reset), ..course },
            Fault::ResetAnswered => Course { then: Then::Reset, ..course },
            Fault::ResetBefore => Course { reset_before: true, ..course },
            Fault::ResetWithin => Course { reset_within: true, ..course },
            Fault::Stall => Course { instead_of_answer: Some(Silence::Stall), ..course },
        }
    }
}

fn drip(rng: &mut Rng) -> Pace {
    Pace { bytes: rng.usize(1..40), every: Duration::from_millis(rng.u64(1..4)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_faults() {
        let draw = |seed| {
            let mut rng = Rng::with_seed(seed);
            (0..100).map(|_| Fault::draw(&mut rng, 50)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn every_fault_is_drawn_and_none_where_all_is_to_pass() {
        let mut rng = Rng::with_seed(1);
        let drawn: std::collections::BTreeSet<_> = (0..2_000).map(|_| Fault::draw(&mut rng, 90)).collect();
        assert_eq!(drawn.len(), Fault::ALL.len());
        assert!((0..100).all(|_| Fault::draw(&mut rng, 0) == Fault::Pass));
    }
}
