//! The line of those who wait for a token, the more important ones in front.

use crate::policy::rate_limit::Priority;
use std::collections::VecDeque;
use std::time::Duration;

/// A place in the line of those who wait for a token.
#[derive(Debug)]
#[must_use = "a place that is not left stands in the way of those behind it until its turn is over"]
pub(crate) struct Place {
    pub(crate) priority: Priority,
    pub(crate) number: u64,
}

/// Those who wait, by priority, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Line {
    next: u64,
    critical: VecDeque<Waiting>,
    normal: VecDeque<Waiting>,
    bulk: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    /// When it is expected back.
    due: Duration,
}

impl Line {
    pub(crate) fn join(&mut self, priority: Priority, now: Duration) -> Place {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.of(priority).push_back(Waiting { number, due: now });
        Place { priority, number }
    }

    /// Says when this one is expected back.
    pub(crate) fn expect(&mut self, place: &Place, due: Duration) {
        if let Some(waiting) = self.of(place.priority).iter_mut().find(|w| w.number == place.number) {
            waiting.due = due;
        }
    }

    pub(crate) fn leave(&mut self, place: &Place) {
        self.of(place.priority).retain(|waiting| waiting.number != place.number);
    }

    /// How many come before `number`: all that are more important, and of the same priority those with a lower number. Not counted is
    /// who did not come when it was its turn: a future that nobody polls must not hold up the others.
    pub(crate) fn ahead_of(&self, priority: Priority, number: u64, now: Duration) -> u32 {
        let nobody = VecDeque::new();
        let (above, above_that, own) = match priority {
            Priority::Critical => (&nobody, &nobody, &self.critical),
            Priority::Normal => (&nobody, &self.critical, &self.normal),
            Priority::Bulk => (&self.critical, &self.normal, &self.bulk),
        };
        let present = |waiting: &&Waiting| waiting.due.saturating_add(GRACE) >= now;
        let own = own.iter().take_while(|waiting| waiting.number < number);
        let ahead = above.iter().chain(above_that).chain(own).filter(present).count();
        u32::try_from(ahead).unwrap_or(u32::MAX)
    }

    fn of(&mut self, priority: Priority) -> &mut VecDeque<Waiting> {
        match priority {
            Priority::Bulk => &mut self.bulk,
            Priority::Critical => &mut self.critical,
            Priority::Normal => &mut self.normal,
        }
    }
}

/// Who comes later than this after its turn is passed over.
const GRACE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(5);

    #[test]
    fn who_is_more_important_stands_in_front_and_equals_stand_as_they_came() {
        let mut line = Line::default();
        let places: Vec<Place> = [Priority::Bulk, Priority::Normal, Priority::Bulk, Priority::Critical]
            .map(|priority| line.join(priority, NOW))
            .into();
        let ahead: Vec<u32> =
            places.iter().map(|place| line.ahead_of(place.priority, place.number, NOW)).collect();
        assert_eq!(ahead, [2, 1, 3, 0]);
    }

    #[test]
    fn who_leaves_is_in_nobody_s_way() {
        let mut line = Line::default();
        let (first, second) = (line.join(Priority::Normal, NOW), line.join(Priority::Normal, NOW));
        line.leave(&first);
        assert_eq!(line.ahead_of(Priority::Normal, second.number, NOW), 0);
        line.leave(&second);
        assert_eq!(line.ahead_of(Priority::Bulk, u64::MAX, NOW), 0);
    }

    #[test]
    fn who_does_not_come_when_it_is_its_turn_is_passed_over_until_it_comes() {
        let mut line = Line::default();
        let (late, next) = (line.join(Priority::Normal, NOW), line.join(Priority::Normal, NOW));
        let later = NOW + GRACE + Duration::from_nanos(1);
        assert_eq!(line.ahead_of(Priority::Normal, next.number, NOW + GRACE), 1);
        assert_eq!(line.ahead_of(Priority::Normal, next.number, later), 0);
        line.expect(&late, later);
        assert_eq!(line.ahead_of(Priority::Normal, next.number, later), 1);
    }
}
