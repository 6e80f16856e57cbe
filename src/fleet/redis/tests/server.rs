//! A server on the loopback that speaks as much of the protocol as a store needs, and answers scripts on script.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// What comes back when a script is to be run.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// Nothing, and the connection is closed.
    Close,
    Error(&'static str),
    Numbers(&'static [i64]),
}

/// Answers each run of a script with the next of its answers, the last one for ever.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    answers: Vec<Answer>,
    connections: usize,
    commands: Vec<Vec<String>>,
}

impl Server {
    pub(super) async fn playing(answers: &[Answer]) -> Server {
        Server::over(listener(), answers)
    }

    /// Serves who has come to this listener, and who will.
    pub(super) fn over(listener: TcpListener, answers: &[Answer]) -> Server {
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let answers = answers.iter().rev().copied().collect();
        let seen = Arc::new(Mutex::new(Seen { answers, ..Seen::default() }));
        let server = Server { address: listener.local_addr().unwrap(), seen: Arc::clone(&seen) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.lock().unwrap().connections += 1;
                tokio::spawn(serve(stream, Arc::clone(&seen)));
            }
        });
        server
    }

    /// How many connections were opened.
    pub(super) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// What was asked for, without what every connection begins with.
    pub(super) fn commands(&self) -> Vec<Vec<String>> {
        self.seen.lock().unwrap().commands.clone()
    }
}

pub(super) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

async fn serve(stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    let mut stream = BufStream::new(stream);
    while let Some(command) = command(&mut stream).await {
        let reply = match command[0].as_str() {
            "CLIENT" | "SELECT" => "+OK\r\n".to_owned(),
            "EVALSHA" => {
                let answer = {
                    let mut seen = seen.lock().unwrap();
                    seen.commands.push(command);
                    if seen.answers.len() > 1 { seen.answers.pop() } else { seen.answers.last().copied() }
                };
                match answer.unwrap() {
                    Answer::Close => return,
                    Answer::Error(text) => format!("-{text}\r\n"),
                    Answer::Numbers(numbers) => {
                        let each: String = numbers.iter().map(|number| format!(":{number}\r\n")).collect();
                        format!("*{}\r\n{each}", numbers.len())
                    }
                }
            }
            "SCRIPT" => {
                let mut seen = seen.lock().unwrap();
                // By its hash, which it was asked for in vain.
                let hash = seen.commands.last().unwrap()[1].clone();
                seen.commands.push(command);
                format!("${}\r\n{hash}\r\n", hash.len())
            }
            other => format!("-ERR unknown command {other}\r\n"),
        };
        stream.write_all(reply.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}

/// One command, an array of strings with their lengths before them; `None` where the connection ends.
async fn command(stream: &mut BufStream<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..length(stream, '*').await? {
        let mut word = vec![0; length(stream, '$').await?];
        stream.read_exact(&mut word).await.ok()?;
        stream.read_exact(&mut [0; 2]).await.ok()?;
        words.push(String::from_utf8(word).unwrap());
    }
    Some(words)
}

async fn length(stream: &mut BufStream<TcpStream>, mark: char) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix(mark)?.parse().ok()
}
