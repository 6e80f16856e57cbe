//! What a client's owner knows better than the table: a rule per status, and a classifier.

use crate::policy::classify::{Class, Retried, classify, settled_by_type};
use crate::policy::gateway::GatewayError;
use crate::policy::outcome::{Answer, Outcome};
use http::{HeaderMap, StatusCode};
use std::fmt;
use std::sync::Arc;

/// What a refinement says of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The answer belongs in this row, whose key, backoff and breaker columns then hold.
    Class(Class),
    /// The table decides.
    Defer,
    /// The row is right, but no further attempt is to be made.
    Stop,
}

/// The part of an answer that a classifier sees. Its `Debug` shows neither header values nor the body.
///
/// A test of a classifier makes its own:
///
/// ```
/// use eastwest::http::{HeaderMap, StatusCode};
/// use eastwest::{Class, Sighting, Verdict};
///
/// /// An API that answers 500 to a validation error.
/// fn classifier(seen: &Sighting<'_>) -> Verdict {
///     match seen.status {
///         StatusCode::INTERNAL_SERVER_ERROR if seen.body_start.starts_with(b"invalid") => Verdict::Class(Class::Rejected),
///         _ => Verdict::Defer,
///     }
/// }
///
/// let headers = HeaderMap::new();
/// let seen = |body| Sighting::new(StatusCode::INTERNAL_SERVER_ERROR, &headers, body);
/// assert_eq!(classifier(&seen(b"invalid sku")), Verdict::Class(Class::Rejected));
/// assert_eq!(classifier(&seen(b"out of memory")), Verdict::Defer);
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Sighting<'a> {
    /// The status.
    pub status: StatusCode,
    /// All headers, names in lower case.
    pub headers: &'a HeaderMap,
    /// The first [`Sighting::BODY_START`] bytes of the body, or all of a shorter one.
    pub body_start: &'a [u8],
}

impl Sighting<'_> {
    /// How many bytes of a body a classifier sees.
    pub const BODY_START: usize = 4_096;
}

impl<'a> Sighting<'a> {
    /// What a classifier sees of an answer of this status, with these headers and this body.
    #[must_use]
    pub fn new(status: StatusCode, headers: &'a HeaderMap, body: &'a [u8]) -> Sighting<'a> {
        Sighting { status, headers, body_start: body.get(..Sighting::BODY_START).unwrap_or(body) }
    }
}

impl fmt::Debug for Sighting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sighting")
            .field("status", &self.status)
            .field("body_start_len", &self.body_start.len())
            .finish_non_exhaustive()
    }
}

/// A function that refines the table.
pub type Classifier = dyn Fn(&Sighting<'_>) -> Verdict + Send + Sync;

/// Refinements of the status table. None by default.
///
/// Order: what the call says, then what the client says; of each, the classifier before the rule for the status. A rule
/// for a status does not touch an answer whose gateway error type settles the row by itself (throttling, quota, the
/// refused signatures and permissions of a 403).
///
/// A verdict sets the key, backoff and breaker columns. It does not undo that the work may have been done: a call that
/// needs a key by the table needs one still, and is told as possibly carried out, unless the verdict is a row that is
/// never retried: then its owner knows that the callee refused.
#[derive(Clone, Default)]
pub struct Refinements {
    by_status: Vec<(StatusCode, Verdict)>,
    classifier: Option<Arc<Classifier>>,
    below: Option<Arc<Refinements>>,
}

impl Refinements {
    /// Sets the rule for a status, replacing an earlier one.
    pub fn set_status(&mut self, status: StatusCode, verdict: Verdict) {
        self.by_status.retain(|(known, _)| *known != status);
        self.by_status.push((status, verdict));
    }

    /// Sets the classifier, replacing an earlier one.
    pub fn set_classifier(&mut self, classifier: Arc<Classifier>) {
        self.classifier = Some(classifier);
    }

    /// These refinements below those of `over`, which are asked first.
    #[must_use]
    pub(crate) fn overlaid(self: &Arc<Self>, over: &Refinements) -> Arc<Refinements> {
        if over.by_status.is_empty() && over.classifier.is_none() {
            return Arc::clone(self);
        }
        Arc::new(Refinements { below: Some(Arc::clone(self)), ..over.clone() })
    }

    /// Finds the row of an outcome.
    #[must_use]
    pub fn judge(&self, outcome: &Outcome<'_>) -> Judgement {
        let table = classify(outcome);
        let Outcome::Answered(answer) = outcome else {
            return Judgement { class: table, table, stopped: false };
        };
        match self.refine(answer) {
            // A success is what is handed out whole.
            Verdict::Class(Class::Success) if answer.broken => {
                Judgement { class: Class::ConnectionLost, table, stopped: false }
            }
            Verdict::Class(Class::Success) if answer.oversized => {
                Judgement { class: Class::BodyTooLarge, table, stopped: false }
            }
            Verdict::Class(class) => Judgement { class, table, stopped: false },
            Verdict::Defer => Judgement { class: table, table, stopped: false },
            Verdict::Stop => Judgement { class: table, table, stopped: true },
        }
    }

    fn refine(&self, answer: &Answer<'_>) -> Verdict {
        let own = self.own_verdict(answer);
        match &self.below {
            Some(below) if own == Verdict::Defer => below.refine(answer),
            _ => own,
        }
    }

    fn own_verdict(&self, answer: &Answer<'_>) -> Verdict {
        if let Some(classifier) = &self.classifier {
            let verdict = classifier(&Sighting::new(answer.status, answer.headers, answer.body));
            if verdict != Verdict::Defer {
                return verdict;
            }
        }
        let Some((_, verdict)) = self.by_status.iter().find(|(status, _)| *status == answer.status) else {
            return Verdict::Defer;
        };
        match GatewayError::read(answer.status, answer.headers) {
            Some(error) if settled_by_type(error) => Verdict::Defer,
            _ => *verdict,
        }
    }
}

impl fmt::Debug for Refinements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refinements")
            .field("by_status", &self.by_status)
            .field("classifier", &self.classifier.is_some())
            .finish()
    }
}

