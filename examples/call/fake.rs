//! The embedded gateway in place of a real one: it throttles, then stops waiting for the callee, then answers.

use super::args::Args;
use super::progress::Progress;
use eastwest::testing::{FakeGateway, ManualClock, Reply};
use eastwest::{Error, RetryBudget, ServiceClient};
use std::io;

/// A gateway on a loopback port, whose time is its own: nothing is really waited for.
pub(crate) struct Fake {
    gateway: FakeGateway,
    clock: ManualClock,
}

impl Fake {
    pub(crate) async fn start(args: &Args) -> io::Result<Fake> {
        let clock = ManualClock::new();
        let gateway = FakeGateway::builder()
            .credentials("AKIDFAKE", "fake-secret", None)
            .region("eu-central-1")
            .stage("")
            .manual_clock(&clock)
            .start()
            .await?;
        let script = match args.fails {
            true => vec![Reply::unavailable().header("retry-after", "2")],
            false => vec![
                Reply::throttled().header("retry-after", "2"),
                Reply::integration_timeout(),
                Reply::json(200, r#"{"accepted":true}"#),
            ],
        };
        gateway.script(args.method.as_str(), &args.path, script);
        Ok(Fake { gateway, clock })
    }

    pub(crate) fn client(&self, args: &Args, progress: Progress) -> Result<ServiceClient, Error> {
        let builder = ServiceClient::builder(self.gateway.base_url())
            .region("eu-central-1")
            .static_credentials("AKIDFAKE", "fake-secret", None)
            .retry_budget(RetryBudget::for_concurrency(1))
            .ambient(self.clock.clone())
            .observer(progress);
        args.settings(builder).build()
    }
}
