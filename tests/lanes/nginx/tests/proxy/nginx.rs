//! One nginx of the test's own: its configuration, its process, its log.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs, process};

/// What of the configuration a test decides.
pub struct Site {
    /// Directives of the `http` block.
    pub http: &'static str,
    /// Directives of the `server` block, further locations among them.
    pub server: &'static str,
    /// How a request goes to the upstream group `callee`; all that the one `location /` holds.
    pub forwarding: &'static str,
}

/// The path and query as they came, and the host that was signed.
pub const FAITHFUL: &str = "proxy_pass http://callee$request_uri;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Connection \"\";";

impl Default for Site {
    fn default() -> Self {
        Site {
            http: "",
            server: "",
            forwarding: FAITHFUL,
        }
    }
}

/// A running nginx; dropping it kills the process and removes its files.
pub struct Nginx {
    child: Child,
    dir: Scratch,
    addr: SocketAddr,
}

impl Nginx {
    /// Starts one process, neither daemon nor master, and waits until it listens.
    pub async fn start(site: &Site, upstream: SocketAddr) -> Nginx {
        for _ in 0..PORT_TRIES {
            let dir = Scratch::new();
            let addr = free_port();
            fs::write(dir.file("nginx.conf"), configuration(site, &dir, addr, upstream)).unwrap();
            let mut nginx = Nginx {
                child: spawn(&dir),
                dir,
                addr,
            };
            if nginx.listens().await {
                return nginx;
            }
            let told = fs::read_to_string(nginx.dir.file("stderr")).unwrap_or_default();
            // Another process may have taken the port since it was found free.
            assert!(
                told.contains("Address already in use"),
                "nginx does not start: {told}"
            );
        }
        panic!("nginx found no free port in {PORT_TRIES} tries");
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits until so many requests are in the log: one whose body nginx refused is logged when its connection ends.
    pub async fn has_served(&self, requests: usize) {
        for _ in 0..POLLS {
            if self.log().lines().count() >= requests {
                return;
            }
            pause(POLL).await;
        }
        panic!("of {requests} requests nginx logged: {}", self.log());
    }

    /// Ends nginx, and answers a line for every request that it served.
    pub async fn served(mut self) -> Vec<Served> {
        let told = command(&self.dir).args(["-s", "quit"]).status().unwrap();
        assert!(told.success(), "nginx -s quit: {told}");
        for _ in 0..POLLS {
            if self.child.try_wait().unwrap().is_some() {
                return self.log().lines().map(Served::read).collect();
            }
            pause(POLL).await;
        }
        panic!("nginx did not quit");
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.file("access.log")).unwrap()
    }

    async fn listens(&mut self) -> bool {
        for _ in 0..POLLS {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(self.addr).is_ok() {
                return self.child.try_wait().unwrap().is_none();
            }
            pause(POLL).await;
        }
        panic!("nginx runs and does not listen");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have quit already; then both are errors that say so.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request as nginx logged it.
#[derive(Debug)]
pub struct Served {
    pub status: u16,
    /// The upstream's status; `-` if it was not asked, and a list if it was asked more than once.
    pub upstream: String,
    /// The number of the connection that it came on.
    pub connection: u64,
    pub uri: String,
}

impl Served {
    fn read(line: &str) -> Served {
        let mut fields = line.splitn(4, '|');
        let mut field = || fields.next().unwrap();
        Served {
            status: field().parse().unwrap(),
            upstream: field().to_owned(),
            connection: field().parse().unwrap(),
            uri: field().to_owned(),
        }
    }
}

/// The statuses of a log, in order.
pub fn statuses(served: &[Served]) -> Vec<u16> {
    served.iter().map(|line| line.status).collect()
}

/// Waits in real time: nginx has no other.
#[allow(clippy::disallowed_methods, reason = "nginx lives in real time")]
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// An address of the loopback where nobody listens just now.
pub fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("eastwest-nginx-{}-{number}", process::id()));
        fs::create_dir(&dir).unwrap();
        Scratch(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn spawn(dir: &Scratch) -> Child {
    let stderr = fs::File::create(dir.file("stderr")).unwrap();
    command(dir)
        .stderr(stderr)
        .spawn()
        .expect("nginx is not installed, or not in PATH")
}

fn command(dir: &Scratch) -> Command {
    let mut command = Command::new("nginx");
    command
        .arg("-p")
        .arg(dir.path())
        .arg("-c")
        .arg(dir.file("nginx.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn configuration(site: &Site, dir: &Scratch, addr: SocketAddr, upstream: SocketAddr) -> String {
    let dir = dir.path().display();
    let Site {
        http,
        server,
        forwarding,
    } = site;
    // One process: whoever kills it leaves no worker behind, and it needs no user to change to.
    format!(
        "daemon off;
master_process off;
pid \"{dir}/pid\";
error_log \"{dir}/error.log\" info;
events {{ worker_connections 512; }}
http {{
  log_format lane '$status|$upstream_status|$connection|$request_uri';
  access_log \"{dir}/access.log\" lane;
  client_body_temp_path \"{dir}/client_body\";
  proxy_temp_path \"{dir}/proxy\";
  fastcgi_temp_path \"{dir}/fastcgi\";
  uwsgi_temp_path \"{dir}/uwsgi\";
  scgi_temp_path \"{dir}/scgi\";
  {http}
  upstream callee {{ server {upstream}; }}
  server {{
    listen {addr};
    {server}
    location / {{
    {forwarding}
    }}
  }}
}}
"
    )
}

const PORT_TRIES: usize = 5;
const POLLS: usize = 2_000;
const POLL: Duration = Duration::from_millis(5);
