//! API Gateway's own names for its answers, with the answer of each.

use crate::testing::answers::reply::Reply;

/// A type of answer that a REST API gives itself, by API Gateway's name for it (developer guide, *Gateway response types*).
///
/// ```
/// use eastwest::testing::GatewayResponse;
///
/// // What does this SDK make of each?
/// for kind in GatewayResponse::ALL {
///     println!("{:<32} {:?}", kind.as_str(), kind.reply().status_code());
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GatewayResponse {
    /// [`Reply::access_denied`].
    AccessDenied,
    /// [`Reply::api_configuration_error`].
    ApiConfigurationError,
    /// [`Reply::authorizer_configuration_error`].
    AuthorizerConfigurationError,
    /// [`Reply::authorizer_failure`].
    AuthorizerFailure,
    /// [`Reply::bad_request_body`].
    BadRequestBody,
    /// [`Reply::bad_request_parameters`].
    BadRequestParameters,
    /// Any 4XX without a type of its own, as [`Reply::incomplete_signature`].
    Default4xx,
    /// Any 5XX without a type of its own, as [`Reply::unavailable`].
    Default5xx,
    /// [`Reply::token_expired`].
    ExpiredToken,
    /// [`Reply::integration_failure`].
    IntegrationFailure,
    /// [`Reply::integration_timeout`].
    IntegrationTimeout,
    /// [`Reply::invalid_api_key`].
    InvalidApiKey,
    /// [`Reply::signature_mismatch`].
    InvalidSignature,
    /// [`Reply::missing_authentication_token`].
    MissingAuthenticationToken,
    /// [`Reply::quota_exceeded`].
    QuotaExceeded,
    /// [`Reply::payload_too_large`].
    RequestTooLarge,
    /// [`Reply::resource_not_found`].
    ResourceNotFound,
    /// [`Reply::throttled`].
    Throttled,
    /// [`Reply::unauthorized`].
    Unauthorized,
    /// [`Reply::unsupported_media_type`].
    UnsupportedMediaType,
    /// [`Reply::waf_blocked`].
    WafFiltered,
}

