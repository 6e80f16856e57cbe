//! Requests signed by the AWS SDK's own signer, the counterpart that the verifier is tested against.

use crate::testing::wire::http::RawRequest;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use std::time::{Duration, SystemTime};

pub(crate) const KEY: &str = "AKIDEXAMPLE";
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub(crate) const TOKEN: &str = "an/example+session/token==";
pub(crate) const REGION: &str = "eu-central-1";
pub(crate) const SERVICE: &str = "execute-api";

/// 2026-10-02T10:00:00Z.
pub(crate) fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_935_200)
}

/// Who signs, for what, and how.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) key: &'static str,
    pub(crate) secret: &'static str,
    pub(crate) token: Option<&'static str>,
    pub(crate) region: &'static str,
    pub(crate) service: &'static str,
    pub(crate) at: SystemTime,
    pub(crate) single_encoding: bool,
    pub(crate) unsigned_payload: bool,
}

impl Signer {
    pub(crate) fn new() -> Self {
        Signer {
            key: KEY,
            secret: SECRET,
            token: Some(TOKEN),
            region: REGION,
            service: SERVICE,
            at: noon(),
            single_encoding: false,
            unsigned_payload: false,
        }
    }

    /// Signs the request with all headers that it has; `host` must be among them.
    pub(crate) fn sign(&self, request: RawRequest) -> RawRequest {
        let mut settings = SigningSettings::default();
        // The path is the test's own: it is to be signed as it stands.
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        if self.single_encoding {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
        }
        let identity =
            Credentials::new(self.key, self.secret, self.token.map(str::to_owned), None, "test").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region)
            .name(self.service)
            .time(self.at)
            .settings(settings)
            .build()
            .unwrap()
            .into();
        let mut request = request;
        let body = match self.unsigned_payload {
            true => {
                request = request.with_header("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
                SignableBody::UnsignedPayload
            }
            false => SignableBody::Bytes(request.body()),
        };
        let host = request.header("host").unwrap().to_owned();
        let uri = format!("http://{host}{}", std::str::from_utf8(request.target()).unwrap());
        let names: Vec<&str> = request.header_names().collect();
        let mut headers: Vec<(&str, &str)> = Vec::new();
        for name in names {
            if !headers.iter().any(|(seen, _)| seen.eq_ignore_ascii_case(name)) {
                headers.extend(request.header_values(name).into_iter().map(|value| (name, value)));
            }
        }
        let signable = SignableRequest::new(request.method(), &uri, headers.into_iter(), body).unwrap();
        let (instructions, _) = sign(signable, &params).unwrap().into_parts();
        let added: Vec<(String, String)> =
            instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        added.into_iter().fold(request, |request, (name, value)| request.with_header(&name, value))
    }
}

/// The request as it goes over the wire.
pub(crate) fn to_wire(request: &RawRequest) -> Vec<u8> {
    let mut wire = [request.method().as_bytes(), b" ", request.target(), b" HTTP/1.1\r\n"].concat();
    for line in request.header_lines() {
        wire.extend_from_slice(line);
        wire.extend_from_slice(b"\r\n");
    }
    if request.header("content-length").is_none() && !request.body().is_empty() {
        wire.extend_from_slice(format!("content-length: {}\r\n", request.body().len()).as_bytes());
    }
    wire.extend_from_slice(b"\r\n");
    wire.extend_from_slice(request.body());
    wire
}
