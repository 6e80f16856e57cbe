//! Method and headers of the events that a gateway hands to a Lambda function, whatever shape they are in.

use serde_json::Value;

/// The headers of an event of API Gateway, a function URL or a load balancer, as pairs of name and value.
///
/// Of an event with `multiValueHeaders` (a REST API, payload format 1.0) only these are read: `headers` shows but the
/// last value of a header that was sent twice. Of any other (an HTTP API or a function URL, format 2.0) `headers`, where
/// a header that was sent twice is one value with commas, and so no valid hop count.
///
/// Nothing here fails. What is no map of headers has none; a value that is no string, or an empty list, counts as an
/// empty value, so that a header that is there is never taken for one that is not.
///
/// ```
/// use eastwest::callee;
/// use serde_json::json;
///
/// let event = json!({
///     "headers": {"X-Hop-Count": "3"},
///     "multiValueHeaders": {"X-Hop-Count": ["2", "3"]},
/// });
/// let pairs: Vec<_> = callee::event_headers(&event).collect();
/// assert_eq!(pairs, [("X-Hop-Count", "2"), ("X-Hop-Count", "3")]);
/// assert!(callee::accept(pairs).is_err());
/// ```
pub fn event_headers(event: &Value) -> impl Iterator<Item = (&str, &str)> {
    let lines = ["multiValueHeaders", "headers"]
        .into_iter()
        .filter_map(|field| event.get(field)?.as_object())
        .find(|map| !map.is_empty());
    lines.into_iter().flatten().flat_map(|(name, value)| {
        let values = value.as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(value));
        let values = if values.is_empty() { NOTHING } else { values };
        values.iter().map(|value| (name.as_str(), value.as_str().unwrap_or_default()))
    })
}

/// The method of such an event: `httpMethod`, or in payload format 2.0 `requestContext.http.method`.
///
/// ```
/// use eastwest::callee;
/// use serde_json::json;
///
/// assert_eq!(callee::event_method(&json!({"httpMethod": "PUT"})), Some("PUT"));
/// let event = json!({"version": "2.0", "requestContext": {"http": {"method": "POST"}}});
/// assert_eq!(callee::event_method(&event), Some("POST"));
/// assert_eq!(callee::event_method(&json!({"Records": []})), None);
/// ```
#[must_use]
pub fn event_method(event: &Value) -> Option<&str> {
    let told = [event.get("httpMethod"), event.pointer("/requestContext/http/method")];
    // An empty text names nothing.
    told.into_iter().flatten().filter_map(Value::as_str).find(|method| !method.is_empty())
}

/// What a list without a value counts as.
const NOTHING: &[Value] = &[Value::Null];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pairs(event: &Value) -> Vec<(&str, &str)> {
        event_headers(event).collect()
    }

    #[test]
    fn of_a_rest_api_s_event_only_the_multi_value_headers_are_read() {
        let event = json!({
            "headers": {"X-Hop-Count": "9", "only-here": "1"},
            "multiValueHeaders": {"X-Hop-Count": ["2", "2"], "b": ["1"]},
        });
        assert_eq!(pairs(&event), [("X-Hop-Count", "2"), ("X-Hop-Count", "2"), ("b", "1")]);
    }

    #[test]
    fn where_there_are_no_multi_value_headers_the_single_ones_are_read() {
        for multi in [json!(null), json!({}), json!("x"), json!([1])] {
            let event = json!({"headers": {"a": "1,2"}, "multiValueHeaders": multi});
            assert_eq!(pairs(&event), [("a", "1,2")], "{event}");
        }
        assert_eq!(pairs(&json!({"headers": {"a": "1"}})), [("a", "1")]);
    }

    #[test]
    fn junk_in_place_of_headers_is_no_header_and_no_panic() {
        for headers in [json!(null), json!(7), json!("x-hop-count: 1"), json!(["x-hop-count"])] {
            assert_eq!(pairs(&json!({"headers": headers, "multiValueHeaders": headers})), []);
        }
        for event in [json!(null), json!([]), json!("event"), json!(1.5)] {
            assert_eq!((pairs(&event), event_method(&event)), (vec![], None));
        }
    }

    #[test]
    fn junk_in_place_of_a_value_does_not_make_its_header_absent() {
        for junk in [json!(null), json!(2), json!({"a": 1}), json!([]), json!([null]), json!([["2"]])] {
            let field = if junk.is_array() { "multiValueHeaders" } else { "headers" };
            assert_eq!(pairs(&json!({field: {"x-hop-count": junk}})), [("x-hop-count", "")], "{junk}");
        }
    }

    #[test]
    fn the_method_is_found_in_both_payload_formats() {
        let v2 = json!({"requestContext": {"http": {"method": "PATCH"}}});
        assert_eq!(event_method(&v2), Some("PATCH"));
        assert_eq!(event_method(&json!({"httpMethod": 1, "requestContext": {"http": []}})), None);
        assert_eq!(event_method(&json!({"httpMethod": "GET", "requestContext": v2})), Some("GET"));
    }

    #[test]
    fn an_empty_method_names_none_so_that_a_key_is_demanded() {
        let headers = json!({"x-hop-count": "1"});
        for event in [
            json!({"httpMethod": "", "headers": headers}),
            json!({"headers": headers, "requestContext": {"http": {"method": ""}}}),
        ] {
            assert_eq!(event_method(&event), None);
            let refused = crate::callee::Guard::new().accept_event(&event).unwrap_err();
            assert_eq!(refused.kind(), crate::callee::RefusalKind::MissingIdempotencyKey, "{event}");
        }
    }
}
