//! Fewer and wider grants, when asked: prefixes in the place of routes, and what that grants on top.

use crate::iam::error::IamError;
use crate::iam::grants::{Grant, Grants};
use crate::iam::reach::reaches;
use crate::iam::route::Route;
use crate::iam::template::Piece;
use crate::iam::warning::list;
use std::collections::BTreeMap;
use std::fmt;

impl Grants {
    /// Grants by prefix: of paths longer than `depth` parts, the first `depth` stand and `*` is the rest. The method
    /// stands, too; shorter paths are granted as they were.
    ///
    /// Nothing here does so by itself. The result says what it grants on top, and so do the warnings from then on.
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field `depth` for 0: that is the whole API, and needs no routes.
    pub fn coarsen_to_prefix(&self, depth: usize) -> Result<Coarsened, IamError> {
        if depth == 0 {
            return Err(IamError::invalid("depth", "0", "a prefix has a part at least"));
        }
        let mut grants = BTreeMap::new();
        for grant in self.grants.values() {
            self.prefix(grant, depth).put_into(&mut grants);
        }
        let grants = Grants { declared: self.declared.clone(), grants };
        let wider = |(resource, _): &(&String, &Grant)| !self.grants.contains_key(*resource);
        let widened =
            grants.grants.iter().filter(wider).map(|(resource, grant)| self.widened(resource, grant));
        let widened = widened.collect();
        Ok(Coarsened { grants, widened })
    }

    fn prefix(&self, grant: &Grant, depth: usize) -> Grant {
        // The first piece is the method.
        let kept = depth.saturating_add(1);
        if grant.pieces.len() <= kept {
            return grant.clone();
        }
        let pieces: Vec<Piece> = grant.pieces.iter().take(kept).cloned().chain([Piece::Any]).collect();
        // `/orders/{id}` is `orders/*` before and after.
        let shape = grant.shape.clone().filter(|_| pieces == grant.pieces);
        Grant { pieces, shape, ..grant.clone() }
    }

    fn widened(&self, resource: &str, grant: &Grant) -> Widened {
        let reached_before = |route: &Route| {
            let of_api = self.grants.values().filter(|before| before.api == grant.api);
            let shape = self.declared.get(&grant.api).and_then(|routes| routes.get(route));
            let mut granting = of_api.filter(|before| {
                let reached =
                    shape.is_some_and(|shape| reaches(&before.pieces, shape, before.shape.as_deref()));
                before.routes.contains(route) || reached
            });
            granting.next().is_some()
        };
        let declared = self.declared.get(&grant.api).into_iter().flatten();
        let reached =
            declared.filter(|(_, shape)| reaches(&grant.pieces, shape, None)).map(|(route, _)| *route);
        Widened {
            resource: resource.to_owned(),
            replaces: grant.routes.iter().copied().collect(),
            also_grants: reached.filter(|route| !reached_before(route)).collect(),
        }
    }
}

/// Grants by prefix, and what they grant on top of those that they came from. It displays as that list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coarsened {
    grants: Grants,
    widened: Vec<Widened>,
}

impl Coarsened {
    /// The grants by prefix.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The grants by prefix, without the account of them.
    #[must_use]
    pub fn into_grants(self) -> Grants {
        self.grants
    }

    /// Each resource that was not there before. None, if no path was longer than the prefix.
    #[must_use]
    pub fn widened(&self) -> &[Widened] {
        &self.widened
    }
}

impl fmt::Display for Coarsened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, widened) in self.widened.iter().enumerate() {
            let end_of_line = if at == 0 { "" } else { "\n" };
            write!(f, "{end_of_line}{widened}")?;
        }
        Ok(())
    }
}

/// A prefix in the place of routes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Widened {
    /// The resource: it grants every path that begins like it, declared or not.
    pub resource: String,
    /// The routes in whose place it stands.
    pub replaces: Vec<Route>,
    /// The declared routes that no grant reached before and this one does.
    pub also_grants: Vec<Route>,
}

impl fmt::Display for Widened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` stands in the place of {}", self.resource, list(&self.replaces))?;
        f.write_str("; it grants all below it")?;
        if self.also_grants.is_empty() {
            return Ok(());
        }
        write!(f, ", of the declared routes also {}", list(&self.also_grants))
    }
}
