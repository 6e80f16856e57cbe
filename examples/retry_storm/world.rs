//! The stage: arrivals, the gateway, the last callee, and what happens when.

use super::client::{Client, Recipe};
use super::dice::{Dice, nanos};
use super::function::{Execution, Functions};
use super::gateway::{Bucket, Pool};
use super::queue::{Event, From, Queue, Sent};
use super::scenario::{Fault, GATEWAY_WAITS, PUBLIC_WORK, Scenario, WAY, WORK};
use super::tally::Tally;
use super::wire::{Reply, Wires};
use eastwest::policy::attempts::Terms;
use eastwest::policy::fleet::shared::SharedState;
use eastwest::policy::moment::Moment;
use std::time::{Duration, Instant, SystemTime};

/// Plays a scenario with one client from its first arrival until its last execution has ended.
pub(crate) fn simulate(recipe: &Recipe, scenario: &Scenario, seed: u64) -> Tally {
    let (terms, wires) = (recipe.terms(), Wires::new());
    let mut world = World::new(recipe, scenario, (&terms, &wires), seed);
    world.run();
    world.tally
}

pub(crate) struct World<'t> {
    pub(crate) recipe: &'t Recipe,
    pub(crate) terms: &'t Terms,
    pub(crate) wires: &'t Wires,
    pub(crate) now: u64,
    pub(crate) queue: Queue,
    pub(crate) functions: Functions<'t>,
    pub(crate) tally: Tally,
    /// What the fleet shares of each callee, by its layer less one.
    pub(crate) shared: Vec<SharedState>,
    /// For the waits and the breaker's jitter.
    pub(crate) policy_dice: Dice,
    pub(crate) work_dice: Dice,
    scenario: &'t Scenario,
    origin: Moment,
    bucket: Bucket,
    pool: Pool,
    callee_busy: u64,
    arrival_dice: Dice,
    public_dice: Dice,
    fault_dice: Dice,
    fault: std::ops::Range<u64>,
}

