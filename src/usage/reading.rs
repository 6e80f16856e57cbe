//! One reading of the counters.

/// What a client, or all clients that share an [`AccountQuota`](crate::AccountQuota), drew so far: one reading of counters that only grow.
///
/// A sandbox sees only itself. So log what is new since the last reading as one line of JSON, `usage.since(&last)`, and let a
/// query sum it over the fleet: it is `serde` data, and the README has the query.
///
/// *Tokens* are answers that came, each of which the gateway took out of the account's bucket. An attempt whose answer was lost,
/// or whose call was dropped meanwhile, is *in doubt*. So once all calls have ended,
/// `tokens <= what the gateway counted <= tokens + in_doubt`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Calls that were begun, those refused here among them.
    pub calls: u64,
    /// Calls of which at least one attempt was made.
    pub attempted: u64,
    /// Attempts, as the errors and answers of calls list them; and those that were cut off when their call was dropped.
    pub attempts: u64,
    /// Attempts after a wait, for which the retry budget was asked. Not those after a recovery, such as a fresh signature.
    pub retries: u64,
    /// Tokens of the account's bucket that were surely drawn; the one of a warm-up too.
    pub tokens: u64,
    /// Attempts of which nobody knows whether they drew a token. Whether the work was done is another matter: a 504 drew its
    /// token surely, and leaves [`may_have_committed`](crate::Error::may_have_committed) true.
    pub in_doubt: u64,
    /// Answers that said *too fast*, or that a quota is used up.
    pub throttled: u64,
    /// Calls that the open circuit refused; nothing was sent.
    pub refused_by_circuit: u64,
    /// Calls that the limit of hops refused; nothing was sent.
    pub refused_by_hop_limit: u64,
    /// Calls that the rate limit, or the limit on calls in flight, refused; nothing was sent.
    pub refused_by_rate_limit: u64,
    /// Tokens a second over the last ten seconds.
    pub tokens_per_second: f64,
    /// The same as a share of the Region's bucket; 1.0 is all of it.
    pub share: f64,
}

impl Usage {
    /// Attempts a call that made any; 1.0 where there was none.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        // Exact below 2^53.
        if self.attempted == 0 { 1.0 } else { self.attempts as f64 / self.attempted as f64 }
    }

    /// What is new since an earlier reading. The two rates stay those of this reading.
    ///
    /// ```
    /// # fn log_line(client: &eastwest::ServiceClient, last: &mut eastwest::Usage) -> Result<String, serde_json::Error> {
    /// let now = client.usage();
    /// let line = serde_json::to_string(&serde_json::json!({ "usage": now.since(last) }));
    /// *last = now;
    /// line
    /// # }
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            calls: self.calls.saturating_sub(earlier.calls),
            attempted: self.attempted.saturating_sub(earlier.attempted),
            attempts: self.attempts.saturating_sub(earlier.attempts),
            retries: self.retries.saturating_sub(earlier.retries),
            tokens: self.tokens.saturating_sub(earlier.tokens),
            in_doubt: self.in_doubt.saturating_sub(earlier.in_doubt),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            refused_by_circuit: self.refused_by_circuit.saturating_sub(earlier.refused_by_circuit),
            refused_by_hop_limit: self.refused_by_hop_limit.saturating_sub(earlier.refused_by_hop_limit),
            refused_by_rate_limit: self.refused_by_rate_limit.saturating_sub(earlier.refused_by_rate_limit),
            ..*self
        }
    }
}
