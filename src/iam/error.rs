//! What keeps grants from becoming a policy: a value that is none, or a wall.

use crate::iam::wall::Wall;

/// Why there is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IamError {
    /// A value that AWS would refuse, or that would grant something else than it says.
    #[error("{field} `{value}`: {reason}")]
    #[non_exhaustive]
    Invalid {
        /// Which value: `account`, `api_id`, `depth`, `partition`, `principal`, `quota`, `region`, `route`, `routes`,
        /// `stage` or `template`.
        field: &'static str,
        /// The value as it was given.
        value: String,
        /// What it should be.
        reason: &'static str,
    },
    /// More than fits. The role, the policy or the API could not be deployed like this.
    #[error("{wall} ({}): {size} of {limit} {}, broken at `{route}`; {}", wall.page(), wall.unit(), wall.remedy())]
    #[non_exhaustive]
    Wall {
        /// Which wall.
        wall: Wall,
        /// The quota, in [`Wall::unit`]s, as raised where it was.
        limit: usize,
        /// What all of it would need, in the same unit, with what is taken already.
        size: usize,
        /// The first route that no longer fitted, in the order in which resources are written.
        route: String,
    },
}

impl IamError {
    /// The value at fault, if it is one.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self {
            IamError::Invalid { field, .. } => Some(field),
            IamError::Wall { .. } => None,
        }
    }

    /// The wall, if it is one.
    #[must_use]
    pub fn wall(&self) -> Option<Wall> {
        match self {
            IamError::Invalid { .. } => None,
            IamError::Wall { wall, .. } => Some(*wall),
        }
    }

    pub(super) fn invalid(field: &'static str, value: impl Into<String>, reason: &'static str) -> IamError {
        IamError::Invalid { field, value: value.into(), reason }
    }
}
