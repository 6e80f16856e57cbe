//! A callee that keeps idempotency keys: it stores replies, tells that a key is in progress, and counts what it commits.

use crate::testing::answers::reply::Reply;
use crate::testing::gateway::record::RecordedAttempt;
use crate::testing::lock::lock;
use bytes::Bytes;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A callee that does its work once a key, however often the key comes. Clones are the same callee.
///
/// Its replies go into scripts as others do. [`answers`](IdempotentCallee::answers) is the callee when all is well;
/// [`commits_then`](IdempotentCallee::commits_then) has it do its work and loses the answer, as a 504 does;
/// [`is_at_work_then`](IdempotentCallee::is_at_work_then) has it still at work when the next attempts come. The same key with
/// another body is refused (422), and a request without a key is carried out each time that it comes.
///
/// ```
/// use eastwest::testing::{FakeGateway, IdempotentCallee, ManualClock, Reply};
/// use eastwest::CallContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), eastwest::Error> {
/// let callee = IdempotentCallee::new(|_, commit| Reply::json(201, format!(r#"{{"id":"o-{commit}"}}"#)));
/// let gateway = FakeGateway::builder()
///     .manual_clock(&ManualClock::new())
///     .route("POST", "/orders", [callee.commits_then(Reply::integration_timeout()), callee.answers()])
///     .without_socket();
///
/// let answer = gateway.client().build()?.post(&CallContext::root(), "/orders").send().await?;
///
/// assert_eq!(answer.body(), r#"{"id":"o-1"}"#);
/// gateway.assert_attempts(2).assert_same_key();
/// callee.assert_commits(1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct IdempotentCallee(Arc<Callee>);

struct Callee {
    header: String,
    work: Box<Work>,
    book: Mutex<Book>,
}

type Work = dyn Fn(&RecordedAttempt, usize) -> Reply + Send + Sync;

#[derive(Default)]
struct Book {
    by_key: HashMap<String, Entry>,
    commits: usize,
    replays: usize,
}

struct Entry {
    body: Bytes,
    /// None while the work is being done.
    reply: Option<Reply>,
    /// So many requests more find the key in progress.
    in_progress: usize,
}

/// What a request came to.
enum Taken {
    /// The reply of the work, new or stored.
    Done(Reply),
    /// A refusal of the key.
    Refused(Reply),
}

impl IdempotentCallee {
    /// Makes a callee that does this work for each new key: it is given the request and the number of the commit, from 1.
    pub fn new(work: impl Fn(&RecordedAttempt, usize) -> Reply + Send + Sync + 'static) -> IdempotentCallee {
        IdempotentCallee::keyed_by("x-idempotency-key", work)
    }

    /// As [`IdempotentCallee::new`], with keys in this header.
    pub fn keyed_by(
        header: impl Into<String>,
        work: impl Fn(&RecordedAttempt, usize) -> Reply + Send + Sync + 'static,
    ) -> IdempotentCallee {
        let (header, work) = (header.into(), Box::new(work));
        IdempotentCallee(Arc::new(Callee { header, work, book: Mutex::default() }))
    }

    /// Does the work, or gives the stored reply, or tells that the key is in progress ([`Reply::in_progress`]).
    pub fn answers(&self) -> Reply {
        let callee = self.clone();
        Reply::dynamic(move |attempt| match callee.take(attempt, 0) {
            Taken::Done(reply) | Taken::Refused(reply) => reply,
        })
    }

    /// Does the work and stores its reply, and the client gets this one, [`Reply::integration_timeout`] or
    /// [`Reply::reset`] for instance.
    pub fn commits_then(&self, reply: Reply) -> Reply {
        self.is_at_work_then(reply, 0)
    }

    /// As [`commits_then`](IdempotentCallee::commits_then), and the next so many requests with this key find it in progress.
    pub fn is_at_work_then(&self, reply: Reply, requests: usize) -> Reply {
        let callee = self.clone();
        Reply::dynamic(move |attempt| match callee.take(attempt, requests) {
            Taken::Done(_) => reply.clone(),
            Taken::Refused(refused) => refused,
        })
    }

    /// Forgets all keys, as a store does after its window (an hour with AWS Lambda Powertools).
    pub fn forget_keys(&self) {
        lock(&self.0.book).by_key.clear();
    }

    /// How often it did its work.
    #[must_use]
    pub fn commits(&self) -> usize {
        lock(&self.0.book).commits
    }

    /// How often it gave a stored reply.
    #[must_use]
    pub fn replays(&self) -> usize {
        lock(&self.0.book).replays
    }

    /// Asserts how often it did its work.
    ///
    /// # Panics
    /// If it was more or less often.
    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion of a test panics")]
    pub fn assert_commits(&self, count: usize) {
        let (commits, replays) = (self.commits(), self.replays());
        if commits != count {
            panic!(
                "{count} commits were expected, the callee made {commits} (and gave {replays} stored replies)"
            );
        }
    }

