//! What a service declares once: its routes, as constants.

use crate::iam::error::IamError;
use crate::iam::reach::{goes_before, serves};
use crate::iam::template::{Part, Piece, parts};
use crate::iam::wall::Wall;
use std::collections::BTreeSet;
use std::fmt;

/// The routes of a service's API: a constant of its SDK.
///
/// ```
/// use eastwest::iam::{Route, Routes};
///
/// pub const GET_ORDER: Route = Route::get("/orders/{id}");
/// pub const PLACE_ORDER: Route = Route::post("/orders");
/// pub const ORDERS: Routes = Routes::new("orders", &[GET_ORDER, PLACE_ORDER]);
///
/// # fn main() -> Result<(), eastwest::iam::IamError> {
/// // The root, `/orders` and `/orders/{id}`.
/// assert_eq!(ORDERS.resources()?, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes {
    name: &'static str,
    routes: &'static [Route],
}

impl Routes {
    /// Declares them under the service's name. They are checked where they are first used, so that this can be a
    /// constant.
    #[must_use]
    pub const fn new(name: &'static str, routes: &'static [Route]) -> Routes {
        Routes { name, routes }
    }

    /// The service's name. It is told in errors and stands in no policy.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The routes, as declared.
    #[must_use]
    pub const fn routes(&self) -> &'static [Route] {
        self.routes
    }

    /// The route by which a REST API takes a request, none where it takes none: what ties the calls of an SDK, as its tests record
    /// them, to what it declares.
    ///
    /// The path is the one below the stage, percent-encoded; a query after it does not count. A REST API looks for the resource
    /// first, the most specific one: a literal part goes before a variable, and that before a greedy one. Then it looks for the
    /// method among those of that resource alone, and after it for `ANY`. An HTTP API goes on to less specific paths that have the
    /// method; what is served here is served there too.
    ///
    /// ```
    /// # use eastwest::iam::{IamError, Route, Routes};
    /// # const GET_ORDER: Route = Route::get("/orders/{id}");
    /// # const ORDERS: Routes = Routes::new("orders", &[GET_ORDER]);
    /// assert_eq!(ORDERS.serving("GET", "/orders/o-1")?, Some(GET_ORDER));
    /// assert_eq!(ORDERS.serving("DELETE", "/orders/o-1")?, None);
    /// # Ok::<(), IamError>(())
    /// ```
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field `template`, if a route that is declared is none.
    pub fn serving(&self, method: &str, path: &str) -> Result<Option<Route>, IamError> {
        let path = path.split('?').next().unwrap_or_default();
        let words: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let (mut resource, mut best): (Vec<Part>, Option<Route>) = (Vec::new(), None);
        for route in self.routes {
            let parts = parts(route.template)?;
            if !serves(&parts, &words) {
                continue;
            }
            let is_another = resource.iter().map(Part::place).ne(parts.iter().map(Part::place));
            if resource.is_empty() || (is_another && goes_before(&parts, &resource)) {
                (resource, best) = (parts, None);
            } else if is_another {
                continue;
            }
            let of_method = route.verb.as_str() == method;
            if of_method || (route.verb == Verb::Any && best.is_none()) {
                best = Some(*route);
            }
        }
        Ok(best)
    }

    /// How many resources a REST API has that serves these routes and no others.
    ///
    /// Each distinct part of each path is one, and so is the root, which every API has. Variables in one place are one
    /// whatever they are called. An HTTP API has no resources; its quota is 300 routes.
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field `template`.
    pub fn resources(&self) -> Result<usize, IamError> {
        let mut seen = BTreeSet::from([String::new()]);
        for route in self.routes {
            seen.extend(route.nodes()?);
        }
        Ok(seen.len())
    }

    /// How many more resources fit into the one API that serves these routes. The quota is 300 by default
    /// ([`Wall::Resources`]) and raised by request.
    ///
    /// # Errors
    /// [`IamError::Wall`] if there are too many already, with the route that was one too many; [`IamError::Invalid`]
    /// with the field `template`.
    pub fn resources_left(&self, quota: usize) -> Result<usize, IamError> {
        let mut seen = BTreeSet::from([String::new()]);
        let mut broken = None;
        for route in self.routes {
            seen.extend(route.nodes()?);
            if seen.len() > quota && broken.is_none() {
                broken = Some(route);
            }
        }
        match broken {
            Some(route) => Err(IamError::Wall {
                wall: Wall::Resources,
                limit: quota,
                size: seen.len(),
                route: format!("{}: {route}", self.name),
            }),
            None => Ok(quota.saturating_sub(seen.len())),
        }
    }
}

