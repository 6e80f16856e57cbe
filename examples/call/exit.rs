//! What a script can do about how the call ended.

use eastwest::{Error, ErrorKind};
use std::process::ExitCode;

/// How the call ended, by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// 0: there is an answer.
    Success = 0,
    /// 1: it failed, and none of the others says why.
    Failed = 1,
    /// 2: the command line, or a part of the call, is not valid; nothing was sent.
    Usage = 2,
    /// 10: the callee refuses the request as it is: change it.
    Rejected = 10,
    /// 11: not allowed, not known or not signed well: credentials, policy, clock, route.
    NotAllowed = 11,
    /// 12: come back later; nothing was done.
    Later = 12,
    /// 13: it failed and may have been carried out: ask again under the same key, or look it up.
    InDoubt = 13,
}

impl Exit {
    pub(crate) fn of(error: &Error) -> Exit {
        match error.kind() {
            _ if error.may_have_committed() => Exit::InDoubt,
            ErrorKind::Configuration => Exit::Usage,
            ErrorKind::Rejected | ErrorKind::TooLarge => Exit::Rejected,
            ErrorKind::Credentials
            | ErrorKind::Forbidden
            | ErrorKind::Route
            | ErrorKind::Signature
            | ErrorKind::Unauthorized => Exit::NotAllowed,
            ErrorKind::CircuitOpen
            | ErrorKind::InProgress
            | ErrorKind::Quota
            | ErrorKind::RateLimited
            | ErrorKind::Throttled
            | ErrorKind::Timeout
            | ErrorKind::Transport
            | ErrorKind::Unavailable => Exit::Later,
            _ => Exit::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
