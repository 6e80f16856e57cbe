//! What API Gateway says in headers and body, named.

use http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::borrow::Cow;

/// An error type of API Gateway (header `x-amzn-errortype`) that this client knows by name.
///
/// A callee may set that header itself, so a type is honoured only with a status that fits it; any other name is
/// left to the status. Source: *Gateway response types for API Gateway*, Amazon API Gateway Developer Guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GatewayError {
    /// The caller's role, or a policy on the way, does not allow the call.
    AccessDenied,
    /// The API's authorizer is set up wrongly.
    AuthorizerConfiguration,
    /// The API's authorizer failed.
    AuthorizerFailure,
    /// The gateway's own validation refused body, parameters or media type.
    BadRequest,
    /// The session token is over.
    ExpiredToken,
    /// API key, WAF, wrong stage or wrong endpoint: the gateway does not say which.
    Forbidden,
    /// The authorization header is not a whole SigV4 header.
    IncompleteSignature,
    /// The integration failed, or the gateway itself.
    InternalServerError,
    /// The signature does not stand; the message says why.
    InvalidSignature,
    /// A usage plan's quota of the day, week or month is used up.
    LimitExceeded,
    /// Unsigned, or no such method or path.
    MissingAuthenticationToken,
    /// A rate limit, in the older word.
    Throttling,
    /// A rate limit.
    TooManyRequests,
    /// An authorizer did not accept the identity.
    Unauthorized,
    /// The key id is not known.
    UnrecognizedClient,
}

impl GatewayError {
    /// Reads the error type of an answer: cut at the first `:`, trimmed, in any case, and only if the status fits.
    ///
    /// Two header lines are no type at all.
    #[must_use]
    pub fn read(status: StatusCode, headers: &HeaderMap) -> Option<GatewayError> {
        let mut lines = headers.get_all(ERROR_TYPE).iter();
        let line = lines.next()?.to_str().ok()?;
        if lines.next().is_some() {
            return None;
        }
        let name = line.split(':').next().unwrap_or_default().trim();
        let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
        found.fits(status).then_some(found)
    }

    /// The name as API Gateway writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(_, error)| *error == self).map_or("", |(name, _)| name)
    }

    /// Whether an answer of this type may quote the signed request, session token included.
    pub(crate) fn may_echo_the_request(self) -> bool {
        matches!(
            self,
            GatewayError::AccessDenied
                | GatewayError::ExpiredToken
                | GatewayError::Forbidden
                | GatewayError::IncompleteSignature
                | GatewayError::InvalidSignature
                | GatewayError::MissingAuthenticationToken
                | GatewayError::UnrecognizedClient
        )
    }

    fn fits(self, status: StatusCode) -> bool {
        match self {
            GatewayError::AccessDenied
            | GatewayError::ExpiredToken
            | GatewayError::IncompleteSignature
            | GatewayError::InvalidSignature
            | GatewayError::MissingAuthenticationToken
            | GatewayError::UnrecognizedClient => status == StatusCode::FORBIDDEN,
            GatewayError::Forbidden => {
                status == StatusCode::FORBIDDEN || status == StatusCode::TOO_MANY_REQUESTS
            }
            GatewayError::LimitExceeded => status == StatusCode::TOO_MANY_REQUESTS,
            GatewayError::Throttling | GatewayError::TooManyRequests | GatewayError::BadRequest => {
                status.is_client_error()
            }
            GatewayError::Unauthorized => status == StatusCode::UNAUTHORIZED,
            GatewayError::AuthorizerConfiguration
            | GatewayError::AuthorizerFailure
            | GatewayError::InternalServerError => status.is_server_error(),
        }
    }
}

/// What can be read from an error's body, whoever wrote it.
///
/// JSON in any spacing, JSON null, plain text, HTML and nothing at all are all normal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// The text under `message` or `Message`, a problem's `detail` or `title`, or the whole of a plain-text body; cleaned
    /// and bounded.
    pub message: Option<String>,
    /// A code of the callee's own: `code`, `error.code`, or the `type` of a problem document (RFC 9457).
    pub code: Option<String>,
    in_progress: bool,
}

