//! One connection of a client, carried to the gateway exchange by exchange, each on its course.

use crate::fault::{Course, Pace, Silence, Then};
use crate::message::{Buffer, Message};
use crate::proxy::{Passage, Shared};
use crate::time::sleep;
use fastrand::Rng;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Carries a connection until either side, or a course, ends it.
pub async fn carry(shared: &Shared, client: TcpStream, mut rng: Rng) {
    carry_by(shared, client, || shared.draw(&mut rng).course(&mut rng)).await;
}

/// The same with one course for all.
#[cfg(test)]
pub async fn carry_on(shared: &Shared, client: TcpStream, course: Course) {
    carry_by(shared, client, || course).await;
}

async fn carry_by(shared: &Shared, mut client: TcpStream, mut next: impl FnMut() -> Course) {
    let mut buffer = Buffer::default();
    let mut upstream = None;
    while let Ok(Some(head)) = buffer.head(&mut client).await {
        let passage = passage(&head);
        shared.witness.arrived(&passage);
        let course = next();
        let line = Line { shared, passage, course };
        let exchange = line.exchange(head, (&mut client, &mut buffer), &mut upstream);
        // Nothing is held for longer than calls are judged after; a course that takes longer is cut.
        let end = tokio::time::timeout(LONGEST, exchange).await;
        match end {
            Ok(Ok(Then::Keep)) => {}
            Ok(Ok(Then::Reset)) => {
                reset(&client);
                return;
            }
            Ok(Ok(Then::Close) | Err(_)) | Err(_) => {
                let _ = client.shutdown().await;
                // Closing on unread bytes would reset the connection and could take the answer with it.
                let _ = tokio::time::timeout(LONGEST, until_it_goes(&mut client)).await;
                return;
            }
        }
    }
}

/// One exchange on its way.
struct Line<'a> {
    shared: &'a Shared,
    passage: Passage,
    course: Course,
}

impl Line<'_> {
    async fn exchange(
        &self,
        mut request: Message,
        (client, buffer): (&mut TcpStream, &mut Buffer),
        upstream: &mut Option<TcpStream>,
    ) -> io::Result<Then> {
        if self.course.reset_before {
            return Ok(Then::Reset);
        }
        buffer.body(client, &mut request).await;
        if !request.whole {
            return Ok(Then::Close);
        }
        wait(self.course.wait_before).await;
        let mut gateway = match upstream.take() {
            Some(kept) => kept,
            None => connect(self.shared).await?,
        };
        if self.course.reset_within {
            gateway.write_all(&request.bytes[..request.bytes.len() / 2]).await?;
            reset(&gateway);
            return Ok(Then::Reset);
        }
        write(&mut gateway, &request.bytes, self.course.request_pace).await?;
        if self.course.half_close_upstream {
            gateway.shutdown().await?;
        }
        let mut answers = Buffer::default();
        let Some(mut answer) = answers.head(&mut gateway).await? else { return Ok(Then::Close) };
        answers.body(&mut gateway, &mut answer).await;
        wait(self.course.wait_after).await;
        match self.course.instead_of_answer {
            Some(Silence::Close) => return Ok(Then::Close),
            Some(Silence::Reset) => return Ok(Then::Reset),
            Some(Silence::Stall) => {
                until_it_goes(client).await;
                return Ok(Then::Close);
            }
            None => {}
        }
        let then = self.answer(&answer, client).await?;
        if !answer.closes() && !self.course.half_close_upstream {
            *upstream = Some(gateway);
        }
        Ok(then)
    }

    async fn answer(&self, answer: &Message, client: &mut TcpStream) -> io::Result<Then> {
        if let Some(status) = answer.status() {
            self.shared.witness.answering(&self.passage, status);
        }
        if let Some((thousandths, by_reset)) = self.course.cut {
            let body = answer.bytes.len() - answer.head_length;
            let some = answer.head_length + body * thousandths / 1_000;
            client.write_all(&answer.bytes[..some]).await?;
            return Ok(if by_reset { Then::Reset } else { Then::Close });
        }
        write(client, &answer.bytes, self.course.answer_pace).await?;
        if answer.whole && self.course.then != Then::Reset {
            self.shared.witness.delivered(&self.passage);
        }
        Ok(if answer.closes() { Then::Close } else { self.course.then })
    }
}

fn passage(head: &Message) -> Passage {
    let number = |name| head.header(name).and_then(|value| value.parse().ok()).unwrap_or_default();
    Passage {
        reference: number(REFERENCE),
        attempt: u32::try_from(number("x-attempt-count")).unwrap_or_default(),
    }
}

async fn connect(shared: &Shared) -> io::Result<TcpStream> {
    let gateway = TcpStream::connect(shared.upstream()).await?;
    gateway.set_nodelay(true)?;
    Ok(gateway)
}

async fn write(stream: &mut TcpStream, bytes: &[u8], pace: Option<Pace>) -> io::Result<()> {
    let Some(pace) = pace else { return stream.write_all(bytes).await };
    for piece in bytes.chunks(pace.bytes.max(1)) {
        stream.write_all(piece).await?;
        sleep(pace.every).await;
    }
    Ok(())
}

/// With a linger of zero the drop that follows sends RST instead of FIN.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

async fn until_it_goes(stream: &mut (impl AsyncRead + Unpin)) {
    let mut dropped = [0; 4_096];
    while stream.read(&mut dropped).await.is_ok_and(|read| read > 0) {}
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

/// The header by which a call is known from one end to the other.
pub const REFERENCE: &str = "x-reference";
/// No exchange is held for longer.
pub const LONGEST: Duration = Duration::from_secs(3);