    fn take(&self, attempt: &RecordedAttempt, in_progress: usize) -> Taken {
        let Some(key) = attempt.header(&self.0.header).map(str::to_owned) else {
            return Taken::Done(self.commit(attempt));
        };
        if let Some(known) = lock(&self.0.book).look_up(&key, attempt.body()) {
            return known;
        }
        let reply = self.commit(attempt);
        if let Some(entry) = lock(&self.0.book).by_key.get_mut(&key) {
            (entry.reply, entry.in_progress) = (Some(reply.clone()), in_progress);
        }
        Taken::Done(reply)
    }

    /// Does the work. The test's own code runs here, so no lock is held.
    fn commit(&self, attempt: &RecordedAttempt) -> Reply {
        let number = {
            let mut book = lock(&self.0.book);
            book.commits += 1;
            book.commits
        };
        (self.0.work)(attempt, number).resolve(attempt)
    }
}

impl Book {
    /// What a known key gets; `None` for a new one, which is in the book from now on.
    fn look_up(&mut self, key: &str, body: &Bytes) -> Option<Taken> {
        let Some(entry) = self.by_key.get_mut(key) else {
            let entry = Entry { body: body.clone(), reply: None, in_progress: 0 };
            self.by_key.insert(key.to_owned(), entry);
            return None;
        };
        if entry.body != *body {
            return Some(Taken::Refused(Reply::json(422, r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#)));
        }
        match entry.reply.clone().filter(|_| entry.in_progress == 0) {
            Some(stored) => {
                self.replays += 1;
                Some(Taken::Done(stored))
            }
            None => {
                entry.in_progress = entry.in_progress.saturating_sub(1);
                Some(Taken::Refused(Reply::in_progress()))
            }
        }
    }
}

/// Shows no key and no reply.
impl fmt::Debug for IdempotentCallee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentCallee")
            .field("commits", &self.commits())
            .field("replays", &self.replays())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gateway::raw_client::{ask, open};
    use crate::testing::wire::http::RawRequest;

    fn order(key: Option<&str>, body: &'static str) -> RawRequest {
        let order = RawRequest::new("POST", "/prod/orders").with_header("host", "h").with_body(body);
        key.into_iter().fold(order, |order, key| order.with_header("x-idempotency-key", key))
    }

    fn counting() -> IdempotentCallee {
        IdempotentCallee::new(|_, commit| Reply::json(201, commit.to_string()))
    }

    #[tokio::test]
    async fn the_work_is_done_once_a_key_and_its_reply_given_again() {
        let callee = counting();
        let gateway = open([callee.answers()]).await;
        let mut bodies = Vec::new();
        for (key, body) in [("a", "1"), ("a", "1"), ("b", "1"), ("a", "1")] {
            bodies.push(ask(&gateway, &order(Some(key), body)).await.body);
        }
        assert_eq!(bodies, ["1", "1", "2", "1"]);
        assert_eq!((callee.commits(), callee.replays()), (2, 2));
        callee.forget_keys();
        assert_eq!(ask(&gateway, &order(Some("a"), "1")).await.body, "3");
    }

    #[tokio::test]
    async fn a_key_with_another_body_is_refused_and_without_a_key_the_work_is_done_each_time() {
        let callee = counting();
        let gateway = open([callee.answers()]).await;
        assert_eq!(ask(&gateway, &order(Some("a"), "1")).await.status, 201);
        assert_eq!(ask(&gateway, &order(Some("a"), "2")).await.status, 422);
        for _ in 0..2 {
            assert_eq!(ask(&gateway, &order(None, "1")).await.status, 201);
        }
        callee.assert_commits(3);
    }

    #[tokio::test]
    async fn keys_may_go_by_another_name() {
        let callee =
            IdempotentCallee::keyed_by("Idempotency-Key", |_, commit| Reply::json(201, commit.to_string()));
        let gateway = open([callee.answers()]).await;
        for _ in 0..2 {
            let order = order(Some("ignored"), "1").with_header("idempotency-key", "a");
            assert_eq!(ask(&gateway, &order).await.body, "1");
        }
        gateway.story().assert_same_header("idempotency-key");
    }

    #[tokio::test]
    async fn it_commits_behind_a_504_and_tells_for_so_long_that_the_key_is_in_progress() {
        let callee = counting();
        let script = [callee.is_at_work_then(Reply::integration_timeout(), 2), callee.answers()];
        let gateway = open(script).await;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let answer = ask(&gateway, &order(Some("a"), "1")).await;
            seen.push((answer.status, answer.body.contains("outstanding")));
        }
        assert_eq!(seen, [(504, false), (409, true), (409, true), (201, false)]);
        callee.assert_commits(1);
    }

    #[test]
    #[should_panic(expected = "2 commits were expected, the callee made 0 (and gave 0 stored replies)")]
    fn an_assertion_that_does_not_hold_says_what_was_seen() {
        counting().assert_commits(2);
    }
}