impl ErrorBody {
    /// Reads a body; at most [`MESSAGE_LIMIT`] characters of any text are kept.
    #[must_use]
    pub fn read(headers: &HeaderMap, body: &[u8]) -> ErrorBody {
        let content_type = headers.get(http::header::CONTENT_TYPE).map_or(&b""[..], |v| v.as_bytes());
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(fields)) => ErrorBody::from_json(&fields, is_problem(content_type)),
            Ok(Value::String(text)) => ErrorBody { message: bounded(&text), ..ErrorBody::default() },
            Ok(_) => ErrorBody::default(),
            Err(_) if starts_with_ignoring_case(content_type, b"text/html") => ErrorBody::default(),
            Err(_) => {
                let start = body.get(..MESSAGE_LIMIT * 4).unwrap_or(body);
                let text = String::from_utf8_lossy(start);
                let is_markup = text.trim_start().starts_with('<');
                ErrorBody { message: if is_markup { None } else { bounded(&text) }, ..ErrorBody::default() }
            }
        }
    }

    /// Whether the body says that this very idempotency key is being worked on.
    #[must_use]
    pub fn says_in_progress(&self) -> bool {
        self.in_progress
    }

    fn from_json(fields: &serde_json::Map<String, Value>, problem: bool) -> ErrorBody {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let nested = fields.get("error").and_then(Value::as_object);
        let inner = |name: &str| nested.and_then(|e| e.get(name)).and_then(Value::as_str);
        let message = text("message").or_else(|| text("Message")).or_else(|| inner("message"));
        let problem_type = text("type").filter(|t| problem && *t != "about:blank");
        let code = text("code").or_else(|| inner("code")).or(problem_type);
        let words =
            [text("code"), inner("code"), text("error"), text("errorType"), text("type"), inner("type")];
        let titled = problem && text("title").is_some_and(says_outstanding);
        ErrorBody {
            message: message
                .or_else(|| text("detail").or(text("title")).filter(|_| problem))
                .and_then(bounded),
            code: code.and_then(bounded),
            in_progress: titled || words.into_iter().flatten().any(is_in_progress_code),
        }
    }
}

/// The first sentence of a text: what may be kept of an answer that quotes the signed request.
#[must_use]
pub fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    let sentence = line.get(..end).unwrap_or(line);
    let hash_note = sentence.find(" (").filter(|_| sentence.contains("Authorization"));
    sentence.get(..hash_note.unwrap_or(sentence.len())).unwrap_or(sentence)
}

/// Removes control characters and cuts a text that somebody else wrote to `most` characters.
#[must_use]
pub fn clean(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().count() <= most && !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text.trim());
    }
    let cut: String = text.chars().take(most).map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    Cow::Owned(cut.trim().to_owned())
}

/// The gateway's id of a request, if it looks like one: at most 128 letters, digits, `-`, `_` and `=`. REST APIs, function
/// URLs and HTTP APIs name the header differently.
#[must_use]
pub fn request_id(headers: &HeaderMap) -> Option<&str> {
    let named = ["x-amzn-requestid", "apigw-requestid", "x-amz-apigw-id"];
    let id = named.iter().find_map(|name| headers.get(*name))?.to_str().ok()?;
    let well_formed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=');
    (id.len() <= 128 && id.bytes().all(well_formed)).then_some(id)
}

/// How many characters of a message or code are kept.
pub const MESSAGE_LIMIT: usize = 512;

const ERROR_TYPE: &str = "x-amzn-errortype";

const NAMES: [(&str, GatewayError); 15] = [
    ("AccessDeniedException", GatewayError::AccessDenied),
    ("AuthorizerConfigurationException", GatewayError::AuthorizerConfiguration),
    ("AuthorizerFailureException", GatewayError::AuthorizerFailure),
    ("BadRequestException", GatewayError::BadRequest),
    ("ExpiredTokenException", GatewayError::ExpiredToken),
    ("ForbiddenException", GatewayError::Forbidden),
    ("IncompleteSignatureException", GatewayError::IncompleteSignature),
    ("InternalServerErrorException", GatewayError::InternalServerError),
    ("InvalidSignatureException", GatewayError::InvalidSignature),
    ("LimitExceededException", GatewayError::LimitExceeded),
    ("MissingAuthenticationTokenException", GatewayError::MissingAuthenticationToken),
    ("ThrottlingException", GatewayError::Throttling),
    ("TooManyRequestsException", GatewayError::TooManyRequests),
    ("UnauthorizedException", GatewayError::Unauthorized),
    ("UnrecognizedClientException", GatewayError::UnrecognizedClient),
];

