//! The promises of the documents: within the walls, and granting what the templates say.

use crate::iam::wildcards::matches;
use crate::iam::{Api, Grants, IamError, PolicySet, Route, Routes, Space, Verb, Wall, Warning, characters};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

const GET_ORDER: Route = Route::get("/orders/{id}");
const GET_LINES: Route = Route::get("/orders/{id}/lines");
const PLACE_ORDER: Route = Route::post("/orders");
const ORDERS: Routes = Routes::new("orders", &[PLACE_ORDER, GET_LINES, GET_ORDER]);

fn api() -> Api {
    Api::new("eu-central-1", "123456789012", "a1b2c3d4e5", "prod").unwrap()
}

fn other_api() -> Api {
    Api::new("eu-central-1", "123456789012", "z9y8x7w6v5", "prod").unwrap()
}

/// Routes that are no constants.
fn routes_of(name: &'static str, routes: Vec<Route>) -> Routes {
    Routes::new(name, routes.leak())
}

/// As many routes as asked for, whose resources are all of one length.
fn numbered(name: &'static str, count: usize) -> Routes {
    let route = |n: usize| Route::get(format!("/items/{n:05}").leak());
    Routes::new(name, (0..count).map(route).collect::<Vec<_>>().leak())
}

fn all_of(routes: &Routes) -> Grants {
    Grants::of(routes, &api()).unwrap()
}

/// Wall, limit, size and route of an error.
fn wall(error: IamError) -> (Wall, usize, usize, String) {
    match error {
        IamError::Wall { wall, limit, size, route } => (wall, limit, size, route),
        IamError::Invalid { .. } => panic!("{error}"),
    }
}

// ---- what is written ----

