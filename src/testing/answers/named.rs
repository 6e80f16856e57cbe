//! The gateway's own answers, by name, in API Gateway's words.
//!
//! Statuses, types and messages are those of the developer guide's page "Gateway response types" and of captured
//! answers. Where no capture is public, the documentation of the single answer says so.

use crate::testing::answers::reply::{Reply, Surface};
use serde_json::Value;

impl Reply {
    /// 200 with a small JSON body, from the callee.
    pub fn ok() -> Self {
        Reply::json(200, r#"{"ok":true}"#)
    }

    /// 429: the rate of account, stage, method or usage plan is exceeded. It carries no `Retry-After`.
    pub fn throttled() -> Self {
        rest(429, "TooManyRequestsException", tight("Too Many Requests"))
    }

    /// 429: the quota of a usage plan is used up for the day, week or month.
    pub fn quota_exceeded() -> Self {
        rest(429, "LimitExceededException", tight("Limit Exceeded"))
    }

    /// 504: the gateway stopped waiting for the callee, which may still be at work.
    pub fn integration_timeout() -> Self {
        rest(504, INTERNAL, loose("Endpoint request timed out"))
    }

    /// 504: an HTTP integration could not be reached. (Of a Lambda integration it is [`Reply::lambda_rejected`] or
    /// [`Reply::lambda_failed`].)
    pub fn integration_failure() -> Self {
        rest(504, INTERNAL, loose("Network error communicating with endpoint"))
    }

    /// 500: Lambda refused the invocation, for want of concurrency or permission; opaque to the caller.
    pub fn lambda_rejected() -> Self {
        rest(500, INTERNAL, loose(INTERNAL_MESSAGE))
    }

    /// 502: the function ran and failed, or answered what the gateway could not read.
    pub fn lambda_failed() -> Self {
        rest(502, INTERNAL, loose(INTERNAL_MESSAGE))
    }

    /// 503 (type and wording not captured).
    pub fn unavailable() -> Self {
        rest(503, "ServiceUnavailableException", loose("Service Unavailable"))
    }

    /// 500: the API itself is configured wrongly.
    pub fn api_configuration_error() -> Self {
        rest(500, INTERNAL, loose(INTERNAL_MESSAGE))
    }

    /// 500: the authorizer is configured wrongly; the message is JSON null.
    pub fn authorizer_configuration_error() -> Self {
        rest(500, "AuthorizerConfigurationException", NULL_MESSAGE.to_owned())
    }

    /// 500: the authorizer failed (message not captured, taken as null).
    pub fn authorizer_failure() -> Self {
        rest(500, "AuthorizerFailureException", NULL_MESSAGE.to_owned())
    }

    /// 401: the authorizer knows no such caller.
    pub fn unauthorized() -> Self {
        rest(401, "UnauthorizedException", tight("Unauthorized"))
    }

    /// 403: the authorizer's policy denies.
    pub fn authorizer_denied() -> Self {
        let message = "User is not authorized to access this resource with an explicit deny in an identity-based policy";
        rest(403, ACCESS_DENIED, capital(message))
    }

    /// 403: no policy allows the caller to invoke.
    pub fn access_denied() -> Self {
        rest(
            403,
            ACCESS_DENIED,
            capital(&not_authorized("because no identity-based policy allows the execute-api:Invoke action")),
        )
    }

    /// 403: a policy denies the caller explicitly.
    pub fn explicit_deny() -> Self {
        rest(403, ACCESS_DENIED, capital(&not_authorized("with an explicit deny in a resource-based policy")))
    }

    /// 403: the API key is missing or wrong.
    pub fn invalid_api_key() -> Self {
        rest(403, FORBIDDEN, tight("Forbidden"))
    }

    /// 403: the web application firewall blocks.
    pub fn waf_blocked() -> Self {
        rest(403, FORBIDDEN, tight("Forbidden"))
    }

    /// 403: unsigned, or no such method, path or stage: a REST API says the same to both.
    pub fn missing_authentication_token() -> Self {
        rest(403, "MissingAuthenticationTokenException", tight("Missing Authentication Token"))
    }

    /// 403: what a REST API says to a method, path or stage that it does not have;
    /// [`Reply::missing_authentication_token`] by another name.
    pub fn no_such_route() -> Self {
        Reply::missing_authentication_token()
    }

    /// 403: the session is over.
    pub fn token_expired() -> Self {
        rest(403, "ExpiredTokenException", tight("The security token included in the request is expired"))
    }

    /// 403: the access key or the session token is not known. The type is one that other refusals bear too: the message
    /// tells them apart.
    pub fn token_invalid() -> Self {
        rest(403, ACCESS_DENIED, tight("The security token included in the request is invalid."))
    }

    /// 413 in plain text: the body is over 10 MB.
    pub fn payload_too_large() -> Self {
        of(Surface::RestApi, 413)
            .header("Content-Type", "text/plain")
            .body("HTTP content length exceeded 10485760 bytes.")
    }

    /// 413 in JSON: the body is over Lambda's 6 MB.
    pub fn request_too_long() -> Self {
        rest(413, "RequestTooLargeException", tight("Request Too Long"))
    }

    /// 414: the URL is over 10,240 characters (not captured; the words are those of *Quotas for configuring and running a
    /// REST API in API Gateway*).
    pub fn uri_too_long() -> Self {
        of(Surface::RestApi, 414).header("Content-Type", JSON).body(tight("Request URI too long"))
    }

    /// 431: the headers are over 10,240 bytes (not captured).
    pub fn headers_too_large() -> Self {
        of(Surface::RestApi, 431).header("Content-Type", JSON).body(tight("Request Header Fields Too Large"))
    }

    /// 400: the body does not fit the model.
    pub fn bad_request_body() -> Self {
        rest(400, BAD_REQUEST, loose("Invalid request body"))
    }

    /// 400: a required parameter is missing.
    pub fn bad_request_parameters() -> Self {
        rest(400, BAD_REQUEST, loose("Missing required request parameters: [limit]"))
    }

    /// 415: no mapping for this content type.
    pub fn unsupported_media_type() -> Self {
        rest(415, BAD_REQUEST, loose("Unsupported Media Type"))
    }

    /// 404: authorised, but there is no such resource (wording not captured).
    pub fn resource_not_found() -> Self {
        rest(404, "ResourceNotFoundException", tight("Not Found"))
    }

    /// 409 of the callee: a request with this idempotency key is still at work (draft-ietf-httpapi-idempotency-key-header).
    pub fn in_progress() -> Self {
        Reply::status(409).header("Content-Type", "application/problem+json").body(OUTSTANDING)
    }

    /// 508 of the callee: its guard found the chain to be a loop.
    pub fn loop_refused() -> Self {
        Reply::json(508, r#"{"error":"hop_budget_exhausted","hops":8}"#).header("x-should-retry", "false")
    }

    /// 401 of an HTTP API: its JWT authorizer does not take the token.
    pub fn http_api_unauthorized() -> Self {
        http_api(401, "Unauthorized")
            .header("www-authenticate", r#"Bearer scope="" error="invalid_token" error_description="the token does not have a valid audience""#)
    }

    /// 404 of an HTTP API: there is no such route or stage.
    pub fn http_api_not_found() -> Self {
        http_api(404, "Not Found")
    }

    /// 429 of an HTTP API (documented; body not captured).
    pub fn http_api_throttled() -> Self {
        http_api(429, "Too Many Requests")
    }

    /// 500 of an HTTP API: its Lambda integration failed.
    pub fn http_api_failed() -> Self {
        http_api(500, "Internal Server Error")
    }

    /// 403 of an HTTP API, which has one answer for every refusal and no type header.
    pub fn http_api_forbidden() -> Self {
        http_api(403, "Forbidden")
    }

    /// 503 of an HTTP API: its integration timed out or could not be reached; the callee may still be at work.
    pub fn http_api_unavailable() -> Self {
        of(Surface::HttpApi, 503).body(tight("Service Unavailable"))
    }
}

/// What is no request at all.
pub(crate) fn bad_request() -> Reply {
    of(Surface::RestApi, 400).header("Content-Type", "text/plain").body("Bad Request").keep_alive(false)
}

/// An answer of a REST API itself, with a type.
pub(crate) fn rest(status: u16, error_type: &str, body: String) -> Reply {
    of(Surface::RestApi, status)
        .header("Content-Type", JSON)
        .header("x-amzn-ErrorType", error_type)
        .body(body)
}

/// What cannot be done here is said, in the words of an answer that no client sends again.
pub(crate) fn impossible(why: &str) -> Reply {
    rest(501, "TestKitException", tight(why))
}

fn http_api(status: u16, message: &str) -> Reply {
    of(Surface::HttpApi, status).header("Content-Type", JSON).body(tight(message))
}

fn of(surface: Surface, status: u16) -> Reply {
    Reply { surface, ..Reply::status(status) }
}

/// The message as JSON, without a space.
pub(crate) fn tight(message: &str) -> String {
    format!(r#"{{"message":{}}}"#, Value::from(message))
}

fn loose(message: &str) -> String {
    format!(r#"{{"message": {}}}"#, Value::from(message))
}

/// IAM's refusals spell the member with a capital.
fn capital(message: &str) -> String {
    format!(r#"{{"Message":{}}}"#, Value::from(message))
}

fn not_authorized(why: &str) -> String {
    format!(
        "User: arn:aws:sts::123456789012:assumed-role/caller-role/caller-fn is not authorized to perform: \
         execute-api:Invoke on resource: arn:aws:execute-api:eu-west-1:********9012:a1b2c3d4e5/prod/POST/orders {why}"
    )
}

const ACCESS_DENIED: &str = "AccessDeniedException";
const BAD_REQUEST: &str = "BadRequestException";
const FORBIDDEN: &str = "ForbiddenException";
const INTERNAL: &str = "InternalServerErrorException";
const INTERNAL_MESSAGE: &str = "Internal server error";
const OUTSTANDING: &str = r#"{"type":"https://developer.example.com/idempotency","title":"A request is outstanding for this Idempotency-Key","detail":"A request with the same Idempotency-Key for the same operation is being processed or is outstanding."}"#;
const JSON: &str = "application/json";
const NULL_MESSAGE: &str = r#"{"message":null}"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// The captured answers that have a name here.
    fn named() -> Vec<(&'static str, Reply)> {
        vec![
            ("rest-429-throttled", Reply::throttled()),
            ("rest-429-quota", Reply::quota_exceeded()),
            ("rest-504-integration-timeout", Reply::integration_timeout()),
            ("rest-504-network-error", Reply::integration_failure()),
            ("rest-409-in-progress-problem", Reply::in_progress()),
            ("rest-508-loop", Reply::loop_refused()),
            ("http-401-jwt", Reply::http_api_unauthorized()),
            ("http-404", Reply::http_api_not_found()),
            ("http-500", Reply::http_api_failed()),
            ("rest-500-invoke-rejected", Reply::lambda_rejected()),
            ("rest-502-function-error", Reply::lambda_failed()),
            ("rest-500-api-configuration", Reply::api_configuration_error()),
            ("rest-500-authorizer-config-null", Reply::authorizer_configuration_error()),
            ("rest-401-unauthorized", Reply::unauthorized()),
            ("rest-403-authorizer-deny", Reply::authorizer_denied()),
            ("rest-403-iam-denied", Reply::access_denied()),
            ("rest-403-explicit-deny", Reply::explicit_deny()),
            ("rest-403-forbidden", Reply::invalid_api_key()),
            ("rest-403-waf", Reply::waf_blocked()),
            ("rest-403-missing-token", Reply::missing_authentication_token()),
            ("rest-403-missing-token", Reply::no_such_route()),
            ("rest-403-scope-service", Reply::bad_scope()),
            ("rest-403-token-expired", Reply::token_expired()),
            ("rest-403-token-invalid", Reply::token_invalid()),
            ("rest-413-edge-10mb", Reply::payload_too_large()),
            ("rest-431-headers", Reply::headers_too_large()),
            ("rest-400-body", Reply::bad_request_body()),
            ("rest-415", Reply::unsupported_media_type()),
            ("rest-404-resource", Reply::resource_not_found()),
            ("http-403-iam", Reply::http_api_forbidden()),
            ("http-503-timeout", Reply::http_api_unavailable()),
            ("rest-200-proxy", Reply::ok()),
        ]
    }

    #[test]
    fn the_answers_are_the_captured_ones_word_for_word() {
        let captured: Value =
            serde_json::from_str(include_str!("../../../tests/data/gateway_responses.json")).unwrap();
        for (id, reply) in named() {
            let entry = captured.as_array().unwrap().iter().find(|entry| entry["id"] == id);
            let entry = entry.unwrap_or_else(|| panic!("no capture {id}"));
            assert_eq!(entry["status"], reply.status, "{id}");
            assert_eq!(entry["body"].as_str().unwrap().as_bytes(), reply.body, "{id}");
            for name in ["x-amzn-ErrorType", "Content-Type"] {
                let sent = reply.headers.iter().find(|(sent, _)| sent == name);
                let sent = sent.map(|(_, value)| String::from_utf8(value.clone()).unwrap());
                assert_eq!(entry["headers"][name].as_str(), sent.as_deref(), "{id} {name}");
            }
        }
    }
}
