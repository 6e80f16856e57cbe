//! The run itself: everything is set up, worked for its time, calmed, probed, ended, and judged.

use crate::callee::Callee;
use crate::caller::{Manner, Office, TOTAL, client, probe, work};
use crate::exchange::LONGEST;
use crate::ledger::Ledger;
use crate::proxy::Proxy;
use crate::report::Report;
use crate::stage::{REGION, Stage, weather};
use crate::tally::Tally;
use crate::time::{now, sleep};
use crate::vault::Vault;
use crate::watch::{Watch, files};
use eastwest::{AccountQuota, CircuitState, ServiceClient};
use fastrand::Rng;
use std::io::{self, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Works for so long, and tells what was found.
pub async fn run(time: Duration, seed: u64) -> io::Result<Report> {
    let mut rng = Rng::with_seed(seed);
    let (files_before, tasks_before) = (files(), Handle::current().metrics().num_alive_tasks());
    let (ledger, vault) = (Arc::new(Ledger::default()), Vault::new(rng.u64(..)));
    let callee = Callee::new(Arc::clone(&ledger), rng.u64(..));
    let stage = Stage::start(Arc::clone(&callee), Arc::clone(&ledger), vault.clone()).await?;
    let proxy = Arc::new(Proxy::start(stage.addr(), Arc::clone(&ledger) as _, rng.u64(..)).await?);
    let watch = Watch::start(TASKS, TOTAL + SLACK);
    let office = Arc::new(Office {
        ledger: Arc::clone(&ledger),
        board: watch.board(),
        tally: Tally::default(),
        over: AtomicBool::new(false),
    });
    let account = AccountQuota::of_region(REGION);
    let clients = clients(&proxy, &vault, &account)?;

    vault.moods(true);
    let workers: Vec<_> = (0..TASKS)
        .map(|task| {
            let (client, manner) = clients[task % clients.len()].clone();
            tokio::spawn(work(task, client, manner, Arc::clone(&office), rng.fork()))
        })
        .collect();
    let closed = Arc::clone(&office);
    let over = move || closed.over.load(Ordering::Relaxed);
    let weather = tokio::spawn(weather(stage, Arc::clone(&proxy), rng.fork(), over));
    let end = now() + time;
    while now() < end {
        sleep(Duration::from_secs(1)).await;
        ledger.settle(now(), SETTLED);
    }
    // The load is over: what comes now is no part of what must stay flat.
    let samples = watch.stop();
    office.over.store(true, Ordering::Relaxed);
    let mut stage = tokio::time::timeout(STUCK, weather).await.map_err(Error::other)???;
    let all = async {
        for worker in workers {
            if let Err(error) = worker.await {
                ledger.fault(format!("a task ended by itself: {error}"));
            }
        }
    };
    if tokio::time::timeout(STUCK, all).await.is_err() {
        ledger.fault("STUCK: a task does not end".to_owned());
    }

    proxy.harm(0);
    callee.moods(0);
    vault.moods(false);
    let mut recovering = JoinSet::new();
    for (client, manner) in clients.clone() {
        recovering.spawn(recovers(client, manner, Arc::clone(&office), rng.fork()));
    }
    recovering.join_all().await;
    let proxy_seen = (proxy.connections(), proxy.ended_unread(), proxy.faults());
    let of_each: Vec<_> = clients.iter().map(|(client, _)| client.usage()).collect();
    drop(clients);
    if let Some(proxy) = Arc::into_inner(proxy) {
        proxy.shutdown().await;
    }
    stage.close().await;
    ledger.settle(now(), Duration::ZERO);
    let files_after = comes_down_to(files_before + FILES_OF_THE_RUNTIME, files).await;
    let tasks_after =
        comes_down_to(tasks_before as u64, || Handle::current().metrics().num_alive_tasks() as u64).await;
    let (sums, open) = ledger.sums();
    Ok(Report {
        seed,
        time,
        sums,
        usage: account.usage(),
        of_each,
        open,
        seen: stage.seen,
        loads: vault.loads(),
        connections: proxy_seen.0,
        ended_unread: proxy_seen.1,
        faults_drawn: proxy_seen.2,
        samples,
        files: (files_before + FILES_OF_THE_RUNTIME, files_after),
        tasks: (tasks_before as u64, tasks_after),
        office,
    })
}

fn clients(proxy: &Proxy, vault: &Vault, account: &AccountQuota) -> io::Result<Vec<(ServiceClient, Manner)>> {
    (0..CLIENTS)
        .map(|number| {
            let manner = if number % 2 == 0 { Manner::Default } else { Manner::Wide };
            let paced = number >= CLIENTS - 2;
            client(proxy.addr(), (vault, account), (manner, paced))
                .map(|client| (client, manner))
                .map_err(Error::other)
        })
        .collect()
}

/// In fair weather every client works again, whatever it has been through: no permit and no token is held by a call
/// that is gone.
async fn recovers(client: ServiceClient, manner: Manner, office: Arc<Office>, mut rng: Rng) {
    let end = now() + STUCK;
    let mut in_a_row = 0;
    while in_a_row < 3 {
        if now() > end {
            office.ledger.fault(format!("STUCK: a client ({manner:?}) does not recover: {client:?}"));
            return;
        }
        if probe(&client, manner, &office, &mut rng).await {
            in_a_row += 1;
        } else {
            in_a_row = 0;
            sleep(Duration::from_millis(100)).await;
        }
    }
    if client.breaker().state() != CircuitState::Closed {
        office.ledger.fault(format!("a client ({manner:?}) works and its breaker is not closed: {client:?}"));
    }
}

/// What a count comes to once what is ending has ended.
async fn comes_down_to(goal: u64, count: impl Fn() -> u64) -> u64 {
    for _ in 0..100 {
        if count() <= goal {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    count()
}

pub const TASKS: usize = 256;
const CLIENTS: usize = 8;
/// Beyond a call's own time, before its task counts as stuck: a machine may be very busy.
const SLACK: Duration = Duration::from_secs(30);
const STUCK: Duration = Duration::from_secs(60);
/// After so long nothing of a call is on its way: the proxy holds nothing for as long, and the gateway's slowest answer
/// comes after its work.
const SETTLED: Duration = LONGEST.saturating_mul(5);
/// What the runtime opens for itself once it is at work: its poll, its wakers, its signals.
const FILES_OF_THE_RUNTIME: u64 = 4;
