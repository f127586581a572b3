//! A member's health after a sequence of probes, and when it is probed.

use std::sync::Arc;

use http::Response;
use parking_lot::Mutex;
use tower::service_fn;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn failed() -> ProbeOutcome {
    ProbeOutcome::Failed(ProbeFailure::Timeout(Duration::from_secs(5)))
}

fn rejected() -> ProbeOutcome {
    classify(StatusCode::FORBIDDEN)
}

#[test]
fn f33_failures_in_a_row_make_it_unreachable_since_the_first() {
    let (since, message) = (at(10), "no response within 5s".to_owned());
    let failing = Health::Failing {
        since,
        message: message.clone(),
    };
    let unreachable = Health::Unreachable { since, message };
    let unauthorized = Health::Unauthorized {
        message: "the credentials do not allow GET /readyz (403 Forbidden)".into(),
    };
    let steps = [
        (0, ProbeOutcome::Alive, Health::Healthy),
        (10, failed(), failing.clone()),
        (20, failed(), failing),
        (30, failed(), unreachable.clone()),
        (40, failed(), unreachable),
        (50, ProbeOutcome::Alive, Health::Healthy),
        (
            60,
            failed(),
            Health::Failing {
                since: at(60),
                message: "no response within 5s".into(),
            },
        ),
        (70, rejected(), unauthorized),
        (
            80,
            failed(),
            Health::Failing {
                since: at(80),
                message: "no response within 5s".into(),
            },
        ),
    ];
    let mut failures = FailureStreak::default();
    for (second, outcome, expected) in steps {
        assert_eq!(
            failures.record(outcome, at(second), 3),
            expected,
            "at {second} s"
        );
    }
}

#[test]
fn f33_outcomes_by_http_status() {
    for (status, alive, rejected) in [
        (200, true, false),
        (429, true, false),
        (401, false, true),
        (403, false, true),
        (404, false, false),
        (500, false, false),
        (503, false, false),
    ] {
        let outcome = classify(StatusCode::from_u16(status).unwrap());
        assert_eq!(matches!(outcome, ProbeOutcome::Alive), alive, "{status}");
        assert_eq!(
            matches!(outcome, ProbeOutcome::Rejected(_)),
            rejected,
            "{status}"
        );
    }
}

/// Probes a member for a minute that hangs, breaks the connection, or responds.
async fn probe_for_a_minute(
    answer: Option<Result<u16, &'static str>>,
    seed: u64,
) -> Vec<(Duration, Health)> {
    let service = service_fn(move |request: Request<Body>| async move {
        assert_eq!(request.uri(), "/readyz");
        match answer {
            None => std::future::pending().await,
            Some(Err(error)) => Err(std::io::Error::other(error)),
            Some(Ok(status)) => Ok(Response::builder()
                .status(status)
                .body(Body::empty())
                .expect("a response")),
        }
    });
    let start = Instant::now();
    let log = Arc::new(Mutex::new(Vec::new()));
    let clock: Clock =
        Arc::new(move || at(i64::try_from(start.elapsed().as_secs()).expect("small")));
    let report = {
        let log = Arc::clone(&log);
        move |health, latency: Duration| {
            assert!(latency <= Duration::from_secs(5));
            log.lock().push((start.elapsed(), health));
        }
    };
    let mut failures = FailureStreak::default();
    let run = run(
        Client::new(service, "default").into(),
        ProbeSettings::default(),
        &clock,
        seed,
        &mut failures,
        report,
    );
    timeout(Duration::from_mins(1), run)
        .await
        .expect_err("it runs for ever");
    log.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn f33_a_member_that_hangs_is_unreachable_after_three_probes() {
    let log = probe_for_a_minute(None, 1).await;
    assert_eq!(
        log[0].1,
        Health::Failing {
            since: at(5),
            message: "no response within 5s".into()
        }
    );
    assert!(
        matches!(log[2].1, Health::Unreachable { .. }) && log[2].0 <= Duration::from_secs(35),
        "{log:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn f33_an_unreachable_member_is_probed_more_often_and_not_at_regular_times() {
    let log = probe_for_a_minute(Some(Ok(503)), 1).await;
    let is_unreachable =
        |(_, health): &&(Duration, Health)| matches!(health, Health::Unreachable { .. });
    let times: Vec<_> = log
        .iter()
        .filter(is_unreachable)
        .map(|(at, _)| *at)
        .collect();
    // The first one is scheduled while the member is failing.
    let pauses: Vec<_> = times[1..]
        .windows(2)
        .map(|pair| pair[1].abs_diff(pair[0]))
        .collect();
    assert!(pauses.len() >= 10, "{log:?}");
    let (shortest, longest) = (pauses.iter().min(), pauses.iter().max());
    assert!(shortest >= Some(&Duration::from_secs(1)), "{pauses:?}");
    assert!(longest <= Some(&Duration::from_millis(2002)), "{pauses:?}");
    assert_ne!(shortest, longest);
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_described() {
    let log = probe_for_a_minute(Some(Err("connection refused")), 1).await;
    assert!(
        matches!(&log[0].1, Health::Failing { message, .. } if message.contains("connection refused")),
        "{log:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn f33_missing_credentials_are_not_an_outage() {
    let header = http::HeaderValue::from_str("a\nb").expect_err("no header");
    let error = kube::client::AuthError::InvalidBearerToken(header);
    let error = Mutex::new(Some(error));
    let service = service_fn(move |_: Request<Body>| {
        let error = error.lock().take().expect("one probe");
        async move { Err::<Response<Body>, _>(error) }
    });
    let outcome = probe(&Client::new(service, "default"), Duration::from_secs(5)).await;
    assert!(
        matches!(
            &outcome,
            ProbeOutcome::Rejected(ProbeRejection::NoCredentials(_))
        ),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_probe_is_at_once_and_the_seed_decides_the_phase() {
    let times = async |seed| -> Vec<Duration> {
        probe_for_a_minute(Some(Ok(200)), seed)
            .await
            .into_iter()
            .map(|(at, _)| at)
            .collect()
    };
    let first = times(1).await;
    assert!(first[0] <= Duration::from_millis(1), "{first:?}");
    assert!(
        first[1..]
            .windows(2)
            .all(|pair| pair[1].abs_diff(pair[0]).as_millis().abs_diff(10_000) <= 2),
        "{first:?}"
    );
    assert_eq!(times(1).await, first);
    assert_ne!(times(2).await, first);
}
