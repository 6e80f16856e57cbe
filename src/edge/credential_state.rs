//! What the credential cache knows, and what follows from it at a given time: no clock, no lock, no provider.

use crate::edge::environment::MissingVariable;
use crate::policy::moment::{Draw, Moment};
use crate::sync::watch;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What is held, what is being loaded, and what went wrong last.
#[derive(Default)]
pub(crate) struct State {
    held: Option<Held>,
    flight: Option<Flight>,
    flights: u64,
    failure: Option<(Moment, CredentialsFault)>,
    /// Since when and for how long no early refresh is begun, and after how many without gain.
    quiet: Option<(Moment, Duration)>,
    without_gain: u32,
    /// A refused set that the provider gave again, and when.
    unchanged: Option<(Moment, Credentials)>,
}

impl State {
    /// What a caller gets, or has to do.
    pub(crate) fn step(&self, now: Moment, settings: &CacheSettings) -> Step {
        let flight = self.flight_under_way(now, settings);
        if let Some(held) = self.held.as_ref().filter(|held| held.is_usable(now, settings)) {
            let quiet = self.quiet.is_some_and(|(since, time)| now.since(&since) < time);
            return if held.is_due(now) && flight.is_none() && !quiet {
                Step::UseAndRefresh(held.credentials.clone())
            } else {
                Step::Use(held.credentials.clone())
            };
        }
        self.step_beside(now, settings)
    }

    /// What a caller has to do to get another set than the one in use, which stays in use meanwhile.
    pub(crate) fn step_beside(&self, now: Moment, settings: &CacheSettings) -> Step {
        match (self.flight_under_way(now, settings), &self.failure) {
            (Some(flight), _) => Step::Join(flight.result.clone()),
            (None, Some((at, fault))) if now.since(at) < settings.failure_kept => Step::Fail(fault.clone()),
            (None, _) => Step::Load,
        }
    }

    /// A load that is long overdue belongs to a runtime that nobody drives.
    fn flight_under_way(&self, now: Moment, settings: &CacheSettings) -> Option<&Flight> {
        let overdue = settings.load_timeout.saturating_add(OVERDUE);
        self.flight.as_ref().filter(|flight| now.since(&flight.began) <= overdue)
    }

    /// Whether the set in use is this one, and came from the provider a short while ago.
    pub(crate) fn is_young(&self, credentials: &Credentials, now: Moment, settings: &CacheSettings) -> bool {
        let held = self.held.as_ref().filter(|held| same(&held.credentials, credentials));
        held.is_some_and(|held| now.since(&held.loaded) < settings.young)
    }

    /// Begins a load: its number, and the end by which its result is told.
    pub(crate) fn take_off(&mut self, now: Moment, early: bool) -> (u64, watch::Sender<Option<Loaded>>) {
        let (sender, receiver) = watch::channel(None);
        self.flights = self.flights.wrapping_add(1);
        self.flight = Some(Flight { id: self.flights, began: now, early, result: receiver });
        (self.flights, sender)
    }

    /// Forgets the set in use if it is the refused one.
    pub(crate) fn forget(&mut self, refused: &Credentials) {
        self.held.take_if(|held| same(&held.credentials, refused));
    }

    /// What is known without asking the provider, after `refused` was refused.
    pub(crate) fn known(
        &self,
        refused: &Credentials,
        now: Moment,
        settings: &CacheSettings,
    ) -> Option<Refreshed> {
        let held = self.held.as_ref().filter(|held| held.is_usable(now, settings))?;
        let changed = !same(&held.credentials, refused);
        let asked =
            |(at, pair): &(Moment, Credentials)| same(pair, refused) && now.since(at) < settings.failure_kept;
        (changed || self.unchanged.as_ref().is_some_and(asked))
            .then(|| Refreshed { credentials: held.credentials.clone(), changed })
    }

    /// Notes that the provider gave the refused set again.
    pub(crate) fn note_unchanged(&mut self, now: Moment, pair: &Credentials) {
        self.unchanged = Some((now, pair.clone()));
    }

    /// Ends the load of this number, unless another has taken its place; says whether it was an early refresh.
    pub(crate) fn land(
        &mut self,
        id: u64,
        loaded: &Loaded,
        now: Moment,
        draw: Draw,
        settings: &CacheSettings,
    ) -> bool {
        let Some(flight) = self.flight.take_if(|flight| flight.id == id) else {
            return false;
        };
        match loaded {
            Ok(credentials) => {
                let early = settings.early.saturating_sub(draw.up_to(settings.early / 5));
                let held = Held {
                    credentials: credentials.clone(),
                    loaded: now,
                    refresh_at: credentials.expiry().and_then(|expiry| expiry.checked_sub(early)),
                };
                // A refresh that brought a set which is due again must not be repeated at every call.
                let gained = !(flight.early && held.is_due(now));
                self.held = Some(held);
                self.failure = None;
                self.spare_provider(now, gained, draw);
            }
            Err(CredentialsFault::Abandoned) => {}
            Err(fault) => {
                self.failure = Some((now, fault.clone()));
                self.spare_provider(now, false, draw);
            }
        }
        flight.early
    }

