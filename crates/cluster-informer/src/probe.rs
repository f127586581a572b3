//! Whether a member lives: an authenticated `GET /readyz` in regular intervals (F33).
//!
//! A watch can't tell a lost connection from an idle one, so this alone decides. Any answer but a server error shows
//! that the member lives: 401 and 403 that it doesn't let us in, 429 that it is busy.

use std::time::Duration;

use http::{Request, StatusCode};
use jiff::Timestamp;
use kube::{Client, client::Body};
use reflector::{Backoff, ClientReceiver, format_error, is_credentials_error};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::{store::Clock, view::Health};

/// Errors come as chains of sources, some with whole requests; longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 256;

/// How often a member is probed, and when it is given up.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// From one probe to the next. Default 10 s.
    pub period: Duration,
    /// An answer that takes longer is a failure. Default 5 s.
    pub timeout: Duration,
    /// So many failures in a row make a member unreachable. Default 3.
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

/// How one probe went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The member lives.
    Alive,
    /// It lives and does not let us in.
    Denied(String),
    /// It doesn't answer, or says that it isn't ready.
    Failed(String),
}

/// Failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Row {
    since: Option<Timestamp>,
    failures: u32,
}

impl Row {
    /// What `outcome` at `now` makes of the member's health. Whatever shows that it lives ends the row.
    pub fn record(&mut self, outcome: Outcome, now: Timestamp, failure_threshold: u32) -> Health {
        let message = match outcome {
            Outcome::Alive => {
                *self = Self::default();
                return Health::Healthy;
            }
            Outcome::Denied(message) => {
                *self = Self::default();
                return Health::Unauthorized { message };
            }
            Outcome::Failed(message) => message,
        };
        let since = *self.since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        if self.failures < failure_threshold {
            Health::Failing { since, message }
        } else {
            Health::Unreachable { since, message }
        }
    }
}

/// Probes at once, then in intervals whose phase is drawn from `seed`, so that many members are not probed all at
/// the same time; and at once when there are other credentials. Goes on with the `row` of failures. Tells `report` of
/// each probe and how long it took, until `cancel`.
pub(crate) async fn run(
    mut clients: ClientReceiver,
    settings: ProbeSettings,
    clock: Clock,
    seed: u64,
    row: &mut Row,
    cancel: CancellationToken,
    mut report: impl FnMut(Health, Duration) + Send,
) {
    let mut probe = async |client| {
        let started = Instant::now();
        let outcome = probe(&client, settings.timeout).await;
        report(
            row.record(outcome, clock(), settings.failure_threshold),
            started.elapsed(),
        );
    };
    cancel
        .run_until_cancelled(async {
            probe(clients.current()).await;
            let mut phase = Backoff::new(settings.period, settings.period, seed);
            let mut next = Instant::now() + phase.jitter(settings.period, 1.0);
            loop {
                tokio::select! {
                    biased;
                    () = sleep_until(next) => next = Instant::now() + settings.period,
                    () = clients.renewed() => {}
                }
                probe(clients.current()).await;
            }
        })
        .await;
}

async fn probe(client: &Client, patience: Duration) -> Outcome {
    let request = Request::get("/readyz")
        .body(Body::empty())
        .expect("a constant path is a request");
    match timeout(patience, client.send(request)).await {
        Ok(Ok(response)) => classify(response.status()),
        // Our own credentials can't be had (a plugin, a token's file): that says nothing of the member.
        Ok(Err(error)) if is_credentials_error(&error) => Outcome::Denied(describe(&error)),
        Ok(Err(error)) => Outcome::Failed(describe(&error)),
        Err(_) => Outcome::Failed(format!("no answer within {patience:?}")),
    }
}

fn classify(status: StatusCode) -> Outcome {
    match status {
        StatusCode::UNAUTHORIZED => {
            Outcome::Denied(format!("the credentials are refused (/readyz: {status})"))
        }
        StatusCode::FORBIDDEN => Outcome::Denied(format!(
            "the account has no right to ask whether the cluster is ready (/readyz: {status})"
        )),
        StatusCode::TOO_MANY_REQUESTS => Outcome::Alive,
        status if status.is_success() => Outcome::Alive,
        status => Outcome::Failed(format!("/readyz: {status}")),
    }
}

/// The error with its causes, not longer than a condition should be.
fn describe(error: &kube::Error) -> String {
    format_error(error)
        .chars()
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
