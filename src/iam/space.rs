//! Where grants are to stand, and what stands there already.

use crate::iam::wall::Wall;

/// Where a policy is attached. Each place has its wall.
///
/// What is taken already counts: give [`characters`](crate::iam::characters) of the role's other inline policies, or
/// of the other statements of a resource's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Space<'a> {
    /// The policy of a VPC endpoint ([`Wall::EndpointPolicy`]).
    EndpointPolicy {
        /// Who may: account ids, ARNs of roles or users, or `*` alone.
        principals: &'a [&'a str],
        /// The characters of what else stands in it, white space included.
        taken: usize,
    },
    /// Inline policies of a role ([`Wall::InlinePolicies`]). All of them share the wall, so there is one document.
    Inline {
        /// The characters of the role's other inline policies.
        taken: usize,
    },
    /// Managed policies, attached to a role ([`Wall::ManagedPolicy`], [`Wall::AttachedPolicies`]).
    Managed {
        /// How many others are attached.
        attached: usize,
        /// How many may be attached: 10 by default, raised by request to 25 at most.
        quota: usize,
    },
    /// The resource policy of one REST API ([`Wall::ResourcePolicy`]). Full ARNs are written, because the gateway
    /// expands the short ones when it saves the policy (*Access policy language overview for Amazon API Gateway*).
    ResourcePolicy {
        /// Who may: account ids, ARNs of roles or users, or `*` alone.
        principals: &'a [&'a str],
        /// The characters of what else stands in it, white space included.
        taken: usize,
        /// How many characters it may have: 8,192 by default, raised by request.
        quota: usize,
    },
}

impl<'a> Space<'a> {
    /// The policy of a VPC endpoint, with nothing else in it.
    #[must_use]
    pub const fn endpoint_policy(principals: &'a [&'a str]) -> Space<'a> {
        Space::EndpointPolicy { principals, taken: 0 }
    }

    /// The inline policies of a role that has no others.
    #[must_use]
    pub const fn inline() -> Space<'a> {
        Space::Inline { taken: 0 }
    }

    /// The managed policies of a role that has no others, under the default quota of 10.
    #[must_use]
    pub const fn managed() -> Space<'a> {
        Space::Managed { attached: 0, quota: Wall::AttachedPolicies.limit() }
    }

    /// The resource policy of an API, with nothing else in it, under the default quota.
    #[must_use]
    pub const fn resource_policy(principals: &'a [&'a str]) -> Space<'a> {
        Space::ResourcePolicy { principals, taken: 0, quota: Wall::ResourcePolicy.limit() }
    }
}
