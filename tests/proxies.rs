//! The proxies of the environment are asked only where that is asked for. A process of its own has them in its
//! environment: this test's own must not change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use eastwest::testing::{FakeGateway, Reply};
use eastwest::{CallContext, ServiceClient};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

async fn call(environment_proxy: bool) -> Result<usize, eastwest::Error> {
    let gateway = FakeGateway::builder()
        .credentials("AKIDPROXIES", "secret", None)
        .region("eu-central-1")
        .route("GET", "/orders", [Reply::ok()])
        .start()
        .await
        .unwrap();
    let builder = ServiceClient::builder(gateway.base_url()).region("eu-central-1").static_credentials(
        "AKIDPROXIES",
        "secret",
        None,
    );
    let builder = if environment_proxy { builder.environment_proxy() } else { builder };
    builder.build()?.get(&CallContext::root(), "/orders").max_attempts(1).send().await?;
    Ok(gateway.attempts().len())
}

#[tokio::test]
#[ignore = "run by the test below, in a process with proxies in its environment"]
async fn child_with_defaults() {
    assert_eq!(call(false).await.unwrap(), 1);
}

#[tokio::test]
#[ignore = "run by the test below, in a process with proxies in its environment"]
async fn child_that_asks_for_proxies() {
    call(true).await.unwrap_err();
}

/// Runs one of the tests above with every proxy variable set, and counts the connections that the proxy saw.
fn connections_at_the_proxy(child: &str) -> usize {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    // Every connection is closed at once: a proxy that refuses.
    std::thread::spawn(move || {
        for connection in proxy.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored"]);
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env(variable, &address);
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    seen.load(Ordering::SeqCst)
}

#[test]
fn the_proxies_of_the_environment_are_not_asked_unless_that_is_asked_for() {
    assert_eq!(connections_at_the_proxy("child_with_defaults"), 0);
    assert!(connections_at_the_proxy("child_that_asks_for_proxies") > 0);
}