    /// Backs off from the provider, twice as long each time, unless a load brought what it was begun for.
    fn spare_provider(&mut self, now: Moment, gained: bool, draw: Draw) {
        if gained {
            (self.quiet, self.without_gain) = (None, 0);
            return;
        }
        let doubled = FIRST_BACK_OFF.saturating_mul(1 << self.without_gain.min(8));
        self.quiet = Some((now, doubled.min(LONGEST_BACK_OFF).saturating_add(draw.up_to(FIRST_BACK_OFF))));
        self.without_gain = self.without_gain.saturating_add(1);
    }
}

/// How long credentials are kept and how a provider is spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSettings {
    /// How long before expiry a refresh begins: 5 minutes, of which up to a fifth is given away to jitter.
    pub(crate) early: Duration,
    /// How long a failure is answered without asking the provider again, while there is nothing to use: 1 second.
    pub(crate) failure_kept: Duration,
    /// How long one load may take: 5 seconds.
    pub(crate) load_timeout: Duration,
    /// How long a set is trusted to be right when a 401 may as well be about the user's token: 1 minute. Otherwise every
    /// bad token of a user would send this client to the provider.
    pub(crate) young: Duration,
}

impl Default for CacheSettings {
    fn default() -> CacheSettings {
        CacheSettings {
            early: Duration::from_secs(300),
            failure_kept: Duration::from_secs(1),
            load_timeout: Duration::from_secs(5),
            young: Duration::from_secs(60),
        }
    }
}

/// What a refresh after a refusal brought.
#[derive(Clone, Debug)]
pub(crate) struct Refreshed {
    /// The credentials to use from now on.
    #[cfg_attr(not(test), expect(dead_code, reason = "a call asks the cache anew before it signs"))]
    pub(crate) credentials: Credentials,
    /// Whether they differ from the refused ones in id, secret or token.
    pub(crate) changed: bool,
}

/// Why there are no credentials.
#[derive(Clone, Debug)]
pub(crate) enum CredentialsFault {
    /// The runtime that loaded them was shut down, or there is none.
    Abandoned,
    /// The provider panicked.
    Panicked,
    /// The provider failed.
    Provider(Arc<CredentialsError>),
    /// The provider did not answer within this time.
    ProviderTimedOut(Duration),
    /// Nothing came within this time, which was all that the caller had.
    TimedOut(Duration),
}

impl fmt::Display for CredentialsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialsFault::Abandoned => f.write_str("the runtime went away while credentials were loaded"),
            CredentialsFault::Panicked => f.write_str("the credentials provider panicked"),
            CredentialsFault::Provider(error) => match missing_variable(error.as_ref()) {
                Some(variable) => write!(f, "the credentials provider failed: {variable}"),
                None => f.write_str("the credentials provider failed"),
            },
            CredentialsFault::ProviderTimedOut(after) => {
                write!(f, "the credentials provider did not answer within {after:?}")
            }
            CredentialsFault::TimedOut(after) => {
                write!(f, "no credentials within the {after:?} that were left")
            }
        }
    }
}

impl Error for CredentialsFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CredentialsFault::Provider(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

struct Held {
    credentials: Credentials,
    loaded: Moment,
    refresh_at: Option<SystemTime>,
}

impl Held {
    fn is_usable(&self, now: Moment, settings: &CacheSettings) -> bool {
        // What the provider gave this second is used even if our clock says that it has expired: it may be our clock.
        self.credentials.expiry().is_none_or(|expiry| now.wall < expiry)
            || now.since(&self.loaded) < settings.failure_kept
    }

    fn is_due(&self, now: Moment) -> bool {
        self.refresh_at.is_some_and(|at| at <= now.wall)
    }
}

struct Flight {
    id: u64,
    began: Moment,
    /// Whether it refreshes a set that is still in use.
    early: bool,
    result: watch::Receiver<Option<Loaded>>,
}

/// What a caller of the cache does next.
pub(crate) enum Step {
    /// Ends with the failure of a moment ago.
    Fail(CredentialsFault),
    /// Waits for the load that is under way.
    Join(watch::Receiver<Option<Loaded>>),
    /// Begins a load and waits for it.
    Load,
    /// Takes what is held.
    Use(Credentials),
    /// Takes what is held, and begins a load that nobody waits for.
    UseAndRefresh(Credentials),
}

impl Step {
    /// Whether the caller begins a load.
    pub(crate) fn begins_a_load(&self) -> bool {
        matches!(self, Step::Load | Step::UseAndRefresh(_))
    }
}

/// The variable that the environment lacks, if that is what a provider's error comes from.
fn missing_variable(error: &CredentialsError) -> Option<MissingVariable> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(variable) = error.downcast_ref::<MissingVariable>() {
            return Some(*variable);
        }
        cause = error.source();
    }
    None
}

/// Whether two sets are the same pair and token, whenever they expire.
pub(crate) fn same(one: &Credentials, other: &Credentials) -> bool {
    one.access_key_id() == other.access_key_id()
        && one.secret_access_key() == other.secret_access_key()
        && one.session_token() == other.session_token()
}

/// The result of one load, told to all who wait for it.
pub(crate) type Loaded = Result<Credentials, CredentialsFault>;

const FIRST_BACK_OFF: Duration = Duration::from_secs(2);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
const OVERDUE: Duration = Duration::from_secs(1);