impl<'t> World<'t> {
    fn new(
        recipe: &'t Recipe,
        scenario: &'t Scenario,
        (terms, wires): (&'t Terms, &'t Wires),
        seed: u64,
    ) -> World<'t> {
        World {
            recipe,
            terms,
            wires,
            now: 0,
            queue: Queue::default(),
            functions: Functions::new(recipe, scenario, Dice::new(seed, 1)),
            tally: Tally::new(scenario),
            shared: vec![SharedState::default(); scenario.hops as usize],
            policy_dice: Dice::new(seed, 2),
            work_dice: Dice::new(seed, 3),
            scenario,
            origin: Moment { monotonic: origin(), wall: SystemTime::UNIX_EPOCH },
            bucket: Bucket::new(scenario.bucket),
            pool: Pool::new(scenario.sandboxes),
            callee_busy: 0,
            arrival_dice: Dice::new(seed, 4),
            public_dice: Dice::new(seed, 5),
            fault_dice: Dice::new(seed, 6),
            fault: nanos(scenario.fault_begins())..nanos(scenario.fault_ends()),
        }
    }

    fn run(&mut self) {
        self.queue.plan(0, Event::RequestComes);
        self.queue.plan(0, Event::PublicComes);
        while let Some((at, event)) = self.queue.next() {
            self.now = at;
            match event {
                Event::Answered(from, reply) => self.answered(from, reply),
                Event::Arrives(sent) if u64::from(sent.layer) == self.scenario.hops => self.callee(sent),
                Event::Arrives(sent) => self.begin(sent),
                Event::CalleeEnds => {
                    self.callee_busy -= 1;
                    self.pool.give_back();
                }
                Event::PublicComes => self.public_comes(),
                Event::PublicEnds => self.pool.give_back(),
                Event::Ready(slot) => self.attempt(slot),
                Event::RequestComes => self.request_comes(),
                Event::TimesOut(attempted) => self.timed_out(attempted),
            }
        }
    }

    /// The time as the shipped policy takes it.
    pub(crate) fn moment(&self) -> Moment {
        let since = Duration::from_nanos(self.now);
        Moment { monotonic: self.origin.monotonic + since, wall: self.origin.wall + since }
    }

    pub(crate) fn instant(&self, at: u64) -> Instant {
        self.origin.monotonic + Duration::from_nanos(at)
    }

    pub(crate) fn plan(&mut self, after: u64, event: Event) {
        self.queue.plan(self.now.saturating_add(after), event);
    }

    /// Sends a request through the gateway.
    pub(crate) fn send(&mut self, sent: Sent) {
        let admitted = self.bucket.draw(self.now);
        let second = self.tally.at(self.now);
        second.fleet_offered += 1;
        second.fleet_refused += u64::from(!admitted);
        if admitted {
            self.plan(nanos(WAY), Event::Arrives(sent));
        } else {
            self.plan(2 * nanos(WAY), Event::Answered(sent.from, Reply::TooManyRequests));
        }
    }

    pub(crate) fn reply(&mut self, from: From, reply: Reply) {
        self.plan(nanos(WAY), Event::Answered(from, reply));
    }

    fn answered(&mut self, from: From, reply: Reply) {
        match from {
            From::Door(request) => self.tally.request_ends(request, reply == Reply::Success),
            From::Function(attempted) => self.observe(attempted, self.wires.outcome(reply)),
        }
    }

    fn request_comes(&mut self) {
        let request = self.tally.request_comes(self.now);
        self.send(Sent { request, layer: 0, from: From::Door(request), time_budget_ms: None });
        let gap = self.arrival_dice.gap((1e9 / self.scenario.requests()) as u64);
        self.come_again(gap, Event::RequestComes);
    }

    fn public_comes(&mut self) {
        let refused = !self.bucket.draw(self.now);
        let starved = !refused && !self.pool.take();
        let second = self.tally.at(self.now);
        second.public_offered += 1;
        second.public_refused += u64::from(refused);
        second.public_starved += u64::from(starved);
        if !refused && !starved {
            let work = self.public_dice.about(PUBLIC_WORK);
            self.plan(work, Event::PublicEnds);
        }
        let gap = self.public_dice.gap((1e9 / self.scenario.fleet_tokens) as u64);
        self.come_again(gap, Event::PublicComes);
    }

    fn come_again(&mut self, gap: u64, event: Event) {
        if self.now + gap < nanos(self.scenario.arrivals_end()) {
            self.plan(gap, event);
        }
    }

    /// The last callee: the one that the fault is in.
    fn callee(&mut self, sent: Sent) {
        let fault = self.fault.contains(&self.now).then_some(self.scenario.fault);
        let refuses = match fault {
            Some(Fault::Refuses) => true,
            Some(Fault::Independent(percent)) => self.fault_dice.below(100) < percent,
            Some(Fault::BrownOut(percent)) => {
                self.callee_busy as f64 >= self.scenario.callee_need() * percent as f64 / 100.0
            }
            Some(Fault::Hang(_) | Fault::Throws) | None => false,
        };
        if refuses || !self.pool.take() {
            return self.reply(sent.from, Reply::ServerError);
        }
        self.callee_busy += 1;
        let (lasts, reply) = match fault {
            Some(Fault::Hang(time)) => (nanos(time), Reply::BadGateway),
            Some(Fault::Throws) => (self.work_dice.about(WORK), Reply::BadGateway),
            _ => (self.work_dice.about(WORK), Reply::Success),
        };
        self.tally.requests[sent.request as usize].sandbox_nanos += lasts;
        self.plan(lasts, Event::CalleeEnds);
        let waits = nanos(GATEWAY_WAITS);
        let (answers, reply) = if lasts > waits { (waits, Reply::GatewayTimeout) } else { (lasts, reply) };
        self.plan(answers + nanos(WAY), Event::Answered(sent.from, reply));
    }

    /// An execution that has ended: the time of its sandbox is the request's.
    pub(crate) fn charge(&mut self, execution: &Execution<'t>) {
        self.tally.requests[execution.request as usize].sandbox_nanos += self.now - execution.began;
    }

    /// A sandbox that was replaced knows nothing of what its forerunner saw.
    pub(crate) fn fresh_client(&self) -> Client {
        Client::new(self.recipe)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "an instant can only be had from the clock; no result depends on it"
)]
fn origin() -> Instant {
    Instant::now()
}