/// A method and a path template: `GET /orders/{id}`.
///
/// `{id}` is one part of the path, `{proxy+}` all the rest of it. Literal parts are written as they stand in the path,
/// percent-encoded where a path needs it; the query is no part of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    template: &'static str,
    verb: Verb,
}

macro_rules! of_verb {
    ($($name:ident $verb:ident $told:literal;)*) => {
        impl Route {
            $(
                #[doc = concat!("A route of the method `", $told, "`.")]
                #[must_use]
                pub const fn $name(template: &'static str) -> Route {
                    Route::new(Verb::$verb, template)
                }
            )*
        }
    };
}

of_verb! {
    any Any "ANY";
    delete Delete "DELETE";
    get Get "GET";
    head Head "HEAD";
    options Options "OPTIONS";
    patch Patch "PATCH";
    post Post "POST";
    put Put "PUT";
}

impl Route {
    /// A route of a method.
    #[must_use]
    pub const fn new(verb: Verb, template: &'static str) -> Route {
        Route { template, verb }
    }

    /// The path template, as declared.
    #[must_use]
    pub const fn template(&self) -> &'static str {
        self.template
    }

    /// The method.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// Which requests it serves: the method, then the parts of the path.
    pub(super) fn shape(&self) -> Result<Vec<Part>, IamError> {
        let mut shape = vec![match self.verb {
            Verb::Any => Part::Variable("method".to_owned()),
            verb => Part::Literal(verb.as_str().to_owned()),
        }];
        shape.extend(parts(self.template)?);
        Ok(shape)
    }

    /// The resources of a REST API that its path runs through, but for the root.
    pub(super) fn nodes(&self) -> Result<Vec<String>, IamError> {
        let mut path = String::new();
        let parts = parts(self.template)?;
        let parts = parts.iter().filter(|part| !part.place().is_empty());
        let node = |part: &Part| {
            path.extend(["/", part.place()]);
            path.clone()
        };
        Ok(parts.map(node).collect())
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.template)
    }
}

/// The methods that API Gateway knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Every method: `ANY` to the gateway, `*` in an ARN.
    Any,
    /// `DELETE`
    Delete,
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `OPTIONS`
    Options,
    /// `PATCH`
    Patch,
    /// `POST`
    Post,
    /// `PUT`
    Put,
}

