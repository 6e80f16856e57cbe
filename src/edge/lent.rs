//! Our HTTP client, lent to `aws-config`, which would else bring one and a TLS stack of its own.

use crate::edge::body::{self, BodyLimits, Ended};
use crate::edge::fault::Fault;
use crate::edge::pool::client_builder;
use crate::edge::tls::TlsSettings;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use reqwest::Client;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Loads the AWS configuration as the AWS SDK does, over this crate's HTTP client: environment, profiles, web identity,
/// containers, instance metadata.
///
/// No proxy is used: metadata is never behind one. Where the token service is, load the configuration with another
/// client and hand it over.
pub async fn load_aws_config() -> SdkConfig {
    load_aws_config_with(|loader| loader).await
}

/// Loads the AWS configuration as [`load_aws_config`] does, with what `set` says of it: a profile, a Region.
///
/// ```
/// # async fn load() -> aws_config::SdkConfig {
/// eastwest::load_aws_config_with(|loader| loader.profile_name("orders-dev")).await
/// # }
/// ```
pub async fn load_aws_config_with(set: impl FnOnce(ConfigLoader) -> ConfigLoader) -> SdkConfig {
    set(aws_config::defaults(BehaviorVersion::latest()).http_client(lent_client())).load().await
}

/// Our HTTP client in the form that `aws-config` takes.
pub(crate) fn lent_client() -> SharedHttpClient {
    SharedHttpClient::new(LentClient::default())
}

/// Makes connectors; nothing is built before one is asked for, for credentials in the environment need none.
#[derive(Debug, Default)]
struct LentClient {
    /// One client for each connect timeout, which reqwest cannot set for a request alone.
    clients: Mutex<Vec<(Option<Duration>, Client)>>,
}

impl LentClient {
    fn client(&self, connect_timeout: Option<Duration>) -> Result<Client, Fault> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(timeout, _)| *timeout == connect_timeout) {
            return Ok(client.clone());
        }
        let mut builder = client_builder(&TlsSettings::default().client_config()?).no_proxy();
        if let Some(timeout) = connect_timeout {
            builder = builder.connect_timeout(timeout);
        }
        let client = builder.build().map_err(|error| Fault::new("aws_config", error.to_string()))?;
        clients.push((connect_timeout, client.clone()));
        Ok(client)
    }

    fn connector(&self, settings: &HttpConnectorSettings) -> Connector {
        let connect_timeout = settings.connect_timeout();
        let read_timeout = settings.read_timeout().unwrap_or(LONGEST_READ);
        Connector {
            client: self.client(connect_timeout),
            timeout: read_timeout.saturating_add(connect_timeout.unwrap_or_default()),
        }
    }
}

impl HttpClient for LentClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.connector(settings))
    }
}

#[derive(Debug)]
struct Connector {
    client: Result<Client, Fault>,
    /// Of a whole exchange: answers here are small, so that a body that drips is as good as none.
    timeout: Duration,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (client, timeout) = (self.client.clone(), self.timeout);
        HttpConnectorFuture::new(async move {
            let client = client.map_err(|fault| ConnectorError::user(fault.into()))?;
            exchange(&client, request, timeout).await
        })
    }
}

async fn exchange(
    client: &Client,
    request: HttpRequest,
    timeout: Duration,
) -> Result<HttpResponse, ConnectorError> {
    let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
    let (head, body) = request.into_parts();
    let url =
        head.uri.to_string().parse().map_err(|error: url::ParseError| ConnectorError::user(error.into()))?;
    let mut request = reqwest::Request::new(head.method, url);
    *request.headers_mut() = head.headers;
    *request.timeout_mut() = Some(timeout);
    match body.bytes() {
        None => {
            return Err(ConnectorError::user("a body that is a stream cannot be sent".into()));
        }
        Some([]) => {}
        Some(bytes) => *request.body_mut() = Some(bytes.to_vec().into()),
    }

    let mut response = client.execute(request).await.map_err(failure)?;
    let mut answer = http::Response::new(SdkBody::empty());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    match body::read(&mut response, LIMITS).await {
        (_, Ended::Broken(error)) => return Err(failure(error)),
        (_, Ended::Over) => return Err(ConnectorError::other("the answer is too large".into(), None)),
        (bytes, Ended::Whole) => *answer.body_mut() = SdkBody::from(bytes),
    }
    HttpResponse::try_from(answer).map_err(|error| ConnectorError::other(error.into(), None))
}

fn failure(error: reqwest::Error) -> ConnectorError {
    let (timeout, connect) = (error.is_timeout(), error.is_connect());
    let source = error.without_url().into();
    let failure = if timeout { ConnectorError::timeout(source) } else { ConnectorError::io(source) };
    if connect { failure.never_connected() } else { failure }
}

