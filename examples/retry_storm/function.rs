//! The functions that call one another: their sandboxes, and the executions in them.

use super::client::{Client, Recipe};
use super::dice::{Dice, nanos};
use super::queue::{From, Slot};
use super::scenario::Scenario;
use eastwest::policy::attempts::Attempts;
use eastwest::policy::breaker::Ticket;
use eastwest::policy::moment::Moment;
use eastwest::policy::retry_budget::RetryToken;

/// One request at work in one sandbox.
#[derive(Debug)]
pub(crate) struct Execution<'t> {
    pub(crate) request: u32,
    pub(crate) layer: u32,
    pub(crate) sandbox: u32,
    pub(crate) from: From,
    pub(crate) began: u64,
    /// When its caller will be gone.
    pub(crate) deadline: Option<u64>,
    pub(crate) call: Option<Call<'t>>,
}

/// The one call that an execution makes.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    pub(crate) attempts: Attempts<'t>,
    pub(crate) token: RetryToken,
    /// The breaker's leave for the attempt that is on its way.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) sent: Moment,
    /// Whether the attempt on its way is a probe of the fleet's breaker.
    pub(crate) fleet_probe: bool,
}

/// All functions but the last callee.
#[derive(Debug)]
pub(crate) struct Functions<'t> {
    /// By layer, the sandboxes that have nothing to do.
    idle: Vec<Vec<u32>>,
    clients: Vec<Client>,
    /// When a sandbox is replaced; empty if none ever is.
    replaced: Vec<u64>,
    lives: u64,
    executions: Vec<(u32, Option<Execution<'t>>)>,
    free: Vec<u32>,
    dice: Dice,
}

impl<'t> Functions<'t> {
    pub(crate) fn new(recipe: &Recipe, scenario: &Scenario, mut dice: Dice) -> Functions<'t> {
        let mut idle = vec![Vec::new(); scenario.hops as usize];
        for sandbox in 0..scenario.sandboxes {
            idle[(sandbox % scenario.hops) as usize].push(u32::try_from(sandbox).unwrap_or(u32::MAX));
        }
        let lives = scenario.sandbox_lives.map_or(0, nanos);
        let replaced = if lives == 0 { 0 } else { scenario.sandboxes };
        Functions {
            idle,
            clients: (0..scenario.sandboxes).map(|_| Client::new(recipe)).collect(),
            replaced: (0..replaced).map(|_| dice.below(lives)).collect(),
            lives,
            executions: Vec::new(),
            free: Vec::new(),
            dice,
        }
    }

    /// Takes any idle sandbox of a layer. None means that the function is at its limit.
    pub(crate) fn take(&mut self, layer: u32, now: u64, fresh: impl FnOnce() -> Client) -> Option<u32> {
        let idle = &mut self.idle[layer as usize];
        if idle.is_empty() {
            return None;
        }
        let sandbox = idle.swap_remove(self.dice.below(idle.len() as u64) as usize);
        if let Some(replaced) = self.replaced.get_mut(sandbox as usize)
            && *replaced <= now
        {
            *replaced = now + self.lives;
            self.clients[sandbox as usize] = fresh();
        }
        Some(sandbox)
    }

    pub(crate) fn begin(&mut self, execution: Execution<'t>) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            self.executions.push((0, None));
            (self.executions.len() - 1) as u32
        });
        let (serial, place) = &mut self.executions[index as usize];
        *serial += 1;
        *place = Some(execution);
        Slot { index, serial: *serial }
    }

    /// The execution and the client of its sandbox; none if it has ended.
    pub(crate) fn at(&mut self, slot: Slot) -> Option<(&mut Execution<'t>, &mut Client)> {
        let (serial, place) = &mut self.executions[slot.index as usize];
        let execution = place.as_mut().filter(|_| *serial == slot.serial)?;
        let client = &mut self.clients[execution.sandbox as usize];
        Some((execution, client))
    }

    /// Ends an execution; its sandbox is idle again.
    pub(crate) fn end(&mut self, slot: Slot) -> Option<Execution<'t>> {
        let (serial, place) = &mut self.executions[slot.index as usize];
        let ended = place.take_if(|_| *serial == slot.serial)?;
        self.free.push(slot.index);
        self.idle[ended.layer as usize].push(ended.sandbox);
        Some(ended)
    }
}
