//! Which routes of which APIs a role may call, and which others it may call by that.

use crate::iam::api::Api;
use crate::iam::error::IamError;
use crate::iam::reach::reaches;
use crate::iam::route::{Route, Routes, pieces};
use crate::iam::template::{Part, Piece};
use crate::iam::warning::{AccidentalGrant, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// The routes that a role is granted, a resource each. Of the same grants in any order come the same documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    /// All that the services declare, granted or not.
    pub(super) declared: BTreeMap<Api, BTreeMap<Route, Vec<Part>>>,
    /// By resource, as it stands in a policy.
    pub(super) grants: BTreeMap<String, Grant>,
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) service: &'static str,
    pub(super) api: Api,
    pub(super) pieces: Vec<Piece>,
    /// What it is for; several, if their templates differ in the names of variables or a prefix stands for all.
    pub(super) routes: BTreeSet<Route>,
    /// Which requests are its own. None for a prefix.
    pub(super) shape: Option<Vec<Part>>,
}

impl Grants {
    /// Grants every route that a service declares.
    ///
    /// A route that is declared twice is granted once.
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field `template`.
    pub fn of(routes: &Routes, api: &Api) -> Result<Grants, IamError> {
        Grants::only(routes, api, routes.routes())
    }

    /// Grants some of the routes that a service declares: those that this caller calls.
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field `template`; with `route` for one that the service does not declare.
    pub fn only(routes: &Routes, api: &Api, wanted: &[Route]) -> Result<Grants, IamError> {
        let mut known = BTreeMap::new();
        for route in routes.routes() {
            known.insert(*route, route.shape()?);
        }
        let mut grants = BTreeMap::new();
        for route in wanted {
            let Some(shape) = known.get(route) else {
                return Err(IamError::invalid("route", route.to_string(), "the service does not declare it"));
            };
            let grant = Grant {
                service: routes.name(),
                api: api.clone(),
                pieces: pieces(shape),
                routes: BTreeSet::from([*route]),
                shape: Some(shape.clone()),
            };
            grant.put_into(&mut grants);
        }
        Ok(Grants { declared: BTreeMap::from([(api.clone(), known)]), grants })
    }

    /// Grants these too, of the same API or of another one.
    #[must_use]
    pub fn and(mut self, others: Grants) -> Grants {
        for (api, routes) in others.declared {
            self.declared.entry(api).or_default().extend(routes);
        }
        for grant in others.grants.into_values() {
            grant.put_into(&mut self.grants);
        }
        self
    }

    /// The resources as they stand in a policy, sorted: an ARN each, with `*` for each variable.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.grants.keys().map(String::as_str)
    }

    /// The declared routes that these grants reach beyond what they are for, because `*` crosses slashes in an ARN:
    /// `GET/orders/*`, for `GET /orders/{id}`, grants `GET /orders/{id}/lines` and `GET /orders/latest` as well.
    ///
    /// It tells those that are granted anyway too; [`Grants::warnings`] has those that are not. Routes that nobody
    /// declared, below a granted one, are reached likewise.
    #[must_use]
    pub fn accidental_grants(&self) -> Vec<AccidentalGrant> {
        let granted: BTreeSet<(&Api, &Route)> = self
            .grants
            .values()
            .flat_map(|grant| grant.routes.iter().map(|route| (&grant.api, route)))
            .collect();
        let mut found = Vec::new();
        for (resource, grant) in self.grants.iter().filter(|(_, grant)| grant.pieces.contains(&Piece::Any)) {
            for (route, shape) in self.declared.get(&grant.api).into_iter().flatten() {
                if !grant.routes.contains(route) && reaches(&grant.pieces, shape, grant.shape.as_deref()) {
                    found.push(AccidentalGrant {
                        resource: resource.clone(),
                        routes: grant.routes.iter().copied().collect(),
                        reaches: *route,
                        granted: granted.contains(&(&grant.api, route)),
                    });
                }
            }
        }
        found
    }

    /// What a reviewer should know of these grants, in a fixed order; empty if each resource grants what it says.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (resource, grant) in &self.grants {
            if grant.shape.is_none() {
                let routes = grant.routes.iter().copied().collect();
                warnings.push(Warning::Coarsened { resource: resource.clone(), routes });
            }
            for route in &grant.routes {
                warnings.extend(Warning::of_granted(*route));
            }
        }
        let accidents = self.accidental_grants().into_iter().filter(|accident| !accident.granted);
        warnings.extend(accidents.map(Warning::AlsoGrants));
        let rest_apis = self.declared.iter().filter(|(api, _)| !api.is_http_api());
        warnings.extend(rest_apis.flat_map(|(_, routes)| Warning::of_rest_api(routes)));
        warnings
    }
}

impl Grant {
    /// As IAM reads it (*Control access for invoking an API*).
    pub(super) fn resource(&self) -> String {
        let mut resource = self.api.to_string();
        for piece in &self.pieces {
            resource.extend(["/", &piece.escaped()]);
        }
        resource
    }

    /// Adds it, together with one of the same resource if there is one.
    pub(super) fn put_into(self, grants: &mut BTreeMap<String, Grant>) {
        let resource = self.resource();
        match grants.get_mut(&resource) {
            Some(known) => {
                known.routes.extend(self.routes);
                known.shape = known.shape.take().filter(|_| self.shape.is_some());
            }
            None => drop(grants.insert(resource, self)),
        }
    }

    /// How an error names it.
    pub(super) fn told(&self) -> String {
        let routes: Vec<String> = self.routes.iter().map(Route::to_string).collect();
        format!("{}: {}", self.service, routes.join(", "))
    }
}
