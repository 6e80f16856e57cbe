//! Grants as policy documents within the walls, and how much still fits.

use crate::iam::api::is_account;
use crate::iam::document::{Document, characters, json};
use crate::iam::error::IamError;
use crate::iam::grants::{Grant, Grants};
use crate::iam::space::Space;
use crate::iam::wall::Wall;
use crate::iam::warning::Warning;
use std::fmt;

/// Policy documents that grant some routes, each within its wall, together within theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySet {
    wall: Wall,
    documents: Vec<Document>,
    /// How many more documents there may be, and how many characters each has left beside its frame.
    more_documents: usize,
    room_of_one: usize,
    /// The mean length of a resource, rounded up.
    mean: usize,
    warnings: Vec<Warning>,
}

impl Grants {
    /// One inline policy, for a role that has no others: [`Space::inline`].
    ///
    /// # Errors
    /// As [`Grants::within`].
    pub fn inline(&self) -> Result<PolicySet, IamError> {
        self.within(Space::inline())
    }

    /// Managed policies, for a role that has no others: [`Space::managed`].
    ///
    /// # Errors
    /// As [`Grants::within`].
    pub fn managed(&self) -> Result<PolicySet, IamError> {
        self.within(Space::managed())
    }

    /// Writes the documents for a space. Managed policies are filled first-fit, in the order of the resources; all
    /// others are one document.
    ///
    /// # Errors
    /// [`IamError::Wall`] if it does not fit, with the wall, its limit, the size and the first route that no longer
    /// fitted. [`IamError::Invalid`] with the field `routes` if nothing is granted, or if a resource policy would be
    /// of several APIs; `partition` if the APIs are of several; `quota` if it is none that AWS gives; `principal` if
    /// it is none of the grants' partition.
    pub fn within(&self, space: Space<'_>) -> Result<PolicySet, IamError> {
        self.check(space)?;
        let principals = match space {
            Space::Inline { .. } | Space::Managed { .. } => None,
            Space::ResourcePolicy { principals, .. } | Space::EndpointPolicy { principals, .. } => {
                Some(principals)
            }
        };
        let bounds = Bounds::of(space, characters(&json(principals, &[])?));
        let shelves = match bounds.wall {
            Wall::AttachedPolicies => self.on_shelves(&bounds)?,
            _ => self.on_one(&bounds)?,
        };
        let documents = shelves.iter().map(|shelf| document(principals, shelf, bounds.room));
        let documents: Vec<Document> = documents.collect::<Result<_, _>>()?;
        let lengths: usize = self.resources().map(|resource| resource.chars().count()).sum();
        Ok(PolicySet {
            wall: bounds.wall,
            more_documents: bounds.most.saturating_sub(documents.len()),
            documents,
            room_of_one: bounds.room.saturating_sub(bounds.frame),
            mean: lengths.div_ceil(self.grants.len().max(1)),
            warnings: self.warnings(),
        })
    }

    /// All in one document.
    fn on_one(&self, bounds: &Bounds) -> Result<Vec<Shelf<'_>>, IamError> {
        let (mut size, mut broken) = (bounds.frame.saturating_sub(1), None);
        for (resource, grant) in &self.grants {
            size = size.saturating_add(cost(resource));
            broken = broken.or((size > bounds.room).then_some(grant));
        }
        match broken {
            Some(grant) => Err(bounds.broken(bounds.taken.saturating_add(size), grant)),
            None => Ok(vec![self.grants.iter().collect()]),
        }
    }

    /// One shelf after the other, each resource on the first that has room for it.
    fn on_shelves(&self, bounds: &Bounds) -> Result<Vec<Shelf<'_>>, IamError> {
        // The first of a list has no comma before it.
        let empty = bounds.room.saturating_sub(bounds.frame).saturating_add(1);
        let mut shelves: Vec<(usize, Shelf<'_>)> = Vec::new();
        for (resource, grant) in &self.grants {
            let cost = cost(resource);
            if cost > empty {
                let size = bounds.frame.saturating_add(cost).saturating_sub(1);
                let (wall, limit, route) = (Wall::ManagedPolicy, bounds.room, grant.told());
                return Err(IamError::Wall { wall, limit, size, route });
            }
            match shelves.iter_mut().find(|(free, _)| *free >= cost) {
                Some((free, shelf)) => {
                    *free = free.saturating_sub(cost);
                    shelf.push((resource, grant));
                }
                None => shelves.push((empty.saturating_sub(cost), vec![(resource, grant)])),
            }
        }
        let shelves: Vec<Shelf<'_>> = shelves.into_iter().map(|(_, shelf)| shelf).collect();
        match shelves.get(bounds.most).and_then(|shelf| shelf.first()) {
            Some((_, grant)) => Err(bounds.broken(bounds.taken.saturating_add(shelves.len()), grant)),
            None => Ok(shelves),
        }
    }

    fn check(&self, space: Space<'_>) -> Result<(), IamError> {
        let Some(first) = self.grants.values().next() else {
            return Err(IamError::invalid("routes", "", "nothing is granted"));
        };
        let partition = first.api.partition();
        if let Some(other) = self.grants.values().find(|grant| grant.api.partition() != partition) {
            let reason = "a role is of one partition, and so are the APIs that it calls";
            return Err(IamError::invalid("partition", other.api.partition().as_str(), reason));
        }
        let principals = match space {
            Space::Inline { .. } => return Ok(()),
            Space::Managed { quota, .. } => {
                let most = Wall::AttachedPolicies.most().unwrap_or(quota);
                let reason = "1 to 25 managed policies can be attached to a role";
                let refused = || IamError::invalid("quota", quota.to_string(), reason);
                return (1..=most).contains(&quota).then_some(()).ok_or_else(refused);
            }
            Space::EndpointPolicy { principals, .. } => principals,
            Space::ResourcePolicy { principals, .. } => {
                if let Some(other) = self.grants.values().find(|grant| !grant.api.is_stage_beside(&first.api))
                {
                    let reason = "a resource policy is of one API";
                    return Err(IamError::invalid("routes", other.told(), reason));
                }
                principals
            }
        };
        if principals.is_empty() {
            return Err(IamError::invalid("principal", "", "the policy of a resource names who may"));
        }
        let start = format!("arn:{partition}:");
        let named = |arn: &str| {
            let rest = arn.strip_prefix(&start).and_then(|rest| rest.split_once("::"));
            let rest = rest.filter(|(service, _)| ["iam", "sts"].contains(service)).map(|(_, rest)| rest);
            let (account, name) = rest.and_then(|rest| rest.split_once(':')).unwrap_or_default();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-/".contains(&byte);
            is_account(account) && !name.is_empty() && name.bytes().all(plain)
        };
        let refused =
            principals.iter().find(|text| !(is_account(text) || named(text) || principals == ["*"]));
        let reason = "an account id, an ARN of IAM or STS in the APIs' partition, or `*` alone";
        refused.map_or(Ok(()), |text| Err(IamError::invalid("principal", *text, reason)))
    }
}

