//! Where letters are put, and how a client puts them there.

use crate::dead_letter::letter::DeadLetter;
use crate::edge::ambient::{Ambient, system};
use crate::observe;
use std::cell::Cell;
use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// What a [`DeadLetterSink`] promises: the letter is safe when it is ready.
pub type StoreFuture<'a> =
    Pin<Box<dyn Future<Output = Result<(), Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Where the letters of failed calls are put.
///
/// A client that has one ([`ClientBuilder::dead_letter_sink`](crate::ClientBuilder::dead_letter_sink)) stores a letter the
/// moment a call is given up: when its attempts are exhausted, on a permanent failure, and at once where the breaker or the
/// hop limit let nothing be sent. What should not be kept, a failed GET for instance, the sink leaves out. A call whose
/// future was dropped has no letter: nobody knows how it ended.
///
/// It has 1 s for a letter, besides the call's own time, and runs on a thread for work that blocks. One that fails, panics or
/// takes longer is reported by a warning, and the call ends with its own error all the same.
///
/// A failed replay comes here too, under the id of its letter: it takes the place of that one.
///
/// ```
/// use eastwest::dead_letter::{DeadLetter, DeadLetterSink, StoreFuture};
///
/// struct Queue(tokio::sync::mpsc::Sender<String>);
///
/// impl DeadLetterSink for Queue {
///     fn store(&self, letter: DeadLetter) -> StoreFuture<'_> {
///         Box::pin(async move {
///             if letter.method != "GET" {
///                 self.0.send(serde_json::to_string(&letter)?).await?;
///             }
///             Ok(())
///         })
///     }
/// }
/// ```
pub trait DeadLetterSink: Send + Sync {
    /// Stores a letter. Ready when it is safe.
    fn store(&self, letter: DeadLetter) -> StoreFuture<'_>;
}

impl<S: DeadLetterSink + ?Sized> DeadLetterSink for Arc<S> {
    fn store(&self, letter: DeadLetter) -> StoreFuture<'_> {
        (**self).store(letter)
    }
}

/// How long a sink may take for a letter.
pub(crate) const SINK_LIMIT: Duration = Duration::from_secs(1);

/// Hands a letter to a sink, and waits for it no longer than `limit`.
///
/// A task of its own: a call that is dropped meanwhile does not take the letter with it, and a sink that blocks its thread
/// or panics harms nobody else.
pub(crate) async fn deliver(sink: &Arc<dyn DeadLetterSink>, letter: DeadLetter, limit: Duration) {
    let (id, correlation_id) = (letter.id.clone(), letter.correlation_id.clone());
    let Ok(runtime) = Handle::try_current() else {
        return observe::letter_not_stored(&id, &correlation_id, "there is no runtime to store it on");
    };
    let (sink, on_that_thread) = (Arc::clone(sink), runtime.clone());
    // The end of its time is told by a task: a runtime that shuts down drops it, and no timer is asked for on that thread.
    let (alarm, over) = oneshot::channel::<()>();
    drop(runtime.spawn(async move {
        system().sleep(SINK_LIMIT).await;
        drop(alarm);
    }));
    let stored = runtime.spawn_blocking(move || {
        ON_A_THREAD_OF_ITS_OWN.set(true);
        let stored = on_that_thread.block_on(in_time(sink.store(letter), over));
        ON_A_THREAD_OF_ITS_OWN.set(false);
        stored
    });
    match tokio::time::timeout(limit, stored).await {
        Ok(Ok(Some(Ok(())))) => {}
        Ok(Ok(Some(Err(error)))) => observe::letter_not_stored(&id, &correlation_id, &error.to_string()),
        Ok(Err(_)) => observe::letter_not_stored(&id, &correlation_id, "the sink panicked"),
        Ok(Ok(None)) | Err(_) => {
            observe::letter_not_stored(&id, &correlation_id, "the sink took longer than its limit");
        }
    }
}

/// What a sink says before the alarm is dropped.
async fn in_time(mut store: StoreFuture<'_>, mut over: oneshot::Receiver<()>) -> Option<Stored> {
    poll_fn(|cx| {
        if let Poll::Ready(stored) = store.as_mut().poll(cx) {
            return Poll::Ready(Some(stored));
        }
        Pin::new(&mut over).poll(cx).map(|_| None)
    })
    .await
}

thread_local! {
    static ON_A_THREAD_OF_ITS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is one that a letter is stored on: it may block, and must not wait for another of its kind.
pub(super) fn on_a_thread_of_its_own() -> bool {
    ON_A_THREAD_OF_ITS_OWN.get()
}

type Stored = Result<(), Box<dyn StdError + Send + Sync>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::letter::tests::letter;
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    type Store = Box<dyn Fn(DeadLetter) -> StoreFuture<'static> + Send + Sync>;

    struct Scripted(Store);

    impl DeadLetterSink for Scripted {
        fn store(&self, letter: DeadLetter) -> StoreFuture<'_> {
            (self.0)(letter)
        }
    }

    fn sink(
        store: impl Fn(DeadLetter) -> StoreFuture<'static> + Send + Sync + 'static,
    ) -> Arc<dyn DeadLetterSink> {
        Arc::new(Scripted(Box::new(store)))
    }

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_sink_that_never_ends_is_not_waited_for_beyond_its_limit() {
        let sink = sink(|_| Box::pin(std::future::pending()));
        deliver(&sink, letter("l-1"), SHORT).await;
    }

    #[tokio::test]
    async fn a_sink_that_blocks_its_thread_is_not_waited_for_either() {
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Mutex::new(blocked);
        let sink = sink(move |_| {
            let _ = blocked.lock().unwrap().recv();
            Box::pin(async { Ok(()) })
        });
        deliver(&sink, letter("l-1"), SHORT).await;
        drop(release);
    }

    #[tokio::test]
    async fn a_sink_that_panics_harms_nobody() {
        let sink = sink(|_| panic!("no disk"));
        deliver(&sink, letter("l-1"), SHORT * 50).await;
    }

    #[tokio::test]
    async fn a_sink_runs_on_none_of_the_runtimes_own_threads() {
        let ran_on = Arc::new(Mutex::new(None::<ThreadId>));
        let seen = Arc::clone(&ran_on);
        let sink = sink(move |_| {
            *seen.lock().unwrap() = Some(thread::current().id());
            Box::pin(async {
                tokio::task::yield_now().await;
                Ok(())
            })
        });
        deliver(&sink, letter("l-1"), SINK_LIMIT).await;
        assert_ne!(ran_on.lock().unwrap().unwrap(), thread::current().id());
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_meanwhile_does_not_take_the_letter_with_it() {
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let sink = sink(move |letter| {
            let tell = tell.lock().unwrap().take().unwrap();
            Box::pin(async move {
                tokio::task::yield_now().await;
                tell.send(letter.id).map_err(|id| id.into())
            })
        });
        let mut delivery = Box::pin(deliver(&sink, letter("l-1"), SINK_LIMIT));
        assert!(
            Future::poll(delivery.as_mut(), &mut std::task::Context::from_waker(std::task::Waker::noop()))
                .is_pending()
        );
        drop(delivery);
        assert_eq!(told.await.unwrap(), "l-1");
    }
}
