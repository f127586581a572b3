//! The edge of the election: reads and writes the Lease, and runs the caller's work while this process holds it.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use reflector::ResourceVersion;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    config::LeaderElectionConfig,
    fence::{Fence, NODES_NOTICED},
    lease::{HostLease, LeaseError},
    metrics::ElectionMetrics,
    step::{self, Acquisition, Candidate, Step, View},
};
use crate::{
    calls::CallError,
    clock::Clock,
    watchdog::{Watchdog, Watched},
};

/// Standbys shorten their period by up to this part, so that they do not read the Lease at the same time.
const JITTER: f64 = 0.2;

/// The configuration of an [`Elector`].
pub struct LeaderElectorConfig {
    /// A client of the host that does not retry.
    pub host: Client,
    /// The namespace of the Lease; created if it does not exist.
    pub namespace: String,
    /// The name of the Lease: the same for all processes of which only one may lead.
    pub lease: String,
    /// Who reports events about the Lease: `fedrs.dev/federation-controller`.
    pub component: &'static str,
    /// The name of this process in the Lease. A process that starts with the name of one that has ended continues its term
    /// at once; no two processes may have the name at the same time.
    pub identity: String,
    /// How long a term lasts, and how often it is renewed.
    pub timing: LeaderElectionConfig,
    /// The clock of the times in the Lease, which are for people: no decision depends on them.
    pub clock: Clock,
    /// The seed of the jitter.
    pub seed: u64,
    /// The metrics of the election.
    pub metrics: ElectionMetrics,
    /// Reports if the election hangs.
    pub watchdog: Watchdog,
}

/// The role of a process in the election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaderState {
    /// The Lease has not been read since the start, or since the end of a term.
    #[default]
    Unknown,
    /// The Lease can't be read or written: why.
    Failed(String),
    /// Another process leads.
    Standby {
        /// Its identity.
        leader: String,
    },
    /// This process leads.
    Leading,
}

/// A time in which this process leads.
pub struct Term {
    /// Guards every client of the term.
    pub fence: Fence,
    /// Cancelled when the work of the term has to end.
    pub end: CancellationToken,
}

/// Takes part in the election.
pub struct Elector {
    me: Candidate,
    lease: HostLease,
    timing: LeaderElectionConfig,
    clock: Clock,
    random: StdRng,
    metrics: ElectionMetrics,
    watched: Watched,
    view: View,
    /// The latest version of the Lease that was read or written.
    latest: ResourceVersion,
    /// The Lease as it was last written, while this process leads.
    held: Option<Lease>,
    /// The acquisitions of the Lease by this process, also those whose response was lost.
    acquired: Vec<Acquisition>,
    /// Whether one of these continues the term of an earlier process.
    resumed: bool,
    /// Whether members may have had an outage since the last term that is not recorded: the host was restored from a backup, or
    /// nobody has led for a while.
    unrecorded: bool,
    state: watch::Sender<LeaderState>,
}

/// The result of an attempt to hold the Lease.
enum Attempt {
    /// This process holds it; others see that at `since` or later.
    Held { since: Instant },
    /// Another process holds it until then.
    Other { leader: String, until: Instant },
    /// The Lease is older than this process's last write: the host was restored from a backup.
    WentBack,
}

impl Elector {
    /// An elector that takes part once it [runs](Self::run).
    #[must_use]
    pub fn new(config: LeaderElectorConfig) -> Self {
        let timing = config.timing;
        Self {
            me: Candidate {
                identity: config.identity,
                is_shared: false,
                lease_duration: timing.lease_duration,
            },
            lease: HostLease {
                host: config.host,
                namespace: config.namespace,
                name: config.lease,
                component: config.component,
                // A call that hangs leaves time for another.
                timeout: timing.renew_deadline / 2,
            },
            timing,
            clock: config.clock,
            random: StdRng::seed_from_u64(config.seed),
            metrics: config.metrics,
            watched: config.watchdog.watch("leader election"),
            view: View::default(),
            latest: ResourceVersion::default(),
            held: None,
            acquired: Vec::new(),
            resumed: false,
            unrecorded: false,
            state: watch::Sender::default(),
        }
    }

