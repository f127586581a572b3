//! The liveness probe of a member cluster: an authenticated `GET /readyz` in regular intervals (F33).
//!
//! A watch can't distinguish a lost connection from an idle one, so the probe alone decides. Any answer but a server error
//! shows that the member is alive: 401 and 403 that it rejects our credentials, 429 that it is busy.

use std::time::Duration;

use http::{Request, StatusCode};
use jiff::Timestamp;
use kube::{Client, client::Body};
use reflector::{Backoff, ClientReceiver, format_error, is_credentials_error, printable};
use tokio::time::{Instant, sleep_until, timeout};

use crate::{health::Health, store::Clock};

/// How often a member is probed, and when it is unreachable.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// The time between two probes; at most a fifth of it for an unreachable member. Default 10 s.
    pub period: Duration,
    /// An answer that takes longer is a failure. Default 5 s.
    pub timeout: Duration,
    /// The number of failures in a row that make a member unreachable. Default 3.
    pub failure_threshold: u32,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            failure_threshold: 3,
        }
    }
}

/// Why a probe failed. The member may be down.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFailure {
    /// No connection, or it broke.
    #[error("{}", format_error(.0))]
    Connection(#[source] kube::Error),
    /// The member responds that it is not ready.
    #[error("/readyz: {0}")]
    NotReady(StatusCode),
    /// The member did not respond in time.
    #[error("no response within {0:?}")]
    Timeout(Duration),
}

/// Why a probe was rejected. The member is up, or it is not known to be down.
#[derive(Debug, thiserror::Error)]
pub enum ProbeRejection {
    /// 401.
    #[error("the member rejects the credentials (/readyz: {0})")]
    Unauthenticated(StatusCode),
    /// 403.
    #[error("the credentials do not allow GET /readyz ({0})")]
    Forbidden(StatusCode),
    /// The controller could not obtain credentials: a plugin failed, or a token's file.
    #[error("{}", format_error(.0))]
    NoCredentials(#[source] kube::Error),
}

/// The result of one probe.
#[derive(Debug)]
pub enum ProbeOutcome {
    /// The member is alive.
    Alive,
    /// It rejects our credentials, or there are none.
    Rejected(ProbeRejection),
    /// It does not respond, or responds that it is not ready.
    Failed(ProbeFailure),
}

/// Failed probes in a row.
#[derive(Clone, Debug, Default)]
pub struct FailureStreak {
    since: Option<Timestamp>,
    failures: u32,
}

impl FailureStreak {
    /// The member's health after `outcome` at `now`. Any sign of life ends the streak.
    pub fn record(
        &mut self,
        outcome: ProbeOutcome,
        now: Timestamp,
        failure_threshold: u32,
    ) -> Health {
        let failure = match outcome {
            ProbeOutcome::Alive => {
                *self = Self::default();
                return Health::Healthy;
            }
            ProbeOutcome::Rejected(rejection) => {
                *self = Self::default();
                let message = printable(&rejection.to_string());
                return Health::Unauthorized { message };
            }
            ProbeOutcome::Failed(failure) => failure,
        };
        let message = printable(&failure.to_string());
        let since = *self.since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        if self.failures < failure_threshold {
            Health::Failing { since, message }
        } else {
            Health::Unreachable { since, message }
        }
    }
}

/// How many times more often an unreachable member is probed: replicas elsewhere wait for its return.
const UNREACHABLE_FACTOR: u32 = 5;

/// Probes without an end: at once, then in intervals, and at once when the credentials are renewed. `seed` decides the phase
/// of the intervals, so that members are not probed all at the same time. Continues the streak of `failures`. Passes the
/// health after each probe, and how long it took, to `report`.
pub(crate) async fn run(
    mut clients: ClientReceiver,
    settings: ProbeSettings,
    clock: &Clock,
    seed: u64,
    failures: &mut FailureStreak,
    mut report: impl FnMut(Health, Duration) + Send,
) {
    let mut probe = async |client| {
        let started = Instant::now();
        let outcome = probe(&client, settings.timeout).await;
        let health = failures.record(outcome, clock(), settings.failure_threshold);
        let is_unreachable = matches!(health, Health::Unreachable { .. });
        report(health, started.elapsed());
        is_unreachable
    };
    let mut is_unreachable = probe(clients.current()).await;
    let mut phase = Backoff::new(settings.period, settings.period, seed);
    let mut next = Instant::now() + phase.jitter(settings.period, 1.0);
    loop {
        tokio::select! {
            biased;
            () = sleep_until(next) => {
                let period = if is_unreachable {
                    // Members that are lost together are not probed together.
                    phase.jitter(settings.period / UNREACHABLE_FACTOR, 0.5)
                } else {
                    settings.period
                };
                next = Instant::now() + period;
            }
            () = clients.renewed() => {}
        }
        is_unreachable = probe(clients.current()).await;
    }
}

async fn probe(client: &Client, within: Duration) -> ProbeOutcome {
    let request = Request::get("/readyz")
        .body(Body::empty())
        .expect("a constant path is a request");
    match timeout(within, client.send(request)).await {
        Ok(Ok(response)) => classify(response.status()),
        Ok(Err(error)) if is_credentials_error(&error) => {
            ProbeOutcome::Rejected(ProbeRejection::NoCredentials(error))
        }
        Ok(Err(error)) => ProbeOutcome::Failed(ProbeFailure::Connection(error)),
        Err(_) => ProbeOutcome::Failed(ProbeFailure::Timeout(within)),
    }
}

fn classify(status: StatusCode) -> ProbeOutcome {
    match status {
        StatusCode::UNAUTHORIZED => ProbeOutcome::Rejected(ProbeRejection::Unauthenticated(status)),
        StatusCode::FORBIDDEN => ProbeOutcome::Rejected(ProbeRejection::Forbidden(status)),
        StatusCode::TOO_MANY_REQUESTS => ProbeOutcome::Alive,
        status if status.is_success() => ProbeOutcome::Alive,
        status => ProbeOutcome::Failed(ProbeFailure::NotReady(status)),
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
