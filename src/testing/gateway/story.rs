//! What a gateway saw, told as a story, and what a test asserts of it.

use crate::testing::gateway::fake::FakeGateway;
use crate::testing::gateway::record::RecordedAttempt;
use std::fmt;

/// What a gateway saw, in the order of arrival, to assert on. Its `Display` is the story, an attempt a line; an assertion
/// that does not hold panics with it.
///
/// ```
/// # use eastwest::testing::{FakeGateway, Reply};
/// # use eastwest::CallContext;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), eastwest::Error> {
/// # let gateway = FakeGateway::builder()
/// #     .manual_clock(&eastwest::testing::ManualClock::new())
/// #     .route("POST", "/orders", [Reply::throttled(), Reply::ok()])
/// #     .route("GET", "/prices", [Reply::ok()])
/// #     .without_socket();
/// # let client = gateway.client().build()?;
/// # client.get(&CallContext::root(), "/prices").send().await?;
/// # client.post(&CallContext::root(), "/orders").send().await?;
/// gateway.assert_attempts(3).assert_all_signed();
/// gateway.story().on("/orders").assert_statuses([429, 200]).assert_same_key().assert_resigned();
/// println!("{}", gateway.story());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Story {
    attempts: Vec<RecordedAttempt>,
    /// Path prefix that callers leave out.
    stage: String,
}

impl FakeGateway {
    /// All exchanges so far, to assert on.
    #[must_use]
    pub fn story(&self) -> Story {
        let stage = &self.shared.stage;
        let stage = if stage.is_empty() { String::new() } else { format!("/{stage}") };
        Story { attempts: self.attempts(), stage }
    }

    /// Asserts that there were so many exchanges in all; gives the story, to assert more.
    ///
    /// # Panics
    /// If there were more or fewer.
    #[track_caller]
    pub fn assert_attempts(&self, count: usize) -> Story {
        self.story().assert_attempts(count)
    }

    /// Asserts [`Story::assert_statuses`] of all exchanges.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn assert_statuses(&self, statuses: impl IntoIterator<Item = u16>) -> Story {
        self.story().assert_statuses(statuses)
    }

    /// Asserts [`Story::assert_same_key`] of all exchanges.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn assert_same_key(&self) -> Story {
        self.story().assert_same_key()
    }

    /// Asserts [`Story::assert_resigned`] of all exchanges.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn assert_resigned(&self) -> Story {
        self.story().assert_resigned()
    }

    /// Asserts [`Story::assert_all_signed`] of all exchanges.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn assert_all_signed(&self) -> Story {
        self.story().assert_all_signed()
    }
}

impl Story {
    /// The attempts.
    #[must_use]
    pub fn attempts(&self) -> &[RecordedAttempt] {
        &self.attempts
    }

    /// The part of it that happened on this path, with the stage or below it.
    #[must_use]
    pub fn on(&self, path: &str) -> Story {
        let whole = format!("{}{path}", self.stage);
        self.of(|attempt| attempt.path() == whole || attempt.path() == path)
    }

    /// The part of it that a test chooses.
    #[must_use]
    pub fn of(&self, chosen: impl Fn(&RecordedAttempt) -> bool) -> Story {
        let attempts = self.attempts.iter().filter(|attempt| chosen(attempt)).cloned().collect();
        Story { attempts, stage: self.stage.clone() }
    }

    /// Asserts that there were so many attempts.
    ///
    /// # Panics
    /// If there were more or fewer.
    #[track_caller]
    pub fn assert_attempts(self, count: usize) -> Story {
        let seen = self.attempts.len();
        let expected = if count == 1 { "1 attempt was".to_owned() } else { format!("{count} attempts were") };
        let was = if seen == 1 { "was" } else { "were" };
        self.holds(seen == count, || format!("{expected} expected, {seen} {was} seen"))
    }

    /// Asserts what they were answered, in order; 0 stands for no answer.
    ///
    /// # Panics
    /// If they were answered otherwise.
    #[track_caller]
    pub fn assert_statuses(self, statuses: impl IntoIterator<Item = u16>) -> Story {
        let expected: Vec<u16> = statuses.into_iter().collect();
        let seen: Vec<u16> =
            self.attempts.iter().map(|attempt| attempt.status().unwrap_or_default()).collect();
        self.holds(seen == expected, || format!("answers {expected:?} were expected, {seen:?} were given"))
    }

    /// Asserts that all attempts carried one idempotency key, the same.
    ///
    /// # Panics
    /// If one had none, several or another, or if there was no attempt.
    #[track_caller]
    pub fn assert_same_key(self) -> Story {
        self.assert_same_header("x-idempotency-key")
    }

