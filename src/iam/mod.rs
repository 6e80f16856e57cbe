//! The IAM wall: from a service's routes the least policy that lets a caller invoke them, and how near its walls it is.
//!
//! Behind an API with IAM authorization every caller's role needs a grant for every route it calls. Policies are short:
//! the day on which one route too many is granted, the deploy fails. Here a service's SDK declares its routes once,
//! its callers' policies are written from that, and a test says in CI how much still fits, or which wall was hit by
//! which route. Nothing is asked of AWS.
//!
//! ```
//! use eastwest::iam::{Api, Grants, IamError, Route, Routes};
//!
//! // In the SDK of the orders team.
//! pub const GET_ORDER: Route = Route::get("/orders/{id}");
//! pub const GET_LINES: Route = Route::get("/orders/{id}/lines");
//! pub const PLACE_ORDER: Route = Route::post("/orders");
//! pub const ORDERS: Routes = Routes::new("orders", &[GET_ORDER, GET_LINES, PLACE_ORDER]);
//!
//! // In the tests of a team that calls it.
//! # const _: &str = stringify!(
//! #[test]
//! # );
//! fn the_role_can_call_us_within_its_walls() -> Result<(), IamError> {
//!     let api = Api::new("eu-central-1", "123456789012", "a1b2c3d4e5", "prod")?;
//!     let grants = Grants::only(&ORDERS, &api, &[GET_ORDER, PLACE_ORDER])?;
//!
//!     // An error names the wall, its limit, the size, and the route at which it broke.
//!     let policies = grants.inline()?;
//!     assert!(policies.grants_left() >= 20, "{policies}");
//!     // The rest of the API's own wall: 300 resources.
//!     assert!(ORDERS.resources_left(300)? >= 20);
//!
//!     // `GET/orders/*` crosses slashes: the role may read the lines, too. Here that is known, and all there is.
//!     let told: Vec<String> = policies.warnings().iter().map(ToString::to_string).collect();
//!     assert_eq!(told.len(), 1);
//!     assert!(told[0].contains("also grants GET /orders/{id}/lines"));
//!
//!     // Deploy this one, or compare it with the one that is deployed.
//!     assert_eq!(
//!         policies.documents()[0].json(),
//!         concat!(
//!             r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"execute-api:Invoke","Resource":["#,
//!             r#""arn:aws:execute-api:eu-central-1:123456789012:a1b2c3d4e5/prod/GET/orders/*","#,
//!             r#""arn:aws:execute-api:eu-central-1:123456789012:a1b2c3d4e5/prod/POST/orders"]}]}"#,
//!         ),
//!     );
//!     Ok(())
//! }
//! # the_role_can_call_us_within_its_walls().unwrap();
//! ```
//!
//! # The walls
//!
//! | wall | most | page |
//! |---|---|---|
//! | all inline policies of a role together | 10,240 characters, white space not counted | *IAM and AWS STS quotas* |
//! | one managed policy | 6,144 characters, white space not counted | the same |
//! | managed policies attached to a role | 10, by request 25 | the same |
//! | the resource policy of a REST API | 8,192 characters, more by request | *Quotas for configuring and running a REST API in API Gateway* |
//! | the resources of a REST API | 300, more by request | the same |
//! | the policy of a VPC endpoint | 20,480 characters, white space included | *Control access to VPC endpoints using endpoint policies* |
//!
//! [`Space`] says which of them is meant and what is taken already; [`Wall`] has the figures.
//!
//! # What a resource grants
//!
//! A route becomes `arn:PARTITION:execute-api:REGION:ACCOUNT:API/STAGE/METHOD/PATH` (*Control access for invoking an API*),
//! with `*` for each variable and for `ANY`, and `${*}`, `${?}`, `${$}` for these characters in a path (*IAM policy elements:
//! Variables and tags*). In an ARN, `*` is any run of characters, slashes too, so `GET /orders/{id}` also grants
//! `GET /orders/7/lines`; and API Gateway's page says that it applies a wildcard to the rest of the expression. No
//! policy can say *one part*. [`Grants::accidental_grants`] lists the declared routes that are reached so. What must
//! not be reached needs a path that does not begin like a granted one.
//!
//! `{proxy+}` is one ARN: it costs next to nothing, and ends grants by route. [`Grants::coarsen_to_prefix`] widens
//! only when asked, and says what it grants on top.
#![allow(clippy::test_attr_in_doctest, reason = "the example runs its test by name")]

mod api;
mod coarsen;
mod document;
mod error;
mod grants;
mod policy_set;
mod reach;
mod route;
mod space;
mod template;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, clippy::panic)]
mod tests;
mod wall;
mod warning;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, clippy::panic)]
mod wildcards;

pub use api::{Api, Partition};
pub use coarsen::{Coarsened, Widened};
pub use document::{Document, characters};
pub use error::IamError;
pub use grants::Grants;
pub use policy_set::PolicySet;
pub use route::{Route, Routes, Verb};
pub use space::Space;
pub use wall::Wall;
pub use warning::{AccidentalGrant, Warning};
