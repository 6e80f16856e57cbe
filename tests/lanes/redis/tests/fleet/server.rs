//! One redis-server of the test's own, which can be killed, paused and started again.

use eastwest::fleet::RedisStore;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, process};

/// A running server that writes nothing down; dropping it kills it.
pub struct Server {
    child: Mutex<Child>,
    addr: SocketAddr,
    dir: Scratch,
    secure: bool,
}

impl Server {
    pub async fn start() -> Server {
        Server::begin(false).await
    }

    /// One that speaks TLS alone, with the certificate that is in its directory.
    pub async fn start_tls() -> Server {
        Server::begin(true).await
    }

    async fn begin(secure: bool) -> Server {
        for _ in 0..PORT_TRIES {
            let (dir, addr) = (Scratch::new(), free_port());
            if secure {
                let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
                fs::write(dir.0.join("cert.pem"), made.cert.pem()).unwrap();
                fs::write(dir.0.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
            }
            let child = Mutex::new(spawn(&dir.0, addr, secure));
            let server = Server { child, addr, dir, secure };
            // Another process may have taken the port since it was found free.
            if server.listens().await {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    pub fn url(&self) -> String {
        let (scheme, port) = (if self.secure { "rediss" } else { "redis" }, self.addr.port());
        format!("{scheme}://localhost:{port}")
    }

    pub fn certificate(&self) -> Vec<u8> {
        fs::read(self.dir.0.join("cert.pem")).unwrap()
    }

    /// A store over a connection of its own, as each process of a fleet has one.
    pub fn store(&self) -> RedisStore {
        RedisStore::open(&self.url(), "lane").unwrap()
    }

    /// A plain connection, to look at what is kept.
    pub fn look(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// As a node that dies.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// As a node that hangs: connections stay, and nothing is answered.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Starts it again where it was, with nothing of what it held.
    pub async fn restart(&self) {
        *self.child.lock().unwrap() = spawn(&self.dir.0, self.addr, self.secure);
        assert!(self.listens().await, "redis-server does not start again");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.child.lock().unwrap().id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success(), "kill {signal}: {sent}");
    }

    fn is_dead(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_some()
    }

    async fn listens(&self) -> bool {
        for _ in 0..POLLS {
            if self.is_dead() {
                return false;
            }
            if TcpStream::connect(self.addr).is_ok() {
                return !self.is_dead();
            }
            pause(Duration::from_millis(5)).await;
        }
        panic!("redis-server runs and does not listen");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already; then both are errors that say so.
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Waits in real time: a server has no other.
#[allow(clippy::disallowed_methods, reason = "redis-server lives in real time")]
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

fn spawn(dir: &Path, addr: SocketAddr, secure: bool) -> Child {
    let port = addr.port().to_string();
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"]);
    command.arg(dir);
    if secure {
        let file = |name: &str| dir.join(name);
        command.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no", "--tls-cert-file"]);
        command.arg(file("cert.pem")).arg("--tls-key-file").arg(file("key.pem"));
        command.arg("--tls-ca-cert-file").arg(file("cert.pem"));
    } else {
        command.args(["--port", &port]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is not installed, or not in PATH")
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("eastwest-redis-{}-{number}", process::id()));
        fs::create_dir(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PORT_TRIES: usize = 5;
const POLLS: usize = 2_000;
