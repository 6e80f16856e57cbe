//! The gateway, its restarts and its knowledge of credentials, and the weather that all this makes.

use crate::callee::Callee;
use crate::ledger::Ledger;
use crate::proxy::Proxy;
use crate::time::{now, sleep, up_to};
use crate::vault::Vault;
use eastwest::testing::{ANY, FakeGateway};
use fastrand::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The gateway behind the proxy. To the clients it is always at the proxy's port.
pub struct Stage {
    gateway: FakeGateway,
    callee: Arc<Callee>,
    ledger: Arc<Ledger>,
    vault: Vault,
    pub seen: Seen,
}

/// What its gateways saw, all together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub restarts: u64,
    pub rotations: u64,
    pub refusals: u64,
    pub exchanges: u64,
    pub unsigned: u64,
    pub malformed: u64,
    pub connections: u64,
}

impl Stage {
    pub async fn start(callee: Arc<Callee>, ledger: Arc<Ledger>, vault: Vault) -> io::Result<Stage> {
        let gateway = gateway(&callee, &vault).await?;
        Ok(Stage { gateway, callee, ledger, vault, seen: Seen::default() })
    }

    pub fn addr(&self) -> SocketAddr {
        self.gateway.addr()
    }

    /// Ends the gateway with all its connections, leaves nothing at its place for so long, and begins another.
    pub async fn restart(&mut self, proxy: &Proxy, down: Duration) -> io::Result<()> {
        self.seen.restarts += 1;
        proxy.refuse(down);
        self.close().await;
        sleep(down).await;
        self.gateway = gateway(&self.callee, &self.vault).await?;
        proxy.lead_to(self.gateway.addr());
        Ok(())
    }

    /// Gives the clients another set of credentials. The old one is refused after a while, or, at times, before.
    pub async fn rotate(&mut self, rng: &mut Rng) {
        self.seen.rotations += 1;
        let [old, _, _] = self.vault.current();
        if rng.u8(0..3) == 0 {
            self.gateway.revoke(&old);
            sleep(up_to(rng, 300)).await;
            self.adopt();
        } else {
            self.adopt();
            sleep(up_to(rng, 1_000)).await;
            self.gateway.revoke(&old);
        }
    }

    fn adopt(&self) {
        self.vault.rotate();
        let [id, secret, token] = self.vault.current();
        self.gateway.accept(id, secret, Some(&token));
    }

    /// Ends the gateway, and holds what it saw against what the callee did.
    pub async fn close(&mut self) {
        self.gateway.shutdown().await;
        let exchanges = self.gateway.attempts();
        let signed = exchanges.iter().filter(|exchange| exchange.signature_valid()).count() as u64;
        let reached = self.callee.count();
        if signed != reached {
            let what = format!("the gateway let {signed} requests through, and {reached} reached the callee");
            self.ledger.fault(what);
        }
        self.seen.exchanges += exchanges.len() as u64;
        self.seen.unsigned += exchanges.len() as u64 - signed;
        self.seen.malformed += self.gateway.malformed_requests() as u64;
        self.seen.connections += self.gateway.connections() as u64;
    }
}

/// Changes the weather until told to stop. It is calm, rough and stormy in turn, and the gateway is restarted when all three
/// were, so that each third of a run has the same of it; rotations and refusals come when they come.
pub async fn weather(
    mut stage: Stage,
    proxy: Arc<Proxy>,
    mut rng: Rng,
    over: impl Fn() -> bool,
) -> io::Result<Stage> {
    let callee = Arc::clone(&stage.callee);
    loop {
        for (on_the_way, at_the_end) in [(5, 5), (30, 20), (90, 60)] {
            proxy.harm(on_the_way);
            callee.moods(at_the_end);
            let end = now() + Duration::from_millis(1_500) + up_to(&mut rng, 1_500);
            while now() < end {
                if over() {
                    return Ok(stage);
                }
                sleep(Duration::from_millis(300) + up_to(&mut rng, 600)).await;
                match rng.u8(0..6) {
                    0 | 1 => stage.rotate(&mut rng).await,
                    2 => {
                        stage.seen.refusals += 1;
                        proxy.refuse(Duration::from_millis(20) + up_to(&mut rng, 400));
                    }
                    _ => {}
                }
            }
        }
        stage.restart(&proxy, Duration::from_millis(50) + up_to(&mut rng, 800)).await?;
    }
}

async fn gateway(callee: &Arc<Callee>, vault: &Vault) -> io::Result<FakeGateway> {
    let [id, secret, token] = vault.current();
    FakeGateway::builder()
        .region(REGION)
        .credentials(id, secret, Some(&token))
        .route(ANY, PATH, [callee.script()])
        .start()
        .await
}

pub const REGION: &str = "eu-central-1";
pub const PATH: &str = "/orders";