/// Codes by which callees say that the key is being worked on, in lower case and without punctuation.
const IN_PROGRESS_CODES: [&str; 8] = [
    "idempotencyalreadyinprogress",
    "idempotencyalreadyinprogresserror",
    "idempotencyinprogress",
    "idempotencykeyinprogress",
    "idempotencykeyinuse",
    "idempotencyrequestinprogress",
    "idempotentrequestinprogress",
    "requestwithidempotencykeyinprogress",
];

fn is_in_progress_code(code: &str) -> bool {
    // A problem type is a URL, whose last segment is the word.
    let word = code.trim_end_matches('/').rsplit(['/', '#', ':']).next().unwrap_or(code);
    let folded: String =
        word.chars().take(64).filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    IN_PROGRESS_CODES.contains(&folded.as_str())
}

fn says_outstanding(title: &str) -> bool {
    let title = title.to_ascii_lowercase();
    title.contains("outstanding") || title.contains("in progress")
}

fn is_problem(content_type: &[u8]) -> bool {
    starts_with_ignoring_case(content_type, b"application/problem+json")
}

fn starts_with_ignoring_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

fn bounded(text: &str) -> Option<String> {
    let text = clean(text, MESSAGE_LIMIT);
    (!text.is_empty()).then(|| text.into_owned())
}

