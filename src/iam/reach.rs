//! Which routes' requests a resource reaches: `*` crosses slashes in an ARN, and does not in a template.

use crate::iam::template::{Part, Piece};
use std::collections::BTreeSet;

/// Whether some request of a route matches a resource. Requests that the gateway would hand to `own`, the route that
/// the resource is for, are its own and do not count.
///
/// All three are lists of what stands between slashes, the method first. So a `*`, which always fills such a place,
/// stands for one word or more, and it is enough to walk word by word.
pub(super) fn reaches(resource: &[Piece], route: &[Part], own: Option<&[Part]>) -> bool {
    if !begin_alike(resource, route) {
        return false;
    }
    let own = own.filter(|own| is_more_specific(own, route)).unwrap_or_default();
    let words = words(resource, route, own);
    let (mut seen, mut open) = (BTreeSet::new(), vec![(0_usize, 0_usize, Some(0_usize))]);
    while let Some((in_resource, in_route, in_own)) = open.pop() {
        let ends = in_resource == resource.len() && in_route == route.len();
        if ends && (own.is_empty() || in_own != Some(own.len())) {
            return true;
        }
        for word in &words {
            let Some(next_in_route) = step(route, in_route, word) else { continue };
            let next_in_own = in_own.and_then(|at| step(own, at, word));
            let next_in_resource = match resource.get(in_resource) {
                Some(Piece::Any) => [Some(in_resource), in_resource.checked_add(1)],
                Some(Piece::Exactly(text)) if text == word => [None, in_resource.checked_add(1)],
                _ => [None, None],
            };
            for next in next_in_resource.into_iter().flatten() {
                let state = (next, next_in_route, next_in_own);
                if seen.insert(state) {
                    open.push(state);
                }
            }
        }
    }
    false
}

/// Whether a path of these words is one of a template.
pub(super) fn serves(template: &[Part], words: &[&str]) -> bool {
    words.iter().try_fold(0, |at, word| step(template, at, word)) == Some(template.len())
}

/// Whether nothing contradicts up to the first wildcard or variable: most pairs are told apart by that.
fn begin_alike(resource: &[Piece], route: &[Part]) -> bool {
    for pair in resource.iter().zip(route) {
        match pair {
            (Piece::Exactly(text), Part::Literal(literal)) if text == literal => {}
            (Piece::Exactly(_), Part::Literal(_)) => return false,
            _ => return true,
        }
    }
    resource.len() == route.len()
}

/// One word on in a template, if it allows the word.
fn step(parts: &[Part], at: usize, word: &str) -> Option<usize> {
    let allowed = match parts.get(at) {
        Some(Part::Literal(text)) => text == word,
        Some(Part::Greedy(_) | Part::Variable(_)) => !word.is_empty(),
        // Past its end, a greedy variable takes on.
        None => matches!(parts.last(), Some(Part::Greedy(_))) && !word.is_empty(),
    };
    allowed.then(|| at.saturating_add(1).min(parts.len()))
}

/// All words that make a difference, and one that stands for all others.
fn words(resource: &[Piece], route: &[Part], own: &[Part]) -> BTreeSet<String> {
    let of_resource = resource.iter().filter_map(|piece| match piece {
        Piece::Any => None,
        Piece::Exactly(text) => Some(text),
    });
    let of_routes = route.iter().chain(own).filter_map(|part| match part {
        Part::Literal(text) => Some(text),
        Part::Greedy(_) | Part::Variable(_) => None,
    });
    of_resource.chain(of_routes).cloned().chain([ANOTHER.to_owned()]).collect()
}

/// Whether the gateway hands a request of both to `this`: at the first part that differs, a literal goes before a
/// variable and a variable before a greedy one; then a method goes before `ANY`.
fn is_more_specific(this: &[Part], than: &[Part]) -> bool {
    let ranks = |parts: &[Part]| {
        let mut ranks = ranks(parts);
        if !ranks.is_empty() {
            ranks.rotate_left(1);
        }
        ranks
    };
    differ_for_the_better(&ranks(this), &ranks(than))
}

/// The same of two templates that both have a path, without the methods.
pub(super) fn goes_before(this: &[Part], than: &[Part]) -> bool {
    differ_for_the_better(&ranks(this), &ranks(than))
}

fn differ_for_the_better(this: &[u8], than: &[u8]) -> bool {
    this.iter().zip(than).find(|(this, than)| this != than).is_some_and(|(this, than)| this < than)
}

fn ranks(parts: &[Part]) -> Vec<u8> {
    let rank = |part: &Part| match part {
        Part::Literal(_) => 0_u8,
        Part::Variable(_) => 1,
        Part::Greedy(_) => 2,
    };
    parts.iter().map(rank).collect()
}

