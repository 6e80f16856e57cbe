//! The walls: which quota, how much fits, which AWS page says so, and what to do on the day it is hit.

use std::fmt;

/// A quota that grants run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Wall {
    /// The managed policies attached to one role: 10, up to 25 by request.
    AttachedPolicies,
    /// The policy of one VPC endpoint: 20,480 characters, white space included.
    EndpointPolicy,
    /// All inline policies of one role together: 10,240 characters, white space not counted. Cannot be raised.
    InlinePolicies,
    /// One managed policy: 6,144 characters, white space not counted. Cannot be raised.
    ManagedPolicy,
    /// The resource policy of one REST API: 8,192 characters; more by request.
    ResourcePolicy,
    /// The resources of one REST API, each part of each path being one: 300; more by request.
    Resources,
}

impl Wall {
    /// The most that fits before anything was raised by request.
    #[must_use]
    pub const fn limit(self) -> usize {
        match self {
            Wall::AttachedPolicies => 10,
            Wall::EndpointPolicy => 20_480,
            Wall::InlinePolicies => 10_240,
            Wall::ManagedPolicy => 6_144,
            Wall::ResourcePolicy => 8_192,
            Wall::Resources => 300,
        }
    }

    /// The most that AWS grants on request, where its pages name a figure.
    #[must_use]
    pub const fn most(self) -> Option<usize> {
        match self {
            Wall::AttachedPolicies => Some(25),
            Wall::EndpointPolicy | Wall::InlinePolicies | Wall::ManagedPolicy => Some(self.limit()),
            Wall::ResourcePolicy | Wall::Resources => None,
        }
    }

    /// What is counted.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Wall::AttachedPolicies => "policies",
            Wall::Resources => "resources",
            _ => "characters",
        }
    }

    /// The title of the AWS page that the figure stands on.
    #[must_use]
    pub const fn page(self) -> &'static str {
        match self {
            Wall::AttachedPolicies | Wall::InlinePolicies | Wall::ManagedPolicy => "IAM and AWS STS quotas",
            Wall::EndpointPolicy => "Control access to VPC endpoints using endpoint policies",
            Wall::ResourcePolicy | Wall::Resources => {
                "Quotas for configuring and running a REST API in API Gateway"
            }
        }
    }

    /// What can be done, in half a sentence.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Wall::AttachedPolicies => {
                "have the quota raised (25 at most), split the role, or ask for prefixes"
            }
            Wall::EndpointPolicy => "allow the whole API at the endpoint and grant by route on the roles",
            Wall::InlinePolicies => "managed policies hold more, 6144 characters in each of 10",
            Wall::ManagedPolicy => "this one resource is too long for any managed policy",
            Wall::ResourcePolicy => "have the quota raised, or allow roles here and grant by route on them",
            Wall::Resources => "have the quota raised, or split the API",
        }
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wall::AttachedPolicies => "the managed policies attached to a role",
            Wall::EndpointPolicy => "the policy of a VPC endpoint",
            Wall::InlinePolicies => "the inline policies of a role",
            Wall::ManagedPolicy => "a managed policy",
            Wall::ResourcePolicy => "the resource policy of an API",
            Wall::Resources => "the resources of an API",
        })
    }
}