/// Control characters, and those that turn the direction of a terminal's text or hide in it.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn typed(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ERROR_TYPE, HeaderValue::from_str(value).unwrap());
        headers
    }

    fn body_of(content_type: &'static str, body: &str) -> ErrorBody {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        ErrorBody::read(&headers, body.as_bytes())
    }

    #[test]
    fn a_type_is_cut_at_the_colon_trimmed_and_read_in_any_case() {
        let read = |value| GatewayError::read(StatusCode::FORBIDDEN, &typed(value));
        assert_eq!(read("AccessDeniedException"), Some(GatewayError::AccessDenied));
        assert_eq!(
            read(" unrecognizedclientexception :http://internal.example/"),
            Some(GatewayError::UnrecognizedClient)
        );
        assert_eq!(read("ExpiredTokenException:"), Some(GatewayError::ExpiredToken));
        assert_eq!(read("DbUnavailable"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_type_with_a_status_that_does_not_fit_is_nobody_s_type() {
        for (name, error) in NAMES {
            assert_eq!(GatewayError::read(StatusCode::OK, &typed(name)), None, "{name}");
            assert_eq!(error.as_str(), name);
        }
        let limit = typed("LimitExceededException");
        assert_eq!(
            GatewayError::read(StatusCode::TOO_MANY_REQUESTS, &limit),
            Some(GatewayError::LimitExceeded)
        );
        assert_eq!(GatewayError::read(StatusCode::BAD_REQUEST, &limit), None);
    }

    #[test]
    fn two_types_are_no_type() {
        let mut headers = typed("AccessDeniedException");
        headers.append(ERROR_TYPE, HeaderValue::from_static("AccessDeniedException"));
        assert_eq!(GatewayError::read(StatusCode::FORBIDDEN, &headers), None);
    }

    #[test]
    fn a_message_is_read_under_either_name_and_null_html_and_nothing_are_none() {
        let json = "application/json";
        assert_eq!(body_of(json, r#"{"message": "Forbidden"}"#).message.as_deref(), Some("Forbidden"));
        assert_eq!(body_of(json, r#"{"Message":"no"}"#).message.as_deref(), Some("no"));
        assert_eq!(body_of(json, r#"{"message":null}"#).message, None);
        assert_eq!(body_of("text/plain", "too long").message.as_deref(), Some("too long"));
        assert_eq!(body_of("text/html", "<html>502</html>").message, None);
        assert_eq!(body_of(json, "<html>502</html>").message, None);
        assert_eq!(body_of(json, "").message, None);
        assert_eq!(body_of(json, "[1,2]").message, None);
        let problem = r#"{"title":"Bad SKU","detail":"SKU must be upper case"}"#;
        assert_eq!(
            body_of("application/problem+json", problem).message.as_deref(),
            Some("SKU must be upper case")
        );
    }

    #[test]
    fn a_code_is_read_from_code_error_code_or_the_problem_type() {
        let json = "application/json";
        let code = |kind, body| body_of(kind, body).code;
        assert_eq!(code(json, r#"{"code":"OUT_OF_STOCK"}"#).as_deref(), Some("OUT_OF_STOCK"));
        assert_eq!(code(json, r#"{"error":{"code":"E7"}}"#).as_deref(), Some("E7"));
        assert_eq!(
            code("application/problem+json", r#"{"type":"https://x.example/y"}"#).as_deref(),
            Some("https://x.example/y")
        );
        assert_eq!(code(json, r#"{"type":"https://x.example/y"}"#), None);
        assert_eq!(code("application/problem+json", r#"{"type":"about:blank"}"#), None);
        assert_eq!(code(json, r#"{"code":7}"#), None);
    }

    #[test]
    fn texts_from_outside_are_cut_and_hold_no_control_characters() {
        let long = format!("{{\"message\":\"a\\u0007b\\r\\n{}\"}}", "x".repeat(2_000));
        let message = body_of("application/json", &long).message.unwrap();
        assert_eq!(message.chars().count(), MESSAGE_LIMIT);
        assert!(message.starts_with("a b  x"), "{message}");
        assert_eq!(clean("safe\u{202e}evil", 20), "safe evil");
        assert_eq!(clean("é".repeat(600).as_str(), 3), "ééé");
    }

    #[test]
    fn only_a_word_from_the_list_or_an_outstanding_problem_is_in_progress() {
        let json = "application/json";
        for yes in [
            r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#,
            r#"{"errorType":"IdempotencyAlreadyInProgressError"}"#,
            r#"{"error":{"code":"idempotency-key-in-use"}}"#,
            r#"{"error":"idempotency_in_progress"}"#,
            r#"{"type":"https://errors.example/idempotency-in-progress/"}"#,
        ] {
            assert!(body_of(json, yes).says_in_progress(), "{yes}");
        }
        for no in [
            r#"{"error":"version_conflict"}"#,
            r#"{"title":"A request is outstanding"}"#,
            r#"{"message":"in progress"}"#,
            "in progress",
        ] {
            assert!(!body_of(json, no).says_in_progress(), "{no}");
        }
        let problem = "application/problem+json; charset=utf-8";
        assert!(body_of(problem, r#"{"title":"A request is OUTSTANDING for this key"}"#).says_in_progress());
        assert!(!body_of(problem, r#"{"title":"Conflict"}"#).says_in_progress());
    }

    #[test]
    fn the_first_sentence_ends_at_its_full_stop_or_its_line() {
        assert_eq!(first_sentence("It does not match. Check your key.\n\nhost:a"), "It does not match.");
        assert_eq!(first_sentence("no stop\nx-amz-security-token:SECRET"), "no stop");
        assert_eq!(first_sentence(""), "");
        let hashed = "Invalid key=value pair (missing equal-sign) in Authorization header (hashed: 'AAA').";
        assert!(!first_sentence(hashed).contains("AAA"));
    }

    #[test]
    fn a_request_s_id_is_short_and_of_letters_digits_and_three_signs_or_it_is_none() {
        let id = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("apigw-requestid", HeaderValue::from_str(value).unwrap());
            request_id(&headers).map(str::to_owned)
        };
        for good in ["JKJaXmPLvHcESHA=", "a-b_c", &"a".repeat(128)] {
            assert_eq!(id(good).as_deref(), Some(good));
        }
        for bad in ["a b", "a/b", "<b>", &"a".repeat(129)] {
            assert_eq!(id(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_refuses_a_signature_may_quote_the_request_and_what_throttles_does_not() {
        for (_, error) in NAMES {
            let refuses_it = error.fits(StatusCode::FORBIDDEN) && !error.fits(StatusCode::BAD_REQUEST);
            assert_eq!(error.may_echo_the_request(), refuses_it, "{error:?}");
        }
    }

    #[test]
    fn of_html_nothing_is_kept_and_of_other_text_what_fits() {
        assert_eq!(body_of("text/html; charset=utf-8", "Bad gateway").message, None);
        assert_eq!(body_of("text/plain", "Bad gateway").message.as_deref(), Some("Bad gateway"));
        assert_eq!(body_of("application/json", "\"Bad gateway\"").message.as_deref(), Some("Bad gateway"));
        let long = "é".repeat(2 * MESSAGE_LIMIT);
        let kept = body_of("text/plain", &long).message.unwrap();
        assert_eq!(kept.chars().filter(|c| *c == 'é').count(), MESSAGE_LIMIT);
    }
}
