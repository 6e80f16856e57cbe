//! A peer on the loopback that misbehaves on script, for the tests of this layer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a peer does with a request it has read.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// Writes this, and waits for the next request.
    Write(&'static str),
    /// Writes this, and closes.
    WriteAndFin(&'static str),
    /// Writes this, and resets.
    WriteAndRst(&'static str),
    /// Writes this, and nothing more.
    WriteAndHang(&'static str),
}

/// Closes without an answer.
pub(crate) const FIN: Act = Act::WriteAndFin("");
/// Resets without an answer.
pub(crate) const RST: Act = Act::WriteAndRst("");
/// Never answers.
pub(crate) const HANG: Act = Act::WriteAndHang("");

/// A peer on the loopback that plays its acts, a request each, the last one for ever.
pub(crate) struct Peer {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<String>,
}

impl Peer {
    /// Begins to listen.
    pub(crate) async fn playing(acts: &[Act]) -> Peer {
        let acts: Arc<[Act]> = acts.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Peer { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let seen = Arc::clone(&peer.seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.lock().unwrap().connections += 1;
                tokio::spawn(play(stream, Arc::clone(&acts), Arc::clone(&seen)));
            }
        });
        peer
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// The requests as they came over the wire.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

async fn play(mut stream: TcpStream, acts: Arc<[Act]>, seen: Arc<Mutex<Seen>>) {
    while let Some(request) = read_request(&mut stream).await {
        let act = {
            let mut seen = seen.lock().unwrap();
            seen.requests.push(request);
            acts[(seen.requests.len() - 1).min(acts.len() - 1)]
        };
        let (Act::Write(text) | Act::WriteAndFin(text) | Act::WriteAndRst(text) | Act::WriteAndHang(text)) =
            act;
        stream.write_all(text.as_bytes()).await.unwrap();
        match act {
            Act::Write(_) => {}
            Act::WriteAndFin(_) => return,
            Act::WriteAndRst(_) => {
                // Lest the reset overtakes what was written.
                tokio::task::yield_now().await;
                stream.set_zero_linger().unwrap();
                return;
            }
            Act::WriteAndHang(_) => std::future::pending().await,
        }
    }
}

/// One request with its body, as it came over the wire.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(bytes.clone()).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    bytes.extend(body);
    Some(String::from_utf8(bytes).unwrap())
}

/// Runs an ignored test of this crate in a process of its own, with an environment of its own, and says whether it
/// passed: variables of this process cannot be set while other tests read them.
pub(crate) async fn in_own_process(test: &str, environment: &[(&str, &str)]) -> bool {
    let (_, test) = test.split_once("::").unwrap();
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored"]).env_clear().envs(environment.iter().copied());
    // Where coverage is measured, that of the process is told there too, and not left beside the sources.
    command.envs(std::env::var_os(PROFILE).map(|file| (PROFILE, file)));
    let output = command.output().await.unwrap();
    // A name that is no test's would pass.
    output.status.success() && String::from_utf8(output.stdout).unwrap().contains("1 passed")
}

const PROFILE: &str = "LLVM_PROFILE_FILE";