    /// Asserts that all attempts carried one correlation id, the same.
    ///
    /// # Panics
    /// As [`Story::assert_same_key`].
    #[track_caller]
    pub fn assert_same_correlation_id(self) -> Story {
        self.assert_same_header("x-correlation-id")
    }

    /// Asserts that all attempts carried this hop count.
    ///
    /// # Panics
    /// If one had none, several or another, or if there was no attempt.
    #[track_caller]
    pub fn assert_hop_count(self, hops: u8) -> Story {
        let expected = hops.to_string();
        let all = self.attempts.iter().all(|attempt| attempt.header_values("x-hop-count") == [&expected]);
        let all = all && !self.attempts.is_empty();
        self.holds(all, || format!("hop count {expected} was expected of every attempt"))
    }

    /// Asserts that every signature stands, also where the gateway does not insist on that.
    ///
    /// # Panics
    /// If one does not, with what the verifier found; or if there was no attempt.
    #[track_caller]
    pub fn assert_all_signed(self) -> Story {
        let bad = self.attempts.iter().find(|attempt| !attempt.signature_valid());
        let report = bad.map(|bad| format!("attempt {} is not signed well: {}", bad.order(), bad.explain()));
        let holds = report.is_none() && !self.attempts.is_empty();
        self.holds(holds, || report.unwrap_or_else(|| NONE.to_owned()))
    }

    /// Asserts that every attempt was signed anew: every signature stands, and none was sent twice.
    ///
    /// # Panics
    /// If one does not stand or was sent twice, or if there was no attempt.
    #[track_caller]
    pub fn assert_resigned(self) -> Story {
        let story = self.assert_all_signed();
        let mut seen: Vec<(&str, usize)> = Vec::new();
        let mut twice = None;
        for attempt in &story.attempts {
            let signature = attempt.header("authorization").unwrap_or_default();
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == signature) {
                twice = twice.or(Some((*first, attempt.order())));
            }
            seen.push((signature, attempt.order()));
        }
        let told = twice.map(|(first, again)| format!("attempts {first} and {again} carry one signature"));
        story.holds(told.is_none(), || told.unwrap_or_default())
    }

    /// Asserts that all attempts carried this header once, with the same value: an idempotency key by another name.
    ///
    /// # Panics
    /// As [`Story::assert_same_key`].
    #[track_caller]
    pub fn assert_same_header(self, header: &str) -> Story {
        let values: Vec<Vec<&str>> =
            self.attempts.iter().map(|attempt| attempt.header_values(header)).collect();
        let first = values.first().filter(|first| first.len() == 1);
        let holds = first.is_some_and(|first| values.iter().all(|other| other == first));
        let told = format!("one {header} was expected, the same on every attempt; there were {values:?}");
        self.holds(holds, || told)
    }

    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion of a test panics")]
    fn holds(self, holds: bool, told: impl FnOnce() -> String) -> Story {
        if !holds {
            panic!("{}\n\n{self}", told());
        }
        self
    }
}