/// Where the chain sets no limit: the token service.
const LONGEST_READ: Duration = Duration::from_secs(10);
const LIMITS: BodyLimits = BodyLimits { success: 1024 * 1024, error: 1024 * 1024 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::peer::{Act, HANG, Peer, in_own_process};
    use aws_credential_types::provider::{self, ProvideCredentials};
    use std::error::Error;

    const ENDPOINT: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";

    fn keys() -> Act {
        let keys = r#"{"AccessKeyId":"AKID","SecretAccessKey":"secret","Token":"token","Expiration":"2100-01-01T00:00:00Z"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{keys}", keys.len());
        Act::Write(answer.leak())
    }

    /// What the chain finds in the process where it is tried.
    async fn from_the_environment() -> provider::Result {
        let config = load_aws_config().await;
        assert_eq!(config.region().unwrap().as_ref(), "eu-central-1");
        config.credentials_provider().unwrap().provide_credentials().await
    }

    /// Runs a test in a process that finds its credentials at this peer, as a container does.
    async fn in_a_container(test: &str, peer: &Peer) -> bool {
        let endpoint = format!("http://{}/credentials?id=7", peer.address);
        let environment = [
            ("AWS_CONFIG_FILE", "/nonexistent"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"),
            (ENDPOINT, endpoint.as_str()),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
        ];
        in_own_process(&format!("{}::{test}", module_path!()), &environment).await
    }

    #[tokio::test]
    #[ignore = "run by a test below, in a process with a container's environment"]
    async fn credentials_are_found() {
        if std::env::var_os(ENDPOINT).is_none() {
            return;
        }
        let found = from_the_environment().await.unwrap();
        assert_eq!((found.access_key_id(), found.session_token()), ("AKID", Some("token")));
        assert!(found.expiry().is_some());
    }

    #[tokio::test]
    #[ignore = "run by a test below, in a process with a container's environment"]
    async fn credentials_are_refused() {
        if std::env::var_os(ENDPOINT).is_none() {
            return;
        }
        assert!(from_the_environment().await.is_err());
    }

    #[tokio::test]
    async fn the_chain_finds_the_credentials_of_a_container_over_the_lent_client() {
        let peer = Peer::playing(&[keys()]).await;
        assert!(in_a_container("credentials_are_found", &peer).await);
        let request = peer.requests().remove(0);
        assert!(request.starts_with("GET /credentials?id=7 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nauthorization: container-token\r\n"));
    }

    #[tokio::test]
    async fn an_endpoint_that_refuses_is_an_error_and_a_redirect_of_one_is_not_followed() {
        let elsewhere = Peer::playing(&[keys()]).await;
        let to = elsewhere.address;
        let location = format!("HTTP/1.1 302 x\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n");
        let refusal = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}";
        for answer in [refusal, location.leak()] {
            let peer = Peer::playing(&[Act::Write(answer)]).await;
            assert!(in_a_container("credentials_are_refused", &peer).await);
            assert_eq!(peer.requests().len(), 1);
        }
        assert_eq!(elsewhere.connections(), 0);
    }

    async fn call(
        client: &LentClient,
        peer: &Peer,
        settings: HttpConnectorSettings,
    ) -> Result<u16, ConnectorError> {
        let connector = client.connector(&settings);
        let request = HttpRequest::get(format!("http://{}/?secret=query-marker", peer.address)).unwrap();
        connector.call(request).await.map(|response| response.status().as_u16())
    }

    fn short() -> HttpConnectorSettings {
        let short = Duration::from_millis(30);
        HttpConnectorSettings::builder().connect_timeout(short).read_timeout(short).build()
    }

    #[tokio::test]
    async fn an_endpoint_that_never_answers_or_drips_ends_with_the_timeout_of_the_chain() {
        let drip = Act::WriteAndHang("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
        for act in [HANG, drip] {
            let peer = Peer::playing(&[act]).await;
            let error = call(&LentClient::default(), &peer, short()).await.unwrap_err();
            assert!(error.is_timeout());
            assert!(!format!("{error:?} {:?}", error.source()).contains("query-marker"));
        }
    }

    #[tokio::test]
    async fn connectors_of_the_same_timeout_share_their_connections() {
        let peer = Peer::playing(&[Act::Write("HTTP/1.1 204 x\r\n\r\n")]).await;
        let client = LentClient::default();
        let plenty = || HttpConnectorSettings::builder().connect_timeout(Duration::from_secs(9)).build();
        assert_eq!(call(&client, &peer, plenty()).await.unwrap(), 204);
        assert_eq!(call(&client, &peer, plenty()).await.unwrap(), 204);
        assert_eq!(peer.connections(), 1);
    }
}
