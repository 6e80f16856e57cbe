//! A proxy on a loopback port that stands between client and gateway and does harm by a seed.

use crate::exchange::carry;
use crate::fault::Fault;
use crate::time::{sleep, up_to};
use fastrand::Rng;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

/// What is told of each exchange, as it is on its way.
pub trait Witness: Send + Sync + 'static {
    /// The head of a request came.
    fn arrived(&self, exchange: &Passage);
    /// The head of an answer goes out.
    fn answering(&self, exchange: &Passage, status: u16);
    /// The whole answer went out.
    fn delivered(&self, exchange: &Passage);
}

/// Which attempt of which call an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    pub reference: u64,
    pub attempt: u32,
}

/// The proxy, at one address for as long as it lives, whatever becomes of the gateway behind it.
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    refusals: mpsc::UnboundedSender<Duration>,
    listening: JoinHandle<()>,
}

/// What its connections share.
pub struct Shared {
    pub witness: Arc<dyn Witness>,
    upstream: Mutex<SocketAddr>,
    percent: AtomicU32,
    rng: Mutex<Rng>,
    connections: AtomicU64,
    faults: Mutex<[u64; Fault::ALL.len()]>,
    greetings: AtomicU64,
}

impl Proxy {
    /// Begins to listen, and passes all until told otherwise.
    pub async fn start(upstream: SocketAddr, witness: Arc<dyn Witness>, seed: u64) -> io::Result<Proxy> {
        let mut rng = Rng::with_seed(seed);
        let listener = bind(&mut rng).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            witness,
            upstream: Mutex::new(upstream),
            percent: AtomicU32::new(0),
            rng: Mutex::new(rng),
            connections: AtomicU64::new(0),
            faults: Mutex::default(),
            greetings: AtomicU64::new(0),
        });
        let (refusals, told) = mpsc::unbounded_channel();
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared), told));
        Ok(Proxy { addr, shared, refusals, listening })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sets where the gateway is from now on.
    pub fn lead_to(&self, upstream: SocketAddr) {
        *self.shared.upstream.lock().unwrap() = upstream;
    }

    /// Sets how many exchanges in a hundred are harmed.
    pub fn harm(&self, percent: u32) {
        self.shared.percent.store(percent, Ordering::Relaxed);
    }

    /// Refuses new connections for so long.
    pub fn refuse(&self, time: Duration) {
        // Only a proxy that has ended does not hear it.
        let _ = self.refusals.send(time);
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// How often each fault was drawn.
    pub fn faults(&self) -> Vec<(Fault, u64)> {
        let counts = *self.shared.faults.lock().unwrap();
        Fault::ALL.into_iter().zip(counts).collect()
    }

    /// How many connections were ended before a byte of them was read.
    pub fn ended_unread(&self) -> u64 {
        self.shared.greetings.load(Ordering::Relaxed)
    }

    /// Ends it with all its connections.
    pub async fn shutdown(self) {
        drop(self.refusals);
        let _ = self.listening.await;
    }
}

impl Shared {
    pub fn upstream(&self) -> SocketAddr {
        *self.upstream.lock().unwrap()
    }

    pub fn draw(&self, rng: &mut Rng) -> Fault {
        let fault = Fault::draw(rng, self.percent.load(Ordering::Relaxed));
        let place = Fault::ALL.iter().position(|known| *known == fault);
        self.faults.lock().unwrap()[place.unwrap_or_default()] += 1;
        fault
    }
}

/// Accepts until the proxy is dropped; all connections end with it, for their tasks are owned here.
async fn listen(listener: TcpListener, shared: Arc<Shared>, mut refusals: mpsc::UnboundedReceiver<Duration>) {
    let mut connections = JoinSet::new();
    let Ok(addr) = listener.local_addr() else { return };
    let mut listener = Some(listener);
    while let Some(open) = &listener {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            told = refusals.recv() => match told {
                None => break,
                Some(time) => {
                    drop(listener.take());
                    sleep(time).await;
                    listener = Some(bind_again(addr).await);
                }
            },
            accepted = open.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let rng = shared.rng.lock().unwrap().fork();
                connections.spawn(greet(Arc::clone(&shared), stream, rng));
            }
        }
    }
    connections.shutdown().await;
}

/// Ends some connections before anything of them is read, and carries the others.
async fn greet(shared: Arc<Shared>, stream: TcpStream, mut rng: Rng) {
    // Pieces go out one by one, as the course has them.
    let _ = stream.set_nodelay(true);
    // Connections are fewer than exchanges, and a client meets such an end before all else.
    if rng.u32(0..400) < shared.percent.load(Ordering::Relaxed) {
        shared.greetings.fetch_add(1, Ordering::Relaxed);
        match rng.u32(0..3) {
            0 => drop(stream.set_zero_linger()),
            1 => {}
            _ => sleep(up_to(&mut rng, 2_000)).await,
        }
        return;
    }
    carry(&shared, stream, rng).await;
}

/// A port below those that the system gives to outgoing connections: none of these may take it while it is refused.
async fn bind(rng: &mut Rng) -> io::Result<TcpListener> {
    let mut last = io::ErrorKind::AddrInUse.into();
    for _ in 0..200 {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, rng.u16(PORTS))).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn bind_again(addr: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(addr).await {
            Ok(listener) => return listener,
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Linux gives outgoing connections 32,768 and up (`ip_local_port_range`).
const PORTS: Range<u16> = 20_000..32_000;

#[cfg(test)]
mod tests;
