//! What must hold of every call, whatever was done to it on its way.

use crate::record::{Arrival, End, Kind, Record, Told};

/// What does not hold of a call that is over, in words.
pub fn judge(record: &Record) -> Vec<String> {
    let mut found = Vec::new();
    for (holds, what) in keys(record).into_iter().chain(commits(record)) {
        if !holds {
            found.push(format!("{what}{}", record.end.as_ref().map(End::line).unwrap_or_default()));
        }
    }
    found.extend(arrivals(record));
    match &record.end {
        None => found.push("it was judged before its end".to_owned()),
        Some(End::Dropped) => {}
        Some(End::Answered { told, .. } | End::Failed { told, .. }) => {
            found.extend(told_and_seen(told, &record.arrivals));
        }
    }
    found
}

type Rule = (bool, &'static str);

fn keys(record: &Record) -> Vec<Rule> {
    let keyless = matches!(record.kind, Kind::Get | Kind::KeylessPost);
    let own = record.given.as_ref();
    vec![
        (!keyless || record.keys.is_empty(), "a key was sent where none was to be"),
        (record.keys.len() <= 1, "its attempts carried different keys"),
        (
            own.is_none() || record.keys.iter().all(|key| Some(key) == own),
            "a key was sent that is not its own",
        ),
        (keyless || record.commits.iter().all(|done| done.key.is_some()), "it was sent without its key"),
    ]
}

fn commits(record: &Record) -> Vec<Rule> {
    let (writes, commits) = (record.kind != Kind::Get, record.commits.len());
    let mut rules = vec![(commits <= usize::from(writes), "DOUBLED: it was committed more than once")];
    match &record.end {
        Some(End::Answered { key, commit, .. }) => {
            rules.push((commits >= usize::from(writes), "LOST: it was answered and not committed"));
            let own = record.commits.first();
            rules.push((*commit == own.map(|own| own.commit), "its answer tells of another commit"));
            rules.push((*key == own.and_then(|own| own.key.clone()), "its answer tells of another key"));
        }
        Some(End::Failed { may_have_committed, .. }) => {
            rules.push((commits == 0 || *may_have_committed, "its error denies a commit that was made"));
            rules.push((writes || !may_have_committed, "what only reads may have been committed, it says"));
        }
        Some(End::Dropped) | None => {}
    }
    rules
}

/// Each attempt arrives once, and none after one that may have been carried out if there is no key.
fn arrivals(record: &Record) -> Vec<String> {
    let mut found = Vec::new();
    let arrivals = &record.arrivals;
    for (place, arrival) in arrivals.iter().enumerate() {
        if arrivals[..place].iter().any(|earlier| earlier.attempt == arrival.attempt) {
            found.push(format!("attempt {} was sent twice", arrival.attempt));
        }
    }
    if record.kind == Kind::KeylessPost {
        let all_but_last = arrivals.split_last().map_or(&[][..], |(_, rest)| rest);
        for earlier in all_but_last.iter().filter(|earlier| !harmless(earlier)) {
            found.push(format!("DOUBLED: it has no key and was sent again after a doubt, {earlier:?}"));
        }
    }
    found
}

/// Whether an attempt was refused in words before anything was done for it.
fn harmless(arrival: &Arrival) -> bool {
    matches!(arrival.status, Some(401 | 403 | 429))
}

/// What the client tells of its attempts is what the proxy saw of them.
fn told_and_seen(told: &[Told], arrivals: &[Arrival]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, told) in (1..).zip(told) {
        let seen = arrivals.iter().find(|arrival| arrival.attempt == number);
        let status = seen.and_then(|seen| seen.status);
        if told.status.is_some() && told.status != status {
            found.push(format!("attempt {number} is told as answered {:?} and was {status:?}", told.status));
        }
        if told.never_sent && seen.is_some() {
            found.push(format!("attempt {number} is told as never sent and arrived"));
        }
        if seen.is_some_and(|seen| seen.delivered) && told.status.is_none() && !told.timed_out {
            found.push(format!(
                "attempt {number} was answered {status:?}, whole, and is not told as answered"
            ));
        }
    }
    for arrival in arrivals {
        if arrival.attempt == 0 || arrival.attempt as usize > told.len() {
            found.push(format!("attempt {} arrived and is not told", arrival.attempt));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Commit;

    const SENT: Told = Told { status: None, never_sent: false, timed_out: false };

    fn arrival(attempt: u32, status: Option<u16>) -> Arrival {
        Arrival { attempt, status, delivered: status.is_some() }
    }

    /// A call that was answered at its second attempt, all in order.
    fn answered() -> Record {
        let mut record = Record::new(Kind::KeyedPost, Some("k"));
        record.saw_key(Some("k"));
        record.arrivals = vec![arrival(1, Some(503)), arrival(2, Some(201))];
        record.commits = vec![Commit { commit: 9, key: Some("k".into()) }];
        let told = [503, 201].map(|status| Told { status: Some(status), ..SENT }).to_vec();
        record.end = Some(End::Answered { told, key: Some("k".into()), commit: Some(9) });
        record
    }

    /// One that failed after one attempt that never got an answer.
    fn failed(kind: Kind, may_have_committed: bool) -> Record {
        let mut record = Record::new(kind, None);
        record.arrivals = vec![arrival(1, None)];
        record.end = Some(End::Failed { told: vec![SENT], may_have_committed, line: String::new() });
        record
    }

    fn says(record: &Record, what: &str) {
        let found = judge(record);
        assert!(found.iter().any(|found| found.contains(what)), "{what}: {found:?}");
    }

    #[test]
    fn what_is_in_order_is_let_pass() {
        assert_eq!(judge(&answered()), Vec::<String>::new());
        assert_eq!(judge(&failed(Kind::Put, true)), Vec::<String>::new());
        assert_eq!(judge(&failed(Kind::Get, false)), Vec::<String>::new());
    }

    #[test]
    fn a_second_commit_a_lost_one_and_one_that_is_not_told_are_found() {
        let mut record = answered();
        record.commits.push(Commit { commit: 10, key: Some("k".into()) });
        says(&record, "DOUBLED");
        record.commits.clear();
        says(&record, "LOST");
        let mut record = failed(Kind::KeylessPost, false);
        record.commits = vec![Commit { commit: 1, key: None }];
        says(&record, "denies a commit");
        says(&failed(Kind::Get, true), "only reads");
    }

    #[test]
    fn another_call_s_answer_and_another_key_are_found() {
        let mut record = answered();
        record.commits[0].commit = 8;
        says(&record, "another commit");
        record.saw_key(Some("l"));
        says(&record, "different keys");
        says(&record, "not its own");
        let mut record = failed(Kind::KeylessPost, true);
        record.saw_key(Some("k"));
        says(&record, "where none was to be");
    }

    #[test]
    fn a_keyless_call_that_is_sent_again_after_a_doubt_is_found() {
        for (status, told) in [(None, "DOUBLED"), (Some(503), "DOUBLED")] {
            let mut record = failed(Kind::KeylessPost, true);
            record.arrivals = vec![arrival(1, status), arrival(2, None)];
            says(&record, told);
        }
        let mut record = failed(Kind::KeylessPost, true);
        record.arrivals = vec![arrival(1, Some(429)), arrival(2, None)];
        let told = vec![Told { status: Some(429), ..SENT }, SENT];
        record.end = Some(End::Failed { told, may_have_committed: true, line: String::new() });
        assert_eq!(judge(&record), Vec::<String>::new());
    }

    #[test]
    fn an_attempt_that_is_sent_twice_not_told_or_told_otherwise_is_found() {
        let mut record = failed(Kind::Put, true);
        record.arrivals.push(arrival(1, None));
        says(&record, "sent twice");
        record.arrivals[1].attempt = 2;
        says(&record, "not told");
        let mut record = failed(Kind::Put, true);
        record.arrivals[0] = arrival(1, Some(503));
        says(&record, "is not told as answered");
        let mut record = answered();
        record.arrivals[0].status = Some(500);
        says(&record, "told as answered");
        let mut record = failed(Kind::Put, true);
        let told = vec![Told { never_sent: true, ..SENT }];
        record.end = Some(End::Failed { told, may_have_committed: true, line: String::new() });
        says(&record, "never sent and arrived");
    }
}