impl GatewayResponse {
    /// All of them, in alphabetical order.
    pub const ALL: &'static [GatewayResponse] = &[
        GatewayResponse::AccessDenied,
        GatewayResponse::ApiConfigurationError,
        GatewayResponse::AuthorizerConfigurationError,
        GatewayResponse::AuthorizerFailure,
        GatewayResponse::BadRequestBody,
        GatewayResponse::BadRequestParameters,
        GatewayResponse::Default4xx,
        GatewayResponse::Default5xx,
        GatewayResponse::ExpiredToken,
        GatewayResponse::IntegrationFailure,
        GatewayResponse::IntegrationTimeout,
        GatewayResponse::InvalidApiKey,
        GatewayResponse::InvalidSignature,
        GatewayResponse::MissingAuthenticationToken,
        GatewayResponse::QuotaExceeded,
        GatewayResponse::RequestTooLarge,
        GatewayResponse::ResourceNotFound,
        GatewayResponse::Throttled,
        GatewayResponse::Unauthorized,
        GatewayResponse::UnsupportedMediaType,
        GatewayResponse::WafFiltered,
    ];

    /// API Gateway's name for it, `THROTTLED` for instance.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            GatewayResponse::AccessDenied => "ACCESS_DENIED",
            GatewayResponse::ApiConfigurationError => "API_CONFIGURATION_ERROR",
            GatewayResponse::AuthorizerConfigurationError => "AUTHORIZER_CONFIGURATION_ERROR",
            GatewayResponse::AuthorizerFailure => "AUTHORIZER_FAILURE",
            GatewayResponse::BadRequestBody => "BAD_REQUEST_BODY",
            GatewayResponse::BadRequestParameters => "BAD_REQUEST_PARAMETERS",
            GatewayResponse::Default4xx => "DEFAULT_4XX",
            GatewayResponse::Default5xx => "DEFAULT_5XX",
            GatewayResponse::ExpiredToken => "EXPIRED_TOKEN",
            GatewayResponse::IntegrationFailure => "INTEGRATION_FAILURE",
            GatewayResponse::IntegrationTimeout => "INTEGRATION_TIMEOUT",
            GatewayResponse::InvalidApiKey => "INVALID_API_KEY",
            GatewayResponse::InvalidSignature => "INVALID_SIGNATURE",
            GatewayResponse::MissingAuthenticationToken => "MISSING_AUTHENTICATION_TOKEN",
            GatewayResponse::QuotaExceeded => "QUOTA_EXCEEDED",
            GatewayResponse::RequestTooLarge => "REQUEST_TOO_LARGE",
            GatewayResponse::ResourceNotFound => "RESOURCE_NOT_FOUND",
            GatewayResponse::Throttled => "THROTTLED",
            GatewayResponse::Unauthorized => "UNAUTHORIZED",
            GatewayResponse::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
            GatewayResponse::WafFiltered => "WAF_FILTERED",
        }
    }

    /// The answer.
    pub fn reply(self) -> Reply {
        match self {
            GatewayResponse::AccessDenied => Reply::access_denied(),
            GatewayResponse::ApiConfigurationError => Reply::api_configuration_error(),
            GatewayResponse::AuthorizerConfigurationError => Reply::authorizer_configuration_error(),
            GatewayResponse::AuthorizerFailure => Reply::authorizer_failure(),
            GatewayResponse::BadRequestBody => Reply::bad_request_body(),
            GatewayResponse::BadRequestParameters => Reply::bad_request_parameters(),
            GatewayResponse::Default4xx => Reply::incomplete_signature(),
            GatewayResponse::Default5xx => Reply::unavailable(),
            GatewayResponse::ExpiredToken => Reply::token_expired(),
            GatewayResponse::IntegrationFailure => Reply::integration_failure(),
            GatewayResponse::IntegrationTimeout => Reply::integration_timeout(),
            GatewayResponse::InvalidApiKey => Reply::invalid_api_key(),
            GatewayResponse::InvalidSignature => Reply::signature_mismatch(),
            GatewayResponse::MissingAuthenticationToken => Reply::missing_authentication_token(),
            GatewayResponse::QuotaExceeded => Reply::quota_exceeded(),
            GatewayResponse::RequestTooLarge => Reply::payload_too_large(),
            GatewayResponse::ResourceNotFound => Reply::resource_not_found(),
            GatewayResponse::Throttled => Reply::throttled(),
            GatewayResponse::Unauthorized => Reply::unauthorized(),
            GatewayResponse::UnsupportedMediaType => Reply::unsupported_media_type(),
            GatewayResponse::WafFiltered => Reply::waf_blocked(),
        }
    }
}

impl Reply {
    /// The gateway's own answer of this type.
    pub fn gateway_response(kind: GatewayResponse) -> Self {
        kind.reply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_are_there_once_and_in_order() {
        let names: Vec<&str> = GatewayResponse::ALL.iter().map(|kind| kind.as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
    }

    #[test]
    fn each_type_has_the_status_that_the_developer_guide_gives_it() {
        let of = |status: u16| {
            let kinds = GatewayResponse::ALL.iter().filter(|kind| kind.reply().status_code() == Some(status));
            kinds.map(|kind| kind.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(400), ["BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS"]);
        assert_eq!(of(401), ["UNAUTHORIZED"]);
        assert_eq!(of(404), ["RESOURCE_NOT_FOUND"]);
        assert_eq!(of(413), ["REQUEST_TOO_LARGE"]);
        assert_eq!(of(415), ["UNSUPPORTED_MEDIA_TYPE"]);
        assert_eq!(of(429), ["QUOTA_EXCEEDED", "THROTTLED"]);
        assert_eq!(of(504), ["INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT"]);
    }
}