/// An attempt a line. It shows idempotency keys and access key ids, and no secret.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.attempts.first() else {
            return writeln!(f, "What the gateway saw: nothing.");
        };
        writeln!(f, "What the gateway saw:")?;
        for attempt in &self.attempts {
            let since = attempt.received_at().duration_since(first.received_at()).unwrap_or_default();
            let header = |name: &str| attempt.header(name).unwrap_or("none");
            writeln!(
                f,
                "{:>3}. +{:<10} {} {} -> {}",
                attempt.order(),
                format!("{since:?}"),
                attempt.method(),
                attempt.path(),
                attempt.told(),
            )?;
            writeln!(
                f,
                "     attempt {}, hop {}, key {}, correlation id {}; {}{}",
                header("x-attempt-count"),
                header("x-hop-count"),
                header("x-idempotency-key"),
                header("x-correlation-id"),
                attempt.verdict(),
                attempt.verification().access_key_id().map(|id| format!(" ({id})")).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

const NONE: &str = "attempts were expected";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answers::reply::Reply;
    use crate::testing::gateway::raw_client::{Client, order, signed_order, strict};
    use crate::testing::signature::signed::{SECRET, Signer, TOKEN};
    use crate::testing::wire::http::RawRequest;

    async fn seen(requests: &[RawRequest], replies: impl IntoIterator<Item = Reply>) -> Story {
        let gateway = strict().route("POST", "/orders", replies).start().await.unwrap();
        for (before, request) in requests.iter().enumerate() {
            let mut client = Client::connect(&gateway).await;
            client.send(request).await;
            gateway.wait_for_attempts(before + 1).await;
        }
        gateway.story()
    }

    fn keyed(key: &str, attempt: &str) -> RawRequest {
        let order = order().with_header("x-idempotency-key", key).with_header("x-attempt-count", attempt);
        Signer::new().sign(order.with_header("x-hop-count", "2"))
    }

    fn message(assertion: impl FnOnce() -> Story) -> String {
        *std::panic::catch_unwind(std::panic::AssertUnwindSafe(assertion)).unwrap_err().downcast().unwrap()
    }

    #[tokio::test]
    async fn what_holds_is_passed_on() {
        let replies = [Reply::throttled(), Reply::ok()];
        let story = seen(&[keyed("k", "1"), keyed("k", "2")], replies).await;
        let story = story.assert_attempts(2).assert_same_key().assert_resigned().assert_all_signed();
        assert_eq!(story.assert_statuses([429, 200]).assert_hop_count(2).attempts().len(), 2);
    }

    #[tokio::test]
    async fn an_assertion_that_does_not_hold_shows_the_story_and_no_secret() {
        let replies = [Reply::throttled(), Reply::json(200, "x").truncate_after(0)];
        let story = seen(&[keyed("key-1", "1"), keyed("key-2", "2")], replies).await;
        let told = message({
            let story = story.clone();
            move || story.assert_attempts(3)
        });
        assert!(
            told.starts_with("3 attempts were expected, 2 were seen\n\nWhat the gateway saw:\n  1. +0ns"),
            "{told}"
        );
        for part in
            ["POST /prod/orders -> 429 TooManyRequestsException", "-> 200, closed after 0 bytes of the body"]
        {
            assert!(told.contains(part), "{told}");
        }
        assert!(told.contains(
            "attempt 2, hop 2, key key-2, correlation id none; the signature stands (AKIDEXAMPLE)"
        ));
        assert!(!told.contains(SECRET) && !told.contains(TOKEN), "{told}");
        let one = story.of(|attempt| attempt.order() == 1);
        assert!(message(move || one.assert_attempts(2)).starts_with("2 attempts were expected, 1 was seen"));
        let both = story.clone();
        assert!(message(move || both.assert_attempts(1)).starts_with("1 attempt was expected, 2 were seen"));
        assert!(message(move || story.assert_same_key()).contains(r#"[["key-1"], ["key-2"]]"#));
    }

    #[tokio::test]
    async fn each_assertion_is_missed_where_it_does_not_hold() {
        let good = keyed("k", "1");
        let sent_twice = seen(&[good.clone(), good], [Reply::ok()]).await;
        let told = message({
            let story = sent_twice.clone();
            move || story.assert_resigned()
        });
        assert!(told.starts_with("attempts 1 and 2 carry one signature"), "{told}");
        assert!(message(move || sent_twice.assert_hop_count(3)).starts_with("hop count 3"));
        let unsigned = seen(&[order()], [Reply::ok()]).await;
        let told = message(move || unsigned.assert_all_signed());
        assert!(told.starts_with("attempt 1 is not signed well: there is no authorization header"), "{told}");
        let nothing = seen(&[], []).await;
        assert!(message(move || nothing.assert_same_key()).contains("What the gateway saw: nothing."));
        let one = seen(&[signed_order()], [Reply::reset()]).await;
        assert!(message(move || one.assert_statuses([200])).contains("[0] were given"));
    }

    #[tokio::test]
    async fn a_missing_route_is_told_with_those_that_are_there() {
        let lost = RawRequest::new("GET", "/prod/order").with_header("host", "h");
        let told = seen(&[lost], [Reply::ok()]).await.to_string();
        let words = "-> 403 MissingAuthenticationTokenException: no such route; there are POST /orders";
        assert!(told.contains(words), "{told}");
    }

    #[tokio::test]
    async fn a_part_of_the_story_is_chosen_by_path_below_the_stage_or_as_the_test_likes() {
        let other = RawRequest::new("GET", "/prod/other?x=1").with_header("host", "h");
        let story = seen(&[signed_order(), other], [Reply::ok()]).await;
        assert_eq!(story.on("/orders").attempts().len(), 1);
        assert_eq!(story.on("/other").attempts().len(), 1);
        assert_eq!(story.of(|attempt| attempt.method() == "PUT").attempts().len(), 0);
    }
}
