//! How long a store that failed is left alone.

use crate::policy::moment::{Draw, Moment};
use std::time::Duration;

/// The pause that a process makes with a store that failed or was too slow, so that no call waits for it again and again.
///
/// It doubles with each failure in a row, to 32 times as much, and is spread over its upper half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    in_row: u32,
    since: Option<(Moment, Duration)>,
}

impl Rest {
    /// Begins a pause that is `shortest` at most if it is the first in a row, and answers how long it is.
    pub(crate) fn begin(&mut self, shortest: Duration, now: Moment, draw: Draw) -> Duration {
        let longest = shortest.saturating_mul(1 << self.in_row.min(MOST_DOUBLINGS));
        let lasts = (longest / 2).saturating_add(draw.up_to(longest / 2));
        self.in_row = self.in_row.saturating_add(1);
        self.since = Some((now, lasts));
        lasts
    }

    /// The store has answered: there is no pause, and the next is the first again.
    pub(crate) fn ended(&mut self) {
        *self = Rest::default();
    }

    /// What is left of the pause; `None` if there is none. A sandbox that was frozen has waited meanwhile.
    #[must_use]
    pub(crate) fn left(&self, now: Moment) -> Option<Duration> {
        let (since, lasts) = self.since?;
        lasts.checked_sub(now.since(&since)).filter(|left| !left.is_zero())
    }
}

/// When trouble with a store was last told of aloud: once a minute, for a log full of repeats hides the line that matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aloud(Option<Moment>);

impl Aloud {
    /// Whether it may be told aloud now, which then is the only time for a minute.
    pub(crate) fn may_be_told(&mut self, now: Moment) -> bool {
        let may = self.0.is_none_or(|last| now.since(&last) >= BETWEEN_WARNINGS);
        if may {
            self.0 = Some(now);
        }
        may
    }
}

const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

const MOST_DOUBLINGS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn trouble_is_told_aloud_once_a_minute() {
        let (mut aloud, now) = (Aloud::default(), some_moment());
        let after = |seconds| Moment { monotonic: now.monotonic + S * seconds, wall: now.wall + S * seconds };
        let told = [0, 59, 60, 119, 120].map(|seconds| aloud.may_be_told(after(seconds)));
        assert_eq!(told, [true, false, true, false, true]);
    }

    #[test]
    fn it_doubles_with_each_failure_in_a_row_and_begins_anew_after_an_answer() {
        let (mut rest, now) = (Rest::default(), some_moment());
        let begin = |rest: &mut Rest, draw| rest.begin(S, now, draw).as_millis();
        let waits = [(); 7].map(|()| begin(&mut rest, Draw::HIGHEST));
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 32_000]);
        rest.ended();
        assert_eq!((rest.left(now), begin(&mut rest, Draw::LOWEST)), (None, 500));
    }

    #[test]
    fn it_is_over_when_its_time_is_by_whichever_clock_moved_further() {
        let (mut rest, mut now) = (Rest::default(), some_moment());
        rest.begin(2 * S, now, Draw::HIGHEST);
        now.monotonic += S;
        assert_eq!(rest.left(now), Some(S));
        now.wall += 2 * S;
        assert_eq!(rest.left(now), None);
    }
}