impl PolicySet {
    /// The documents: none is empty. One only, unless they are managed policies.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The wall that ends this set as a whole.
    #[must_use]
    pub fn wall(&self) -> Wall {
        self.wall
    }

    /// How many characters are left for resources, in these documents and in those that may still be attached.
    #[must_use]
    pub fn free_characters(&self) -> usize {
        let free = self.documents.iter().map(Document::free_characters).sum::<usize>();
        free.saturating_add(self.more_documents.saturating_mul(self.room_of_one))
    }

    /// How many more grants fit, if they are as long as these are on average.
    #[must_use]
    pub fn grants_left(&self) -> usize {
        self.grants_left_of(self.mean)
    }

    /// How many more grants fit whose resources, whole ARNs, are of so many characters.
    #[must_use]
    pub fn grants_left_of(&self, characters: usize) -> usize {
        let each = characters.saturating_add(3);
        let here = self.documents.iter().map(|document| document.free / each).sum::<usize>();
        // The first of a list has no comma before it.
        let there = self.room_of_one.saturating_add(1) / each;
        here.saturating_add(self.more_documents.saturating_mul(there))
    }

    /// What a reviewer should know of the grants in it ([`Grants::warnings`]).
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// One line for a log of CI.
impl fmt::Display for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (documents, free, left) = (self.documents.len(), self.free_characters(), self.grants_left());
        let wall = self.wall;
        write!(f, "{wall}: {documents} written, {free} characters free, {left} grants left")
    }
}

/// What goes into one document.
type Shelf<'a> = Vec<(&'a String, &'a Grant)>;

/// What a space leaves.
struct Bounds {
    wall: Wall,
    limit: usize,
    taken: usize,
    /// How many documents there may be at most.
    most: usize,
    /// How many characters one document may have.
    room: usize,
    /// How many it has without resources.
    frame: usize,
}

impl Bounds {
    fn of(space: Space<'_>, frame: usize) -> Bounds {
        let (wall, limit, taken) = match space {
            Space::EndpointPolicy { taken, .. } => {
                (Wall::EndpointPolicy, Wall::EndpointPolicy.limit(), taken)
            }
            Space::Inline { taken } => (Wall::InlinePolicies, Wall::InlinePolicies.limit(), taken),
            Space::Managed { attached, quota } => (Wall::AttachedPolicies, quota, attached),
            Space::ResourcePolicy { taken, quota, .. } => (Wall::ResourcePolicy, quota, taken),
        };
        let left = limit.saturating_sub(taken);
        let (most, room) = match wall {
            Wall::AttachedPolicies => (left, Wall::ManagedPolicy.limit()),
            _ => (1, left),
        };
        Bounds { wall, limit, taken, most, room, frame }
    }

    fn broken(&self, size: usize, grant: &Grant) -> IamError {
        IamError::Wall { wall: self.wall, limit: self.limit, size, route: grant.told() }
    }
}

/// A resource with its quotes and the comma before it. The first of a list has none.
fn cost(resource: &str) -> usize {
    resource.chars().count().saturating_add(3)
}

fn document(
    principals: Option<&[&str]>,
    shelf: &[(&String, &Grant)],
    room: usize,
) -> Result<Document, IamError> {
    let resources: Vec<&str> = shelf.iter().map(|(resource, _)| resource.as_str()).collect();
    let json = json(principals, &resources)?;
    Ok(Document {
        free: room.saturating_sub(characters(&json)),
        json,
        resources: resources.into_iter().map(str::to_owned).collect(),
        routes: shelf.iter().flat_map(|(_, grant)| grant.routes.iter().copied()).collect(),
    })
}