#[test]
fn the_documents_of_the_three_partitions_are_these() {
    for (region, partition) in
        [("eu-central-1", "aws"), ("cn-northwest-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
    {
        let api = Api::new(region, "123456789012", "a1b2c3d4e5", "prod").unwrap();
        let start = format!("arn:{partition}:execute-api:{region}:123456789012:a1b2c3d4e5/prod");
        let golden = format!(
            "{{\"Version\":\"2012-10-17\",\"Statement\":[{{\"Effect\":\"Allow\",\"Action\":\"execute-api:Invoke\",\
             \"Resource\":[\"{start}/GET/orders/*\",\"{start}/GET/orders/*/lines\",\"{start}/POST/orders\"]}}]}}"
        );
        for set in [Grants::of(&ORDERS, &api).unwrap().inline(), Grants::of(&ORDERS, &api).unwrap().managed()]
        {
            let set = set.unwrap();
            assert_eq!(set.documents().len(), 1);
            assert_eq!(set.documents()[0].json(), golden);
            assert_eq!(set.documents()[0].characters(), golden.len());
            assert_eq!(set.documents()[0].routes(), [GET_ORDER, GET_LINES, PLACE_ORDER]);
        }
    }
}

#[test]
fn root_default_stage_any_greedy_and_literal_wildcards_become_these_resources() {
    let routes = routes_of(
        "odd",
        vec![
            Route::get("/"),
            Route::any("/all"),
            Route::put("/files/{proxy+}"),
            Route::get("/$metadata"),
            Route::get("/a*b/{id}"),
        ],
    );
    let api = Api::new("us-east-1", "123456789012", "a1b2c3d4e5", "$default").unwrap();
    let grants = Grants::of(&routes, &api).unwrap();
    let start = "arn:aws:execute-api:us-east-1:123456789012:a1b2c3d4e5/$default";
    let expected = ["*/all", "GET/", "GET/${$}metadata", "GET/a${*}b/*", "PUT/files/*"]
        .map(|end| format!("{start}/{end}"));
    assert_eq!(grants.resources().collect::<Vec<_>>(), expected);
}

#[test]
fn a_policy_of_a_resource_names_its_principals() {
    let roles = ["arn:aws:iam::111122223333:role/team/checkout", "444455556666"];
    let set = all_of(&ORDERS).within(Space::resource_policy(&roles)).unwrap();
    let document: Value = serde_json::from_str(set.documents()[0].json()).unwrap();
    assert_eq!(document["Statement"][0]["Principal"]["AWS"], serde_json::json!(roles));
    let set = all_of(&ORDERS).within(Space::endpoint_policy(&["*"])).unwrap();
    let document: Value = serde_json::from_str(set.documents()[0].json()).unwrap();
    assert_eq!(document["Statement"][0]["Principal"], "*");
    assert_eq!(document["Statement"][0]["Resource"].as_array().unwrap().len(), 3);
}

#[test]
fn the_order_of_declaration_and_of_adding_changes_nothing() {
    let turned = routes_of("orders", vec![GET_ORDER, PLACE_ORDER, GET_LINES, GET_ORDER]);
    assert_eq!(all_of(&ORDERS), all_of(&turned));
    let stock = routes_of("stock", vec![Route::get("/stock/{sku}")]);
    let stock = || Grants::of(&stock, &other_api()).unwrap();
    let (one, other) = (all_of(&ORDERS).and(stock()), stock().and(all_of(&ORDERS)));
    assert_eq!(one.inline().unwrap(), other.inline().unwrap());
    assert_eq!(one.resources().count(), 4);
}

#[test]
fn a_route_granted_twice_or_under_another_variable_s_name_is_one_resource() {
    let routes = routes_of("orders", vec![GET_ORDER, Route::get("/orders/{order}"), GET_ORDER]);
    let grants = all_of(&routes).and(all_of(&routes));
    assert_eq!(grants.resources().count(), 1);
    let set = grants.inline().unwrap();
    assert_eq!(set.documents()[0].routes(), [GET_ORDER, Route::get("/orders/{order}")]);
    assert_eq!(
        set.warnings(),
        [Warning::Siblings { first: GET_ORDER, second: Route::get("/orders/{order}") }]
    );
}

// ---- what is refused ----

#[test]
fn what_is_no_grant_is_refused_by_its_field() {
    let field = |result: Result<PolicySet, IamError>| result.unwrap_err().field();
    let grants = all_of(&ORDERS);
    assert_eq!(Grants::only(&ORDERS, &api(), &[Route::get("/order")]).unwrap_err().field(), Some("route"));
    assert_eq!(field(Grants::only(&ORDERS, &api(), &[]).unwrap().inline()), Some("routes"));
    let bad = routes_of("orders", vec![PLACE_ORDER, Route::get("orders")]);
    assert_eq!(Grants::only(&bad, &api(), &[PLACE_ORDER]).unwrap_err().field(), Some("template"));
    for quota in [0, 26] {
        assert_eq!(field(grants.within(Space::Managed { attached: 0, quota })), Some("quota"));
    }
    let in_china = Api::new("cn-north-1", "123456789012", "a1b2c3d4e5", "prod").unwrap();
    assert_eq!(
        field(grants.clone().and(Grants::of(&ORDERS, &in_china).unwrap()).inline()),
        Some("partition")
    );
    let both = grants.clone().and(Grants::of(&ORDERS, &other_api()).unwrap());
    assert_eq!(field(both.within(Space::resource_policy(&["*"]))), Some("routes"));
    assert!(both.within(Space::endpoint_policy(&["*"])).is_ok());
    assert_eq!(grants.coarsen_to_prefix(0).unwrap_err().field(), Some("depth"));
}

#[test]
fn a_principal_that_is_none_or_of_another_partition_is_refused() {
    for principals in [
        &[][..],
        &["*", "123456789012"],
        &["12345"],
        &["role/checkout"],
        &["arn:aws-cn:iam::123456789012:role/checkout"],
        &["arn:aws:s3::123456789012:role/checkout"],
        &["arn:aws:iam::1234:role/checkout"],
        &["arn:aws:iam::123456789012:role/*"],
        &["arn:aws:iam::123456789012:role/a b"],
        &["arn:aws:iam::123456789012:"],
    ] {
        for space in [Space::endpoint_policy(principals), Space::resource_policy(principals)] {
            assert_eq!(
                all_of(&ORDERS).within(space).unwrap_err().field(),
                Some("principal"),
                "{principals:?}"
            );
        }
    }
    let root = ["arn:aws:iam::123456789012:root", "arn:aws:sts::123456789012:assumed-role/a/b@c"];
    assert!(all_of(&ORDERS).within(Space::endpoint_policy(&root)).is_ok());
}

// ---- the walls ----

#[test]
fn the_inline_wall_is_named_with_limit_size_and_route() {
    // A frame of 101 characters; 80 a resource, with quotes and comma.
    let fits = all_of(&numbered("items", 126)).inline().unwrap();
    assert_eq!(fits.documents()[0].characters(), 101 + 126 * 80 - 1);
    assert_eq!((fits.free_characters(), fits.grants_left()), (60, 0));
    let error = all_of(&numbered("items", 200)).inline().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the inline policies of a role (IAM and AWS STS quotas): 16100 of 10240 characters, broken at \
         `items: GET /items/00126`; managed policies hold more, 6144 characters in each of 10"
    );
    assert_eq!(wall(error), (Wall::InlinePolicies, 10_240, 16_100, "items: GET /items/00126".to_owned()));
}

#[test]
fn what_a_role_has_already_counts() {
    let grants = all_of(&numbered("items", 100));
    let size = grants.inline().unwrap().documents()[0].characters();
    assert_eq!(grants.within(Space::Inline { taken: 10_240 - size }).unwrap().free_characters(), 0);
    let error = grants.within(Space::Inline { taken: 10_241 - size }).unwrap_err();
    assert_eq!(wall(error), (Wall::InlinePolicies, 10_240, 10_241, "items: GET /items/00099".to_owned()));
    let error = grants.within(Space::Inline { taken: usize::MAX }).unwrap_err();
    assert_eq!(wall(error).3, "items: GET /items/00000");
}

#[test]
fn managed_policies_are_filled_one_after_the_other_up_to_those_that_may_be_attached() {
    // 75 resources of 80 characters fit one policy: 101 + 75 * 80 - 1 = 6100.
    let set = all_of(&numbered("items", 76)).managed().unwrap();
    let sizes: Vec<usize> = set.documents().iter().map(|document| document.characters()).collect();
    assert_eq!(sizes, [6_100, 101 + 80 - 1]);
    assert_eq!(set.grants_left(), 750 - 76);
    assert_eq!(all_of(&numbered("items", 750)).managed().unwrap().grants_left(), 0);
    let error = all_of(&numbered("items", 751)).managed().unwrap_err();
    assert_eq!(wall(error), (Wall::AttachedPolicies, 10, 11, "items: GET /items/00750".to_owned()));
    let raised = Space::Managed { attached: 3, quota: 25 };
    assert_eq!(all_of(&numbered("items", 751)).within(raised).unwrap().documents().len(), 11);
    let error =
        all_of(&numbered("items", 750)).within(Space::Managed { attached: 16, quota: 25 }).unwrap_err();
    assert_eq!(wall(error), (Wall::AttachedPolicies, 25, 26, "items: GET /items/00675".to_owned()));
    let error = all_of(&ORDERS).within(Space::Managed { attached: 10, quota: 10 }).unwrap_err();
    assert_eq!(wall(error).2, 11);
}

#[test]
fn a_short_resource_goes_where_a_long_one_did_not_fit() {
    let long = |n: u8| Route::get(format!("/a{n}/{}", "x".repeat(3_500)).leak());
    let routes = routes_of("mixed", vec![long(1), long(2), Route::get("/b")]);
    let set = all_of(&routes).managed().unwrap();
    let routes: Vec<usize> = set.documents().iter().map(|document| document.routes().len()).collect();
    assert_eq!(routes, [2, 1]);
}

#[test]
fn one_resource_that_no_managed_policy_can_hold_is_a_wall_of_its_own() {
    let long = |length: usize| routes_of("long", vec![Route::get(format!("/{}", "x".repeat(length)).leak())]);
    let start =
        all_of(&routes_of("root", vec![Route::get("/")])).managed().unwrap().documents()[0].characters();
    assert_eq!(all_of(&long(6_144 - start)).managed().unwrap().free_characters(), 9 * (6_144 - 101));
    let (wall, limit, size, _) = wall(all_of(&long(6_145 - start)).managed().unwrap_err());
    assert_eq!((wall, limit, size), (Wall::ManagedPolicy, 6_144, 6_145));
}

#[test]
fn the_policies_of_resource_and_endpoint_have_walls_of_their_own() {
    let everyone = ["*"];
    let many = all_of(&numbered("items", 300));
    let error = wall(many.within(Space::resource_policy(&everyone)).unwrap_err());
    assert_eq!((error.0, error.1), (Wall::ResourcePolicy, 8_192));
    let raised = Space::ResourcePolicy { principals: &everyone, taken: 0, quota: 40_000 };
    assert_eq!(many.within(raised).unwrap().documents().len(), 1);
    assert_eq!(
        many.within(Space::endpoint_policy(&everyone)).unwrap_err().wall(),
        Some(Wall::EndpointPolicy)
    );
    let some = all_of(&numbered("items", 250));
    let size = some.within(Space::endpoint_policy(&everyone)).unwrap().documents()[0].characters();
    let taken = |taken| some.within(Space::EndpointPolicy { principals: &everyone, taken });
    assert_eq!(taken(20_480 - size).unwrap().free_characters(), 0);
    assert_eq!(
        wall(taken(20_481 - size).unwrap_err()),
        (Wall::EndpointPolicy, 20_480, 20_481, "items: GET /items/00249".to_owned())
    );
}

#[test]
fn as_many_grants_fit_as_are_said_to_be_left_and_not_one_more() {
    for space in [Space::inline(), Space::Managed { attached: 7, quota: 10 }, Space::resource_policy(&["*"])]
    {
        let set = all_of(&numbered("items", 10)).within(space).unwrap();
        let most = 10 + set.grants_left();
        assert_eq!(all_of(&numbered("items", most)).within(space).unwrap().grants_left(), 0);
        assert!(all_of(&numbered("items", most + 1)).within(space).is_err(), "{space:?}");
        assert_eq!(set.grants_left_of(usize::MAX), 0);
        assert!(set.grants_left_of(60) > set.grants_left(), "shorter ones are more");
        assert!(set.to_string().ends_with(&format!("{} grants left", set.grants_left())), "{set}");
    }
}

// ---- what is granted on top ----

#[test]
fn a_variable_that_reaches_a_route_nobody_granted_is_a_warning() {
    let grants = Grants::only(&ORDERS, &api(), &[GET_ORDER]).unwrap();
    let [accident] = grants.accidental_grants().try_into().unwrap();
    assert_eq!((accident.reaches, accident.granted), (GET_LINES, false));
    assert_eq!(grants.warnings(), [Warning::AlsoGrants(accident)]);
    assert_eq!(
        grants.warnings()[0].to_string(),
        "`arn:aws:execute-api:eu-central-1:123456789012:a1b2c3d4e5/prod/GET/orders/*`, for GET /orders/{id}, \
         also grants GET /orders/{id}/lines: `*` crosses slashes"
    );
}

#[test]
fn one_that_reaches_a_route_granted_anyway_is_a_finding_and_no_warning() {
    let [accident] = all_of(&ORDERS).accidental_grants().try_into().unwrap();
    assert_eq!((accident.reaches, accident.granted), (GET_LINES, true));
    assert!(accident.to_string().contains("(granted anyway)"));
    assert_eq!(all_of(&ORDERS).warnings(), []);
}

#[test]
fn a_request_that_goes_to_the_granted_route_is_no_accident() {
    let (latest, any) = (Route::get("/orders/latest/{n}"), Route::get("/orders/{id}/{n}"));
    let routes = routes_of("orders", vec![latest, any]);
    assert_eq!(Grants::only(&routes, &api(), &[latest]).unwrap().accidental_grants(), []);
    let [accident] = Grants::only(&routes, &api(), &[any]).unwrap().accidental_grants().try_into().unwrap();
    assert_eq!(accident.reaches, latest);
}

#[test]
fn routes_of_another_api_or_stage_are_not_reached() {
    let test = Api::new("eu-central-1", "123456789012", "a1b2c3d4e5", "test").unwrap();
    for other in [other_api(), test] {
        let grants = Grants::only(&ORDERS, &api(), &[GET_ORDER]).unwrap();
        let grants = grants.and(Grants::only(&ORDERS, &other, &[PLACE_ORDER]).unwrap());
        assert_eq!(grants.accidental_grants().len(), 1);
    }
}

#[test]
fn a_route_granted_on_one_api_only_is_not_granted_anyway_on_the_other() {
    let here = Grants::only(&ORDERS, &api(), &[GET_ORDER]).unwrap();
    let there = Grants::only(&ORDERS, &other_api(), &[GET_LINES]).unwrap();
    let [accident] = here.and(there).accidental_grants().try_into().unwrap();
    assert!(!accident.granted);
}

#[test]
fn what_ends_grants_by_route_and_what_no_rest_api_has_is_warned_of() {
    let files = Route::get("/files/{proxy+}");
    let (any, odd) = (Route::any("/orders"), Route::get("/orders/$count"));
    let routes = routes_of("odd", vec![files, any, odd]);
    let expected = [
        Warning::AnyVerb { route: any },
        Warning::Greedy { route: files },
        Warning::NotRest { route: odd, part: "$count".to_owned() },
    ];
    assert_eq!(all_of(&routes).warnings(), expected);
    let told: Vec<String> = expected.iter().map(Warning::to_string).collect();
    assert_eq!(told[1], "GET /files/{proxy+} is one ARN and ends grants by route");
    let http_api = Api::new("us-east-1", "123456789012", "a1b2c3d4e5", "$default").unwrap();
    assert_eq!(Grants::of(&routes, &http_api).unwrap().warnings(), expected[..2]);
    let declared_only = Grants::only(&routes, &http_api, &[odd]).unwrap();
    assert_eq!(declared_only.warnings(), [], "what is not granted ends nothing");
}

#[test]
fn a_prefix_is_granted_when_asked_and_says_what_it_grants_on_top() {
    let cancel = Route::delete("/orders/{id}/lines/{line}");
    let history = Route::get("/orders/history/archive");
    let routes =
        routes_of("orders", vec![PLACE_ORDER, GET_LINES, GET_ORDER, cancel, history, Route::get("/stock")]);
    let grants = Grants::only(&routes, &api(), &[PLACE_ORDER, GET_LINES]).unwrap();
    assert_eq!(grants.coarsen_to_prefix(3).unwrap().grants(), &grants);
    assert!(grants.coarsen_to_prefix(3).unwrap().widened().is_empty());

    let coarsened = grants.coarsen_to_prefix(1).unwrap();
    let start = api().to_string();
    let prefix = format!("{start}/GET/orders/*");
    let [widened] = coarsened.widened() else { panic!("{coarsened}") };
    assert_eq!((&widened.resource, &widened.replaces[..]), (&prefix, &[GET_LINES][..]));
    assert_eq!(widened.also_grants, [history, GET_ORDER]);
    assert_eq!(
        coarsened.to_string(),
        format!(
            "`{prefix}` stands in the place of GET /orders/{{id}}/lines; it grants all below it, \
             of the declared routes also GET /orders/history/archive, GET /orders/{{id}}"
        )
    );
    let grants = coarsened.into_grants();
    assert_eq!(grants.resources().collect::<Vec<_>>(), [prefix.clone(), format!("{start}/POST/orders")]);
    let warnings = grants.inline().unwrap().warnings().to_vec();
    assert_eq!(warnings[0], Warning::Coarsened { resource: prefix, routes: vec![GET_LINES] });
    let also: BTreeSet<Route> = warnings[1..]
        .iter()
        .map(|warning| match warning {
            Warning::AlsoGrants(accident) => accident.reaches,
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(also, BTreeSet::from([history, GET_ORDER]));
}

#[test]
fn a_prefix_that_is_there_already_widens_nothing_and_takes_the_others_in() {
    let coarsened = all_of(&ORDERS).coarsen_to_prefix(1).unwrap();
    assert!(coarsened.widened().is_empty(), "{coarsened}");
    assert_eq!(coarsened.grants().resources().count(), 2);
}

// ---- for all declarations ----

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        8 => Just(Verb::Get), 4 => Just(Verb::Post), 1 => Just(Verb::Put), 1 => Just(Verb::Delete), 1 => Just(Verb::Patch),
        1 => Just(Verb::Head), 1 => Just(Verb::Options)
    ]
}

/// Routes whose paths begin with a literal part of the letters a to m.
fn declared() -> impl Strategy<Value = Vec<Route>> {
    let literal = "[a-m][a-m0-9*$:.-]{0,12}";
    let part =
        prop_oneof![3 => literal.prop_map(String::from), 1 => "\\{[a-z]{1,8}\\}".prop_map(String::from)];
    let parts = prop::collection::vec(part, 0..5);
    let route =
        (verb(), literal, parts, prop::bool::weighted(0.1)).prop_map(|(verb, first, mut parts, greedy)| {
            parts.insert(0, first);
            if greedy {
                parts.push("{proxy+}".to_owned());
            }
            Route::new(verb, format!("/{}", parts.join("/")).leak())
        });
    prop::collection::vec(route, 1..40)
}

/// A request of a route: every variable gets this value.
fn request(api: &Api, route: &Route, value: &str) -> String {
    let filled: Vec<&str> =
        route.template().split('/').map(|part| if part.starts_with('{') { value } else { part }).collect();
    format!("{api}/{}{}", route.verb(), filled.join("/"))
}

/// The resources as they are in the JSON, so that nothing between grants and documents is trusted.
fn granted(set: &PolicySet) -> Vec<String> {
    let of_document = |json: &str| {
        let document: Value = serde_json::from_str(json).unwrap();
        assert_eq!(document["Version"], "2012-10-17");
        let [statement] = document["Statement"].as_array().unwrap().as_slice() else { panic!("{json}") };
        assert_eq!(
            (&statement["Effect"], &statement["Action"]),
            (&"Allow".into(), &"execute-api:Invoke".into())
        );
        let resources = statement["Resource"].as_array().unwrap();
        resources.iter().map(|resource| resource.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    set.documents().iter().flat_map(|document| of_document(document.json())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_document_is_within_its_wall_and_counted_right(routes in declared(), quota in 1_usize..=25) {
        let routes = Routes::new("any", routes.leak());
        let spaces = [
            (Space::inline(), 10_240),
            (Space::Managed { attached: 0, quota }, 6_144),
            (Space::resource_policy(&["123456789012"]), 8_192),
            (Space::endpoint_policy(&["*"]), 20_480),
        ];
        for (space, most) in spaces {
            match all_of(&routes).within(space) {
                Ok(set) => {
                    prop_assert!(!set.documents().is_empty() && set.documents().len() <= quota.max(1));
                    for document in set.documents() {
                        prop_assert!(document.json().len() <= most);
                        prop_assert_eq!(document.json().len(), document.characters());
                        prop_assert_eq!(document.free_characters(), most - document.characters());
                        let indented: Value = serde_json::from_str(document.json()).unwrap();
                        let indented = serde_json::to_string_pretty(&indented).unwrap();
                        prop_assert_eq!(characters(&indented), document.characters());
                    }
                }
                Err(IamError::Wall { limit, size, .. }) => prop_assert!(size > limit),
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    #[test]
    fn the_documents_together_grant_each_declared_route_and_none_that_is_out_of_reach(
        routes in declared(),
        value in "[a-z0-9%*?$]{1,6}",
        stranger in "[n-z][a-z0-9]{0,9}",
        rest in "(/[a-z]{1,5}){0,3}",
    ) {
        let routes = Routes::new("any", routes.leak());
        let api = api();
        for set in [all_of(&routes).within(Space::Managed { attached: 0, quota: 25 }), all_of(&routes).within(Space::endpoint_policy(&["*"]))] {
            let Ok(set) = set else { continue };
            let resources = granted(&set);
            let is_granted = |arn: &str| resources.iter().any(|resource| matches(resource, arn));
            let distinct: BTreeSet<&String> = resources.iter().collect();
            prop_assert_eq!(distinct.len(), resources.len(), "each resource once");
            for route in routes.routes() {
                prop_assert!(is_granted(&request(&api, route, &value)), "{route}");
                let elsewhere = request(&other_api(), route, &value);
                prop_assert!(!is_granted(&elsewhere), "{elsewhere}");
            }
            for verb in [Verb::Get, Verb::Post, Verb::Patch] {
                let undeclared = format!("{api}/{verb}/{stranger}{rest}");
                prop_assert!(!is_granted(&undeclared), "{undeclared}");
            }
        }
    }

    #[test]
    fn a_resource_without_variables_grants_its_own_request_whatever_its_letters_mean_to_iam(
        routes in declared(),
        others in declared(),
    ) {
        let literal = |routes: Vec<Route>| -> Vec<Route> {
            routes.into_iter().filter(|route| !route.template().contains('{')).collect()
        };
        let (routes, mut others) = (literal(routes), literal(others));
        prop_assume!(!routes.is_empty());
        for route in &routes {
            // What a wildcard would reach, and its neighbours.
            for (from, to) in [("*", "nn"), ("*", ""), ("*", "/"), ("?", "n"), ("$", ""), (".", "n")] {
                others.push(Route::new(route.verb(), route.template().replace(from, to).leak()));
            }
            others.push(Route::new(route.verb(), format!("{}n", route.template()).leak()));
            others.push(Route::new(route.verb(), format!("{}/n", route.template()).leak()));
        }
        let declared = Routes::new("any", routes.leak());
        let set = all_of(&declared).within(Space::endpoint_policy(&["*"])).unwrap();
        let resources = granted(&set);
        for route in declared.routes().iter().chain(&others) {
            let arn = request(&api(), route, "");
            let is_granted = resources.iter().any(|resource| matches(resource, &arn));
            prop_assert_eq!(is_granted, declared.routes().contains(route), "{}", route);
        }
    }

    #[test]
    fn a_prefix_takes_nothing_away_and_its_account_of_what_it_adds_is_whole(
        routes in declared(),
        wanted in prop::collection::vec(any::<bool>(), 120),
        depth in 1_usize..4,
        value in "[n-z]{1,6}",
    ) {
        let routes = Routes::new("any", routes.leak());
        let some: Vec<Route> =
            routes.routes().iter().zip(&wanted).filter(|(_, wanted)| **wanted).map(|(route, _)| *route).collect();
        prop_assume!(!some.is_empty());
        let before = Grants::only(&routes, &api(), &some).unwrap();
        let coarsened = before.coarsen_to_prefix(depth).unwrap();
        prop_assert!(coarsened.grants().resources().count() <= before.resources().count());
        let told: BTreeSet<Route> = coarsened.widened().iter().flat_map(|widened| widened.also_grants.clone()).collect();
        for route in routes.routes() {
            let arn = request(&api(), route, &value);
            let by = |grants: &Grants| grants.resources().any(|resource| matches(resource, &arn));
            let (before, after) = (by(&before), by(coarsened.grants()));
            prop_assert!(after || !before, "{route} is lost");
            prop_assert!(before || !after || told.contains(route), "{route} is not told");
        }
    }
}