impl Verb {
    /// The method as the gateway's routes have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Any => "ANY",
            Verb::Delete => "DELETE",
            Verb::Get => "GET",
            Verb::Head => "HEAD",
            Verb::Options => "OPTIONS",
            Verb::Patch => "PATCH",
            Verb::Post => "POST",
            Verb::Put => "PUT",
        }
    }

    /// The method of a request, to send one; none for [`Verb::Any`].
    #[must_use]
    pub fn method(self) -> Option<http::Method> {
        match self {
            Verb::Any => None,
            Verb::Delete => Some(http::Method::DELETE),
            Verb::Get => Some(http::Method::GET),
            Verb::Head => Some(http::Method::HEAD),
            Verb::Options => Some(http::Method::OPTIONS),
            Verb::Patch => Some(http::Method::PATCH),
            Verb::Post => Some(http::Method::POST),
            Verb::Put => Some(http::Method::PUT),
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a resource is made of, for a shape.
pub(super) fn pieces(shape: &[Part]) -> Vec<Piece> {
    shape.iter().map(Part::piece).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const ROOT: &[Route] = &[Route::get("/")];
    const ORDERS: Routes = Routes::new(
        "orders",
        &[
            Route::get("/orders"),
            Route::post("/orders"),
            Route::get("/orders/{id}"),
            Route::get("/orders/{order}/lines"),
            Route::any("/files/{proxy+}"),
        ],
    );

    #[test]
    fn a_request_is_served_by_the_most_specific_route_that_takes_it() {
        let serving = |method, path| {
            let latest = Route::get("/orders/latest");
            let routes = [&[Route::any("/orders/{id}"), latest][..], ORDERS.routes()].concat();
            Routes::new("orders", routes.leak()).serving(method, path).unwrap().map(|route| route.to_string())
        };
        for (method, path, route) in [
            ("GET", "/orders", "GET /orders"),
            ("POST", "/orders", "POST /orders"),
            ("GET", "/orders/o-1", "GET /orders/{id}"),
            ("DELETE", "/orders/o-1", "ANY /orders/{id}"),
            ("GET", "/orders/latest", "GET /orders/latest"),
            ("GET", "/orders/o%2F1/lines", "GET /orders/{order}/lines"),
            ("PUT", "/files/a/b/c", "ANY /files/{proxy+}"),
            ("GET", "/orders?limit=1", "GET /orders"),
        ] {
            assert_eq!(serving(method, path).as_deref(), Some(route), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/orders/"),
            ("PUT", "/orders"),
            ("GET", "/files"),
            ("GET", "/files/"),
            ("GET", "/orders/o-1/lines/1"),
            ("get", "/orders"),
            // The resource is found, and has no such method.
            ("DELETE", "/orders/latest"),
        ] {
            assert_eq!(serving(method, path), None, "{method} {path}");
        }
        assert_eq!(Routes::new("root", ROOT).serving("GET", "/").unwrap(), Some(Route::get("/")));
    }

    #[test]
    fn the_resources_are_the_parts_of_all_paths_and_the_root() {
        // The root, /orders, /orders/{}, /orders/{}/lines, /files, /files/{+}
        assert_eq!(ORDERS.resources().unwrap(), 6);
        assert_eq!(Routes::new("none", &[]).resources().unwrap(), 1);
        assert_eq!(Routes::new("root", ROOT).resources().unwrap(), 1);
    }

    #[test]
    fn the_wall_of_resources_is_named_with_the_route_that_broke_it() {
        assert_eq!(ORDERS.resources_left(Wall::Resources.limit()).unwrap(), 294);
        assert_eq!(ORDERS.resources_left(6).unwrap(), 0);
        let error = ORDERS.resources_left(3).unwrap_err();
        let route = "orders: GET /orders/{order}/lines".to_owned();
        assert_eq!(error, IamError::Wall { wall: Wall::Resources, limit: 3, size: 6, route });
        let told = error.to_string();
        assert!(told.starts_with("the resources of an API (Quotas for configuring"), "{told}");
        assert!(told.contains("6 of 3 resources, broken at `orders: GET /orders/{order}/lines`"), "{told}");
    }

    #[test]
    fn a_method_of_the_gateway_is_a_method_to_send_by() {
        for route in
            [Route::delete("/"), Route::get("/"), Route::head("/"), Route::options("/"), Route::patch("/")]
        {
            assert_eq!(route.verb().method().unwrap().as_str(), route.verb().as_str());
        }
        assert_eq!(Route::post("/").verb().method(), Some(http::Method::POST));
        assert_eq!(Route::put("/").verb().method(), Some(http::Method::PUT));
        assert_eq!(Route::any("/").verb().method(), None);
    }
}