/// The row of an outcome, and the row that the table alone would have given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The row that holds.
    pub class: Class,
    table: Class,
    stopped: bool,
}

impl Judgement {
    /// Whether a refinement forbade further attempts.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether the callee may have done the work.
    #[must_use]
    pub fn may_have_committed(&self) -> bool {
        let (rule, table) = (self.class.rule(), self.table.rule());
        let refused = rule.retried == Retried::Never && self.table != Class::Success;
        rule.may_have_committed || (table.may_have_committed && !refused)
    }

    /// Whether a POST or PATCH needs an idempotency key to be sent again.
    ///
    /// A refinement may ask for one where the table does not, never the other way round: that the work may have been
    /// done is not undone by a name.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        let table = self.table.rule();
        self.class.rule().needs_key || table.needs_key || table.may_have_committed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::time::SystemTime;

    fn judge(
        refinements: &Refinements,
        status: u16,
        error_type: Option<&'static str>,
        body: &str,
    ) -> Judgement {
        let mut headers = HeaderMap::new();
        if let Some(name) = error_type {
            headers.insert("x-amzn-errortype", HeaderValue::from_static(name));
        }
        refinements.judge(&Outcome::Answered(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &headers,
            body: body.as_bytes(),
            oversized: false,
            broken: false,
            clock_gap: None,
            signature_age: None,
            gateway_now: SystemTime::UNIX_EPOCH,
        }))
    }

    #[test]
    fn what_is_made_a_success_is_handed_out_whole_or_not_at_all() {
        let mut rules = Refinements::default();
        rules.set_status(StatusCode::NOT_FOUND, Verdict::Class(Class::Success));
        let class = |oversized, broken| {
            let answer = Answer {
                status: StatusCode::NOT_FOUND,
                headers: &HeaderMap::new(),
                body: b"",
                oversized,
                broken,
                clock_gap: None,
                signature_age: None,
                gateway_now: SystemTime::UNIX_EPOCH,
            };
            rules.judge(&Outcome::Answered(answer)).class
        };
        assert_eq!(class(false, false), Class::Success);
        assert_eq!(class(false, true), Class::ConnectionLost);
        assert_eq!(class(true, false), Class::BodyTooLarge);
    }

    #[test]
    fn what_is_printed_of_a_refinement_is_its_shape_and_of_a_sighting_no_body() {
        let sighting =
            Sighting { status: StatusCode::CONFLICT, headers: &HeaderMap::new(), body_start: b"secret" };
        assert_eq!(format!("{sighting:?}"), "Sighting { status: 409, body_start_len: 6, .. }");
        let mut rules = Refinements::default();
        rules.set_classifier(Arc::new(|_: &Sighting<'_>| Verdict::Defer));
        assert_eq!(format!("{rules:?}"), "Refinements { by_status: [], classifier: true }");
    }

    #[test]
    fn a_rule_for_a_status_replaces_the_row() {
        let mut rules = Refinements::default();
        rules.set_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Class(Class::Throttled));
        rules.set_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Class(Class::Rejected));
        assert_eq!(judge(&rules, 500, Some("InternalServerErrorException"), "").class, Class::Rejected);
        assert_eq!(judge(&rules, 502, None, "").class, Class::BadGateway);
    }

    #[test]
    fn a_type_that_settles_the_row_outranks_a_rule_for_the_status_and_a_classifier_outranks_both() {
        let mut rules = Refinements::default();
        rules.set_status(StatusCode::FORBIDDEN, Verdict::Class(Class::QuotaExhausted));
        assert_eq!(judge(&rules, 403, None, "").class, Class::QuotaExhausted);
        assert_eq!(judge(&rules, 403, Some("AccessDeniedException"), "").class, Class::Forbidden);
        rules.set_classifier(Arc::new(|seen: &Sighting<'_>| {
            if seen.body_start.starts_with(b"quota") {
                Verdict::Class(Class::QuotaExhausted)
            } else {
                Verdict::Defer
            }
        }));
        assert_eq!(judge(&rules, 403, Some("AccessDeniedException"), "quota").class, Class::QuotaExhausted);
        assert_eq!(judge(&rules, 403, Some("AccessDeniedException"), "other").class, Class::Forbidden);
    }

    #[test]
    fn no_refinement_lifts_the_key_rule() {
        let mut rules = Refinements::default();
        rules.set_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Class(Class::Throttled));
        rules.set_status(StatusCode::OK, Verdict::Class(Class::Throttled));
        rules.set_status(StatusCode::TOO_MANY_REQUESTS, Verdict::Class(Class::Unavailable));
        assert!(judge(&rules, 500, None, "").needs_key());
        assert!(judge(&rules, 200, None, "").needs_key());
        assert!(judge(&rules, 429, None, "").needs_key(), "a stricter row does ask for one");
        assert!(!judge(&Refinements::default(), 429, None, "").needs_key());
    }

    #[test]
    fn what_may_have_been_done_stays_so_unless_the_verdict_is_a_refusal() {
        let mut rules = Refinements::default();
        for status in [200, 500, 504] {
            rules.set_status(StatusCode::from_u16(status).unwrap(), Verdict::Class(Class::Throttled));
            assert!(judge(&rules, status, None, "").may_have_committed(), "{status}");
        }
        rules.set_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Class(Class::Rejected));
        assert!(!judge(&rules, 500, None, "").may_have_committed());
        rules.set_status(StatusCode::OK, Verdict::Class(Class::Rejected));
        assert!(judge(&rules, 200, None, "").may_have_committed(), "a 2xx was carried out, whatever it says");
    }

    #[test]
    fn a_classifier_sees_no_more_than_the_start_of_the_body() {
        let mut rules = Refinements::default();
        rules.set_classifier(Arc::new(|seen: &Sighting<'_>| {
            assert_eq!(seen.body_start.len(), Sighting::BODY_START);
            Verdict::Stop
        }));
        let judged = judge(&rules, 503, None, &"x".repeat(Sighting::BODY_START + 1));
        assert_eq!((judged.class, judged.is_stopped()), (Class::Unavailable, true));
    }

    #[test]
    fn a_rule_of_one_call_replaces_that_of_the_client() {
        let (mut client, mut call) = (Refinements::default(), Refinements::default());
        let unchanged = Arc::new(Refinements::default());
        assert!(Arc::ptr_eq(&unchanged.overlaid(&call), &unchanged));
        client.set_status(StatusCode::CONFLICT, Verdict::Class(Class::Unavailable));
        client.set_status(StatusCode::GONE, Verdict::Class(Class::Unavailable));
        client.set_classifier(Arc::new(|_: &Sighting<'_>| Verdict::Class(Class::Unavailable)));
        call.set_status(StatusCode::CONFLICT, Verdict::Stop);
        let client = Arc::new(client).overlaid(&call);
        assert!(judge(&client, 409, None, "").is_stopped());
        assert_eq!(judge(&client, 410, None, "").class, Class::Unavailable);
    }
}
