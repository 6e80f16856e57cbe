//! Time of a world's own: it stands still while anybody can go on, and jumps to the next wait's end when nobody can.

use crate::edge::ambient::Ambient;
use crate::policy::moment::{Draw, Moment, some_moment};
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant, SystemTime};

/// Both clocks, the dice, and those who wait.
#[derive(Clone)]
pub(super) struct Clock(Arc<Mutex<Hands>>);

struct Hands {
    began: Instant,
    now: Moment,
    /// When the sandbox was frozen, and for how long.
    lost: Vec<(Instant, Duration)>,
    /// How far the wall clock jumped ahead, in all.
    leaps: Duration,
    dice: StdRng,
    waiting: BTreeMap<(Instant, u64), Waker>,
    tickets: u64,
}

impl Clock {
    pub(super) fn new(dice: StdRng) -> Clock {
        let (now, waiting) = (some_moment(), BTreeMap::new());
        let hands = Hands {
            began: now.monotonic,
            now,
            lost: Vec::new(),
            leaps: Duration::ZERO,
            dice,
            waiting,
            tickets: 0,
        };
        Clock(Arc::new(Mutex::new(hands)))
    }

    /// A number below `below`.
    pub(super) fn roll(&self, below: u32) -> u32 {
        self.hands().dice.random_range(0..below)
    }

    pub(super) fn pass(&self, time: Duration) {
        let mut hands = self.hands();
        hands.now.monotonic += time;
        hands.now.wall += time;
    }

    /// A time that has passed by now, by the clock that shows the most.
    pub(super) fn at_most(&self) -> Duration {
        let hands = self.hands();
        hands.now.monotonic.saturating_duration_since(hands.began) + hands.leaps
    }

    /// How much of the time since then passed while the sandbox was frozen.
    pub(super) fn lost_since(&self, then: Instant) -> Duration {
        self.hands().lost.iter().filter(|(at, _)| *at >= then).map(|(_, lasted)| *lasted).sum()
    }

    /// Goes on to the end of the next wait; now and then a clock jumps or the sandbox is frozen. False if nobody waits.
    fn go_on(&self) -> bool {
        let mut hands = self.hands();
        let Some(((at, _), waker)) = hands.waiting.pop_first() else {
            return false;
        };
        let passed = at.saturating_duration_since(hands.now.monotonic);
        hands.now.monotonic += passed;
        hands.now.wall += passed;
        let jump = Duration::from_secs(hands.dice.random_range(0..7_200));
        match hands.dice.random_range(0..200) {
            0 => {
                hands.leaps += jump;
                hands.now.wall += jump;
            }
            1 => hands.now.wall = hands.now.wall.checked_sub(jump).unwrap_or(SystemTime::UNIX_EPOCH),
            // A machine that stops takes its monotonic clock with it or does not.
            2 => {
                let at = hands.now.monotonic;
                hands.lost.push((at, jump));
                hands.now.monotonic += jump;
                hands.now.wall += jump;
            }
            _ => {}
        }
        drop(hands);
        waker.wake();
        true
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().unwrap()
    }
}

impl Ambient for Clock {
    fn now(&self) -> Moment {
        self.hands().now
    }

    fn draw(&self) -> Draw {
        Draw(self.hands().dice.random())
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        assert!(!wait.is_zero(), "a wait of zero is not a wait");
        let mut hands = self.hands();
        hands.tickets += 1;
        let ends = hands.now.monotonic + wait;
        Box::pin(Sleep { clock: self.clone(), place: (ends, hands.tickets) })
    }
}

struct Sleep {
    clock: Clock,
    place: (Instant, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut hands = self.clock.hands();
        if hands.now.monotonic >= self.place.0 {
            return Poll::Ready(());
        }
        hands.waiting.insert(self.place, task.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.hands().waiting.remove(&self.place);
    }
}

/// Work whose caller may walk away from it.
pub(super) struct Fate<F: Future> {
    work: Option<Pin<Box<F>>>,
    patience: Option<u32>,
}

impl<F: Future> Fate<F> {
    /// What becomes of `work`; none if it was dropped after so many polls.
    pub(super) fn of(work: F, patience: Option<u32>) -> Fate<F> {
        Fate { work: Some(Box::pin(work)), patience }
    }
}

impl<F: Future> Future for Fate<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        if self.patience == Some(0) {
            self.work = None;
            return Poll::Ready(None);
        }
        self.patience = self.patience.map(|polls| polls - 1);
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        work.as_mut().poll(task).map(Some)
    }
}

/// Runs all of it to the end, on this thread.
pub(super) fn run_all<F: Future<Output = ()>>(clock: &Clock, work: impl Iterator<Item = F>) {
    let ready = Arc::new(Mutex::new(VecDeque::new()));
    let mut tasks: Vec<_> = work.map(|work| Some(Box::pin(work))).collect();
    let bells: Vec<_> = (0..tasks.len())
        .map(|task| Waker::from(Arc::new(Bell { task, ready: Arc::clone(&ready) })))
        .collect();
    ready.lock().unwrap().extend(0..tasks.len());
    let mut left = tasks.len();
    while left > 0 {
        let next = ready.lock().unwrap().pop_front();
        let Some(task) = next else {
            assert!(clock.go_on(), "somebody waits for what never comes");
            continue;
        };
        let Some(work) = &mut tasks[task] else { continue };
        if pin!(work).as_mut().poll(&mut Context::from_waker(&bells[task])).is_ready() {
            tasks[task] = None;
            left -= 1;
        }
    }
}

struct Bell {
    task: usize,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.task);
    }
}
