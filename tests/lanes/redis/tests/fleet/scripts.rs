//! The scripts and the pure model say the same to every generated sequence.

use crate::server::Server;
use eastwest::CircuitState;
use eastwest::fleet::{FleetSettings, Priority, Report, SharedBucket, SharedQuota, SharedState, View};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::Script;
use std::cell::Cell;
use std::time::Duration;

/// A script that is told the time instead of asking for it, as its last two arguments.
fn by_the_test_s_clock(source: &str) -> Script {
    let asked = "redis.call('TIME')";
    assert_eq!(source.matches(asked).count(), 1, "the script asks for the time once");
    Script::new(&source.replace(asked, "{ ARGV[#ARGV - 1], ARGV[#ARGV] }"))
}

fn run(
    script: &Script,
    server: &mut redis::Connection,
    key: &str,
    numbers: &[u64],
    now: Duration,
) -> Vec<i64> {
    let mut call = script.prepare_invoke();
    call.key(key);
    for number in numbers {
        call.arg(*number);
    }
    call.arg(now.as_secs()).arg(now.subsec_micros());
    call.invoke(server).unwrap()
}

/// What the script's numbers are where the model says this.
fn numbers(view: &View, now: Duration) -> Vec<i64> {
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap();
    let state = match view.state {
        CircuitState::Closed => 0,
        CircuitState::HalfOpen => 1,
        CircuitState::Open => 2,
    };
    let changed = view.changed.map_or(-1, micros);
    let demand = i64::try_from(view.demand).unwrap();
    vec![state, micros(view.come_back), i64::from(view.probe), changed, demand, micros(now)]
}

fn settings() -> impl Strategy<Value = FleetSettings> {
    let times = (10..4_000u64, 1..3_000u64, 1..10u64);
    let counts = (1..=100u32, 1..60u32, 1..=1_000u32, 1..4u32);
    (times, counts).prop_map(|((window, open_for, forget), (percent, minimum, probes, close))| {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        FleetSettings::default()
            .with_window(ms(window))
            .with_open_for(ms(open_for))
            .with_forget_after(s(forget))
            .with_failure_percent(percent)
            .with_minimum_outcomes(minimum)
            .with_probes_per_second(probes)
            .with_successes_to_close(close)
    })
}

fn report() -> impl Strategy<Value = Report> {
    let count = || prop_oneof![4 => Just(0u32), 4 => 0..60u32, 1 => any::<u32>()];
    let age = prop_oneof![Just(0u64), 0..5_000_000u64];
    (count(), count(), count(), count(), age, count(), any::<bool>()).prop_map(
        |(failures, successes, probe_failures, probe_successes, age, stands_for, asks)| {
            Report::default()
                .with_failures(failures)
                .with_successes(successes)
                .with_probe_failures(probe_failures)
                .with_probe_successes(probe_successes)
                .with_age(Duration::from_micros(age))
                .with_stands_for(stands_for)
                .with_asks(asks)
        },
    )
}

/// A step of the clock in microseconds, backwards once in a while, as after a failover.
fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => 0..200_000i64,
        4 => 0..3_000_000i64,
        1 => 0..90_000_000i64,
        1 => -5_000_000..0i64,
    ]
}

fn moved(now: Duration, by: i64) -> Duration {
    let step = Duration::from_micros(by.unsigned_abs());
    if by < 0 { now.saturating_sub(step) } else { now + step }
}

fn runner() -> TestRunner {
    TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() })
}

const START: Duration = Duration::new(1_790_000_000, 123_456_000);

#[tokio::test]
async fn the_breaker_s_script_does_what_the_pure_model_does() {
    let server = Server::start().await;
    let connection = std::cell::RefCell::new(server.look());
    let script = by_the_test_s_clock(include_str!("../../../../../src/fleet/breaker.lua"));
    let (cases, tripped, probed, closed) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let steps = vec((report(), step()), 1..80);
    runner()
        .run(&(settings(), steps), |(settings, steps)| {
            cases.set(cases.get() + 1);
            let key = format!("{{case-{}}}", cases.get());
            let (mut model, mut now, mut was) = (SharedState::default(), START, false);
            for (report, by) in steps {
                now = moved(now, by);
                let told: Vec<u64> = settings.as_numbers().into_iter().chain(report.as_numbers()).collect();
                let view = model.exchange(&settings, &report, now);
                let said = run(&script, &mut connection.borrow_mut(), &key, &told, now);
                prop_assert_eq!(&said, &numbers(&view, now), "{:?} at {:?}", report, now);
                tripped.set(tripped.get() + u32::from(view.is_tripped() && !was));
                closed.set(closed.get() + u32::from(!view.is_tripped() && was));
                probed.set(probed.get() + u32::from(view.probe));
                was = view.is_tripped();
            }
            Ok(())
        })
        .unwrap();
    // The sequences went everywhere.
    assert!(
        tripped.get() > 50 && probed.get() > 50 && closed.get() > 50,
        "{tripped:?} {probed:?} {closed:?}"
    );
}

#[tokio::test]
async fn the_limit_s_script_does_what_the_pure_model_does() {
    let server = Server::start().await;
    let connection = std::cell::RefCell::new(server.look());
    let script = by_the_test_s_clock(include_str!("../../../../../src/fleet/limit.lua"));
    let cases = Cell::new(0);
    let priority = || prop_oneof![Just(Priority::Bulk), Just(Priority::Critical), Just(Priority::Normal)];
    let steps =
        vec((priority(), prop_oneof![6 => 0..50_000i64, 1 => 0..5_000_000i64, 1 => -5_000_000..0i64]), 1..80);
    runner()
        .run(&(1..10_000u32, 1..100u32, any::<bool>(), steps), |(attempts, burst, minute, steps)| {
            cases.set(cases.get() + 1);
            let key = format!("{{case-{}}}", cases.get());
            let quota =
                if minute { SharedQuota::per_minute(attempts) } else { SharedQuota::per_second(attempts) };
            let quota = quota.burst(burst);
            let (mut model, mut now) = (SharedBucket::default(), START);
            for (priority, by) in steps {
                now = moved(now, by);
                let wait = model.take(&quota, priority, now);
                let said = run(&script, &mut connection.borrow_mut(), &key, &quota.as_numbers(priority), now);
                let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap();
                prop_assert_eq!(said, vec![micros(wait), micros(now)]);
            }
            Ok(())
        })
        .unwrap();
}
