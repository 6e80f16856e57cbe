//! What is known of one call.

use eastwest::{Attempt, Class};

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Get,
    KeyedPost,
    KeylessPost,
    Put,
}

/// One call: what was asked, what passed, what was committed, and how it ended.
#[derive(Debug)]
pub struct Record {
    pub kind: Kind,
    /// The key that its caller set, if it did.
    pub given: Option<String>,
    /// The keys that the callee saw.
    pub keys: Vec<String>,
    pub arrivals: Vec<Arrival>,
    pub commits: Vec<Commit>,
    /// So many more requests find the key in progress.
    pub busy: u32,
    pub end: Option<End>,
}

/// An attempt as the proxy saw it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub attempt: u32,
    /// The status of the answer whose head went out.
    pub status: Option<u16>,
    /// Whether all of it went out.
    pub delivered: bool,
}

/// One time that the callee did its work.
#[derive(Clone, Debug)]
pub struct Commit {
    pub commit: u64,
    pub key: Option<String>,
}

/// How a call ended for its caller.
#[derive(Debug)]
pub enum End {
    Answered { told: Vec<Told>, key: Option<String>, commit: Option<u64> },
    Dropped,
    Failed { told: Vec<Told>, may_have_committed: bool, line: String },
}

impl End {
    /// The line of its error, after a colon.
    pub fn line(&self) -> String {
        match self {
            End::Answered { .. } | End::Dropped => String::new(),
            End::Failed { line, .. } => format!(": {line}"),
        }
    }
}

/// An attempt as the client tells it.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub status: Option<u16>,
    pub never_sent: bool,
    pub timed_out: bool,
}

impl Record {
    pub fn new(kind: Kind, given: Option<&str>) -> Record {
        Record {
            kind,
            given: given.map(str::to_owned),
            keys: Vec::new(),
            arrivals: Vec::new(),
            commits: Vec::new(),
            busy: 0,
            end: None,
        }
    }

    pub fn saw_key(&mut self, key: Option<&str>) {
        if let Some(key) = key.filter(|key| !self.keys.iter().any(|known| known == key)) {
            self.keys.push(key.to_owned());
        }
    }
}

impl Told {
    pub fn of(attempt: &Attempt) -> Told {
        Told {
            status: attempt.status().map(|status| status.as_u16()),
            never_sent: attempt.class() == Class::NeverSent,
            timed_out: attempt.class() == Class::AttemptTimedOut,
        }
    }
}