    /// The role of this process, from now on.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<LeaderState> {
        self.state.subscribe()
    }

    /// Runs `lead` in each term, until `cancel`.
    ///
    /// The work has to end soon after [`Term::end`] is cancelled: the elector waits for it, and renews the Lease
    /// meanwhile if `cancel` is the cause. When the work ends, the Lease is released; when the Lease is lost, the process is a
    /// standby again.
    pub async fn run<W: Future<Output = ()>>(
        mut self,
        cancel: CancellationToken,
        mut lead: impl FnMut(Term) -> W,
    ) {
        while let Some(since) = cancel.run_until_cancelled(Box::pin(self.campaign())).await {
            let until = since + self.timing.renew_deadline;
            let resumed = self.resumed.then_some(self.timing.lease_duration);
            let unrecorded = std::mem::take(&mut self.unrecorded).then_some(NODES_NOTICED);
            let keeps_running_until = resumed.max(unrecorded).map(|time| since + time);
            if self.resumed {
                let duration = self.timing.lease_duration;
                tracing::info!(
                    ?duration,
                    "continues the term of a process that ended: its requests may still arrive"
                );
            }
            if let Some(duration) = unrecorded {
                tracing::info!(
                    ?duration,
                    "nobody has led for a while, or the cluster with the Lease was restored: outages since then are not recorded"
                );
            }
            let fenced_writes = self.metrics.fenced_writes.clone();
            let fence = Fence::until(until, keeps_running_until, fenced_writes);
            let end = cancel.child_token();
            self.set_state(LeaderState::Leading);
            let mut work = Box::pin(lead(Term {
                fence: fence.clone(),
                end: end.clone(),
            }));
            let lost = tokio::select! {
                biased;
                why = self.hold(&fence, since) => Some(why),
                () = &mut work => None,
            };
            fence.close();
            self.set_state(LeaderState::Unknown);
            if let Some(why) = lost {
                tracing::warn!(identity = self.me.identity, reason = why, "lost leadership");
                end.cancel();
                work.await;
                self.held = None;
            } else {
                self.release().await;
            }
            self.acquired.clear();
            self.resumed = false;
        }
    }

    /// Waits until this process holds the Lease. Returns since when, as [`Attempt::Held`].
    async fn campaign(&mut self) -> Instant {
        loop {
            self.watched.beat();
            let part = 1.0 - JITTER * self.random.random::<f64>();
            let mut next = Instant::now() + self.timing.retry_period.mul_f64(part);
            match self.attempt().await {
                Ok(Attempt::Held { since }) => return since,
                Ok(Attempt::Other { leader, until }) => {
                    next = next.min(until);
                    self.set_state(LeaderState::Standby { leader });
                }
                // Another process was faster: the next attempt shows which. Only a leader can see that the Lease went back.
                Ok(Attempt::WentBack) | Err(LeaseError::Conflict) => {}
                Err(error) => self.set_state(LeaderState::Failed(self.describe(&error))),
            }
            sleep_until(next).await;
        }
    }

    /// Renews the Lease until it is lost. Returns how it was lost.
    async fn hold(&mut self, fence: &Fence, since: Instant) -> String {
        let timing = self.timing;
        let mut until = since + timing.renew_deadline;
        let mut next = since + timing.retry_period;
        // The event is best effort.
        let _ = timeout_at(next, self.announce("became leader")).await;
        loop {
            self.watched.beat();
            sleep_until(next.min(until)).await;
            let now = Instant::now();
            if now >= until {
                return format!("the Lease was not renewed for {:?}", timing.renew_deadline);
            }
            next = now + timing.retry_period;
            match timeout_at(until, self.attempt()).await {
                Ok(Ok(Attempt::Held { since })) => {
                    until = since + timing.renew_deadline;
                    if !fence.extend(until) {
                        return "the Lease was renewed too late".to_owned();
                    }
                }
                Ok(Ok(Attempt::WentBack)) => {
                    return "the Lease is of an earlier version: its cluster was restored from a backup"
                        .to_owned();
                }
                Ok(Ok(Attempt::Other { leader, .. })) => {
                    if leader == self.me.identity {
                        self.me.is_shared = true;
                        return format!(
                            "another process with the identity {leader} holds the Lease"
                        );
                    }
                    return format!("{leader} holds the Lease");
                }
                Ok(Err(error)) => {
                    tracing::warn!(error = self.describe(&error), "failed to renew the Lease");
                }
                Err(_) => {}
            }
        }
    }

    /// Reads the Lease, and creates, takes or renews it if that is due.
    async fn attempt(&mut self) -> Result<Attempt, LeaseError> {
        let held = self.held.clone();
        let leads = held.is_some();
        if let Some(held) = held.clone() {
            match self.write(Step::Renew, Some(held)).await {
                // Another process wrote it, or this one did and the response was lost, or it was deleted: read it.
                Err(LeaseError::Conflict | LeaseError::Call(CallError::Api(_))) => {}
                answer => return answer,
            }
        }
        let found = self.lease.get().await?;
        // Watches of a restored host continue from versions that it no longer knows, and do not show what it restored: the next
        // term reads everything anew.
        if let (Some(held), Some(found)) = (&held, &found)
            && version(found).is_older_than(version(held))
        {
            // Nobody else has led since: this process need not wait to lead again.
            self.latest = version(found);
            self.unrecorded = true;
            return Ok(Attempt::WentBack);
        }
        let now = Instant::now();
        match &found {
            Some(found) if version(found).is_older_than(self.latest) => {
                self.unrecorded = true;
                self.view.observe_restored(record(found), now);
            }
            found => self.view.observe(found.as_ref().map(record), now),
        }
        self.latest = found.as_ref().map_or(self.latest, version);
        match step::step(&self.me, leads, &self.acquired, &self.view, now) {
            Step::Follow { leader, until } => Ok(Attempt::Other { leader, until }),
            step => self.write(step, found).await,
        }
    }

    async fn write(&mut self, step: Step, found: Option<Lease>) -> Result<Attempt, LeaseError> {
        let now = self.clock.machine();
        let before = found.as_ref().map(record);
        let was_unled = (before.as_ref()).is_some_and(|before| step::was_unled(before, now));
        let spec = match (&step, before) {
            (Step::Renew, Some(before)) => step::renewed(&self.me, before, now),
            (_, before) => step::taken(&self.me, before, now),
        };
        if step != Step::Renew {
            self.unrecorded |= was_unled;
            self.acquired.push(Acquisition::of(&spec));
            self.resumed |= step == Step::Resume;
        }
        let since = Instant::now();
        let lease = match found {
            Some(lease) => {
                let spec = Some(spec);
                self.lease.replace(&Lease { spec, ..lease }).await?
            }
            None => self.lease.create(spec).await?,
        };
        self.view.observe(Some(record(&lease)), Instant::now());
        self.latest = version(&lease);
        self.held = Some(lease);
        Ok(Attempt::Held { since })
    }

    /// Releases the Lease, so that a successor need not wait until it expires.
    async fn release(&mut self) {
        let limit = self.timing.retry_period;
        let released = match timeout(limit, self.try_release()).await {
            Ok(released) => released,
            Err(_) => Err(CallError::Deadline(limit).into()),
        };
        self.held = None;
        match released {
            Ok(()) => tracing::info!(identity = self.me.identity, "released the Lease"),
            Err(error) => {
                let error = self.describe(&error);
                tracing::warn!(
                    error,
                    "failed to release the Lease: a successor waits until it expires"
                );
            }
        }
    }

    async fn try_release(&mut self) -> Result<(), LeaseError> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let lease = match self.replace_released(held).await {
            // A renewal was in progress when the work ended.
            Err(LeaseError::Conflict) => match self.lease.get().await? {
                Some(found) if self.is_held(&found) => self.replace_released(found).await?,
                _ => return Ok(()),
            },
            answer => answer?,
        };
        self.held = Some(lease);
        self.announce("stopped leading").await;
        Ok(())
    }

    async fn replace_released(&self, lease: Lease) -> Result<Lease, LeaseError> {
        let spec = step::released(record(&lease), self.clock.machine());
        self.lease
            .replace(&Lease {
                spec: Some(spec),
                ..lease
            })
            .await
    }

    fn is_held(&self, lease: &Lease) -> bool {
        record(lease).holder_identity.as_ref() == Some(&self.me.identity)
    }

    /// An event on the Lease, as other components write it.
    async fn announce(&self, what: &str) {
        let Some(lease) = &self.held else { return };
        let message = format!("{} {what}", self.me.identity);
        if let Err(error) = self
            .lease
            .record(lease, &message, self.clock.machine())
            .await
        {
            tracing::debug!(%error, "failed to write an event");
        }
    }

    /// Publishes the role of this process, and logs it.
    fn set_state(&self, now: LeaderState) {
        let leads = now == LeaderState::Leading;
        self.metrics.leader.set(i64::from(leads));
        self.state.send_if_modified(|before| {
            let changed = *before != now;
            if changed {
                match &now {
                    LeaderState::Unknown => {}
                    LeaderState::Failed(why) => {
                        tracing::warn!(error = why, "failed to read or write the Lease");
                    }
                    LeaderState::Standby { leader } => tracing::info!(leader, "standby"),
                    LeaderState::Leading => {
                        tracing::info!(identity = self.me.identity, "became leader");
                    }
                }
                *before = now;
            }
            changed
        });
    }

    fn describe(&self, error: &LeaseError) -> String {
        format!(
            "Lease {}/{}: {error}",
            self.lease.namespace, self.lease.name
        )
    }
}

fn version(lease: &Lease) -> ResourceVersion {
    let version = lease.metadata.resource_version.as_deref();
    ResourceVersion::parse(version.unwrap_or_default())
}

/// The record of the Lease; a Lease without one has no holder.
fn record(lease: &Lease) -> LeaseSpec {
    lease.spec.clone().unwrap_or_default()
}
