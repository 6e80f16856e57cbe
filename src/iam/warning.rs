//! What a reviewer of grants should know.

use crate::iam::route::{Route, Verb};
use crate::iam::template::{Part, of_rest_part};
use std::collections::BTreeMap;
use std::fmt;

/// Something that a set of grants does, or an API cannot do, beyond what the routes say at first sight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A route is granted that nobody asked for.
    AlsoGrants(AccidentalGrant),
    /// `ANY` is granted: every method, and `*` in its place crosses slashes as well.
    AnyVerb {
        /// The route.
        route: Route,
    },
    /// Routes were replaced by a prefix, as was asked for.
    Coarsened {
        /// The resource.
        resource: String,
        /// The routes in whose place it stands.
        routes: Vec<Route>,
    },
    /// `{proxy+}` is one ARN, and ends grants by route: whoever has it may call all that is behind it.
    Greedy {
        /// The route.
        route: Route,
    },
    /// A part of a path that a REST API refuses to have; an HTTP API may have it.
    NotRest {
        /// The route.
        route: Route,
        /// The part.
        part: String,
    },
    /// Two variables in one place, of different names. A REST API takes one only.
    Siblings {
        /// The route with the name that came first.
        first: Route,
        /// The route with another one.
        second: Route,
    },
}

impl Warning {
    pub(super) fn of_granted(route: Route) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if route.verb() == Verb::Any {
            warnings.push(Warning::AnyVerb { route });
        }
        if route.template().ends_with("+}") {
            warnings.push(Warning::Greedy { route });
        }
        warnings
    }

    /// What a REST API with these routes could not be made of.
    pub(super) fn of_rest_api(routes: &BTreeMap<Route, Vec<Part>>) -> Vec<Warning> {
        let (mut warnings, mut names) = (Vec::new(), BTreeMap::new());
        for (route, shape) in routes {
            let mut place = String::new();
            for part in shape.iter().skip(1) {
                match part {
                    Part::Literal(text) if text.bytes().all(of_rest_part) => {}
                    Part::Literal(text) => {
                        warnings.push(Warning::NotRest { route: *route, part: text.clone() });
                    }
                    Part::Greedy(_) | Part::Variable(_) => {
                        let (first, named) = names.entry(place.clone()).or_insert((*route, part));
                        if *named != part {
                            warnings.push(Warning::Siblings { first: *first, second: *route });
                        }
                    }
                }
                place.extend(["/", part.place()]);
            }
        }
        warnings
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::AlsoGrants(accident) => accident.fmt(f),
            Warning::AnyVerb { route } => {
                write!(f, "{route} grants every method; declare the methods that there are")
            }
            Warning::Coarsened { resource, routes } => {
                write!(f, "`{resource}` stands in the place of {}, and grants all below it", list(routes))
            }
            Warning::Greedy { route } => write!(f, "{route} is one ARN and ends grants by route"),
            Warning::NotRest { route, part } => write!(f, "{route}: a REST API refuses the part `{part}`"),
            Warning::Siblings { first, second } => {
                write!(f, "{first} and {second}: a REST API has one variable in a place, under one name")
            }
        }
    }
}

/// A declared route that is reached by the resource of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccidentalGrant {
    /// The resource, as it stands in the policy.
    pub resource: String,
    /// What it is for.
    pub routes: Vec<Route>,
    /// What it grants as well, at least in part.
    pub reaches: Route,
    /// Whether that is granted anyway, so that nothing changes.
    pub granted: bool,
}

impl fmt::Display for AccidentalGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccidentalGrant { resource, routes, reaches, granted } = self;
        let anyway = if *granted { " (granted anyway)" } else { "" };
        write!(f, "`{resource}`, for {}, also grants {reaches}{anyway}: `*` crosses slashes", list(routes))
    }
}

/// Routes in one line.
pub(super) fn list(routes: &[Route]) -> String {
    routes.iter().map(Route::to_string).collect::<Vec<_>>().join(", ")
}