/// A word that no template can hold.
const ANOTHER: &str = "\0";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::iam::route::{Route, Verb, pieces};
    use crate::iam::wildcards::matches;
    use proptest::prelude::*;

    /// Whether the resource of one route reaches another.
    fn route_reaches(own: Route, other: Route) -> bool {
        let own = own.shape().unwrap();
        reaches(&pieces(&own), &other.shape().unwrap(), Some(&own))
    }

    #[test]
    fn a_variable_s_star_reaches_all_below_it() {
        let order = Route::get("/orders/{id}");
        for reached in
            ["/orders/{id}/lines", "/orders/x/lines", "/orders/latest", "/orders/{proxy+}", "/{a}/{b}/{c}"]
        {
            assert!(route_reaches(order, Route::get(reached)), "{reached}");
        }
        for spared in ["/orders", "/", "/stock/{id}", "/ordersx/{id}"] {
            assert!(!route_reaches(order, Route::get(spared)), "{spared}");
        }
        assert!(!route_reaches(order, Route::post("/orders/{id}/lines")));
    }

    #[test]
    fn a_star_in_the_place_of_the_method_crosses_slashes_too() {
        let any = Route::any("/orders");
        assert!(route_reaches(any, Route::get("/internal/orders")));
        assert!(route_reaches(any, Route::get("/orders")));
        assert!(!route_reaches(any, Route::get("/orders/internal")));
    }

    #[test]
    fn a_resource_without_a_wildcard_reaches_its_own_requests_only() {
        assert!(!route_reaches(Route::get("/orders/latest"), Route::get("/orders/{id}")));
        assert!(!route_reaches(Route::get("/orders"), Route::any("/orders")));
    }

    #[test]
    fn what_the_gateway_hands_to_the_granted_route_is_no_accident() {
        // Only `/orders/latest/x` is of both, and it goes to the more specific one.
        assert!(!route_reaches(Route::get("/orders/latest/{n}"), Route::get("/orders/{id}/{n}")));
        assert!(route_reaches(Route::get("/orders/{id}/{n}"), Route::get("/orders/latest/{n}")));
        assert!(!route_reaches(Route::get("/orders/{id}"), Route::any("/orders/{id}")));
    }

    #[test]
    fn a_star_in_front_reaches_the_root() {
        assert!(route_reaches(Route::get("/{shop}"), Route::get("/")));
    }

    /// Every request of a shape, of the words `a`, `b` and one that stands in no template, greedy ones up to four long.
    fn requests(shape: &[Part]) -> Vec<Vec<&'static str>> {
        const WORDS: [&str; 3] = ["a", "b", "x"];
        let mut all: Vec<Vec<&str>> = vec![vec![]];
        for (at, part) in shape.iter().enumerate() {
            let choices: Vec<&str> = match part {
                Part::Literal(text) => {
                    ["a", "b", "GET", "POST", ""].into_iter().filter(|w| w == text).collect()
                }
                _ if at == 0 => vec!["GET", "POST", "PUT"],
                _ => WORDS.to_vec(),
            };
            let mut longer: Vec<Vec<&str>> =
                all.iter().flat_map(|r| choices.iter().map(|c| [&r[..], &[*c]].concat())).collect();
            if matches!(part, Part::Greedy(_)) {
                let mut last = longer.clone();
                for _ in 0..3 {
                    last = last.iter().flat_map(|r| WORDS.iter().map(|c| [&r[..], &[*c]].concat())).collect();
                    longer.extend(last.clone());
                }
            }
            all = longer;
        }
        all
    }

    /// Whether a request is of a template, part by part.
    fn is_of(shape: &[Part], request: &[&str]) -> bool {
        match (shape, request) {
            ([], []) => true,
            ([Part::Greedy(_)], [_, ..]) => true,
            ([Part::Literal(text), parts @ ..], [word, words @ ..]) => text == word && is_of(parts, words),
            ([_, parts @ ..], [_, words @ ..]) => is_of(parts, words),
            _ => false,
        }
    }

    fn route() -> impl Strategy<Value = Route> {
        let part = prop_oneof![Just("a"), Just("b"), Just("{v}")];
        let parts = prop::collection::vec(part, 0..4);
        let verb = prop_oneof![Just(Verb::Get), Just(Verb::Post), Just(Verb::Any)];
        (verb, parts, any::<bool>()).prop_map(|(verb, mut parts, greedy)| {
            if greedy && parts.len() < 3 {
                parts.push("{rest+}");
            }
            Route::new(verb, format!("/{}", parts.join("/")).leak())
        })
    }

    proptest! {
        /// The walk against every request written out and matched character by character.
        #[test]
        fn the_walk_agrees_with_matching_every_request(own in route(), other in route()) {
            let (own_shape, other_shape) = (own.shape().unwrap(), other.shape().unwrap());
            let resource = pieces(&own_shape);
            let pattern: Vec<String> = resource.iter().map(Piece::escaped).collect();
            let goes_first = is_more_specific(&own_shape, &other_shape);
            let is_own = |request: &[&str]| goes_first && is_of(&own_shape, request);
            let expected = requests(&other_shape)
                .iter()
                .any(|request| matches(&pattern.join("/"), &request.join("/")) && !is_own(request));
            prop_assert_eq!(reaches(&resource, &other_shape, Some(&own_shape)), expected, "{} {}", own, other);
        }
    }
}
