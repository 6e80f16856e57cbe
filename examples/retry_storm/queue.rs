//! What is still to happen, in the order of its time.

use super::wire::Reply;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A thing that happens at a point of the simulated time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An answer, or what the gateway says in its place, reaches who asked.
    Answered(From, Reply),
    /// A request reaches a function.
    Arrives(Sent),
    /// An execution of the last callee ends, for the account's pool.
    CalleeEnds,
    /// A function has worked, or waited, long enough and sends its next attempt.
    Ready(Slot),
    /// An unrelated public request comes to the front door.
    PublicComes,
    /// An unrelated public request is done.
    PublicEnds,
    /// A request of the chain comes to the front door.
    RequestComes,
    /// An attempt's time is over.
    TimesOut(Attempted),
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// A user, at the front door: the number of the request.
    Door(u32),
    Function(Attempted),
}

/// One attempt of one execution of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempted {
    pub(crate) slot: Slot,
    pub(crate) number: u32,
}

/// An execution of a function. A slot is used again, and then has another serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

/// A request on its way to the function of a layer; 0 is behind the front door.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) request: u32,
    pub(crate) layer: u32,
    pub(crate) from: From,
    /// `x-time-budget-ms`, where it was sent.
    pub(crate) time_budget_ms: Option<u32>,
}

/// Events by time; of those at the same time, the one that was planned first comes first.
///
/// A calendar: a page for each millisecond, and only the events of the open page are kept in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pages: Vec<Vec<Planned>>,
    open: usize,
    now: BinaryHeap<Planned>,
    planned: u64,
}

#[derive(Debug)]
struct Planned {
    at: u64,
    order: u64,
    event: Event,
}

impl Queue {
    /// Plans an event for a time, in nanoseconds, that is not past.
    pub(crate) fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        let planned = Planned { at, order: self.planned, event };
        let page = usize::try_from(at / PAGE).unwrap_or(usize::MAX);
        if page <= self.open {
            return self.now.push(planned);
        }
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Vec::new);
        }
        self.pages[page].push(planned);
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        while self.now.is_empty() {
            self.open += 1;
            let page = self.pages.get_mut(self.open)?;
            self.now.extend(std::mem::take(page));
        }
        self.now.pop().map(|planned| (planned.at, planned.event))
    }
}

/// A millisecond.
const PAGE: u64 = 1_000_000;

impl Ord for Planned {
    /// Turned round, for the heap gives the greatest first.
    fn cmp(&self, other: &Planned) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Planned) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Planned {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_those_of_one_time_as_they_were_planned() {
        let mut queue = Queue::default();
        let slot = |index| Event::Ready(Slot { index, serial: 0 });
        for (index, at) in [(1, 5 * PAGE), (2, 7), (3, 5 * PAGE), (4, 5 * PAGE - 1), (5, 7)] {
            queue.plan(at, slot(index));
        }
        let mut seen = Vec::new();
        while let Some((at, Event::Ready(slot))) = queue.next() {
            seen.push(slot.index);
            if slot.index == 3 {
                queue.plan(at, Event::Ready(Slot { index: 6, serial: 0 }));
            }
        }
        assert_eq!(seen, [2, 5, 4, 1, 3, 6]);
    }
}
