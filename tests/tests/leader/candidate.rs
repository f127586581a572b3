//! A process that takes part in the election on the host of an environment, as `fedrs controller` does.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use federation_controller::{
    Controller,
    clock::Clock,
    config::Config,
    election::{
        ElectionMetrics, Elector, LeaderElectionConfig, LeaderElectorConfig, LeaderState, Term,
    },
    members::{MemberEvent, MemberSecrets},
    metrics::Metrics,
    watchdog::Watchdog,
};
use fedrs_api::names;
use fedrs_tests::{
    AdministratorClients, Lifetime, SimFederation, Suspension, client_until_crash, member_file,
};
use kube::Client;
use tokio::{sync::mpsc, sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// The namespace of the Lease.
pub(crate) const NAMESPACE: &str = names::SYSTEM_NAMESPACE;
/// Its name.
pub(crate) const LEASE: &str = names::CONTROLLER;

/// One process.
pub(crate) struct Candidate {
    /// The lifetime of its clients of the host.
    pub(crate) host: Lifetime,
    /// The lifetime of its clients of the members.
    pub(crate) members: Lifetime,
    /// Its metrics.
    pub(crate) metrics: ElectionMetrics,
    identity: String,
    state: watch::Receiver<LeaderState>,
    suspension: Suspension,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

/// The durations of every election: the defaults.
pub(crate) fn timing() -> LeaderElectionConfig {
    LeaderElectionConfig::default()
}

impl Candidate {
    /// Starts a candidate with this identity.
    pub(crate) fn start(federation: &SimFederation, identity: &str) -> Self {
        let (host, members) = (Lifetime::default(), Lifetime::default());
        let metrics = ElectionMetrics::default();
        let clock = federation_clock(federation);
        let host_client = client_until_crash(federation.host(), &host);
        let elector = Elector::new(LeaderElectorConfig {
            host: host_client.clone(),
            namespace: NAMESPACE.to_owned(),
            lease: LEASE.to_owned(),
            component: federation_controller::COMPONENT,
            identity: identity.to_owned(),
            timing: timing(),
            clock: clock.clone(),
            seed: identity.len() as u64,
            metrics: metrics.clone(),
            watchdog: Watchdog::default(),
        });
        let state = elector.state();
        let clients: BTreeMap<_, _> = federation
            .member_names()
            .into_iter()
            .map(|name| {
                let client = client_until_crash(federation.member(&name), &members);
                (name, client)
            })
            .collect();
        let lead =
            move |term: Term| work(term, host_client.clone(), clients.clone(), clock.clone());
        let cancel = CancellationToken::new();
        let suspension = Suspension::default();
        let task = tokio::spawn(suspension.clone().around(elector.run(cancel.clone(), lead)));
        Self {
            host,
            members,
            metrics,
            identity: identity.to_owned(),
            state,
            suspension,
            cancel,
            task,
        }
    }

    /// Waits until the candidate is the leader, at most a minute. Returns how long that took.
    pub(crate) async fn leads(&mut self) -> Duration {
        self.wait_for(|state| *state == LeaderState::Leading).await
    }

    /// Waits until the candidate is a standby of `leader`.
    pub(crate) async fn follows(&mut self, leader: &Self) {
        let leader = leader.identity.clone();
        self.wait_for(|state| {
            *state
                == LeaderState::Standby {
                    leader: leader.clone(),
                }
        })
        .await;
    }

    /// Waits until the candidate's state is `wanted`, at most a minute. Returns how long that took.
    pub(crate) async fn wait_for(&mut self, wanted: impl FnMut(&LeaderState) -> bool) -> Duration {
        let started = Instant::now();
        let waited = tokio::time::timeout(Duration::from_secs(60), self.state.wait_for(wanted));
        let found = waited.await.map(|found| found.map(drop));
        let now = self.state.borrow();
        assert!(
            matches!(found, Ok(Ok(()))),
            "{} is {now:?} after a minute",
            self.identity
        );
        started.elapsed()
    }

    /// The current state.
    pub(crate) fn state(&self) -> LeaderState {
        self.state.borrow().clone()
    }

    /// Shuts the candidate down gracefully.
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.task.await.expect("the task does not panic");
    }

    /// Kills the candidate: it sends no more requests.
    pub(crate) async fn crash(self) {
        self.host.end();
        self.members.end();
        self.stop().await;
    }

    /// Suspends the election while the controller continues to run: SIGSTOP would suspend both, but the fence must work
    /// without the election.
    pub(crate) fn suspend(&self) {
        self.suspension.suspend();
    }

    /// Resumes the election.
    pub(crate) fn resume(&self) {
        self.suspension.resume();
    }
}

async fn work(term: Term, host: Client, clients: BTreeMap<String, Client>, clock: Clock) {
    let (events, members) = mpsc::channel(clients.len() + 1);
    for name in clients.keys() {
        let event = member_file(name, name);
        events.send(event).await.expect("there is room for all");
    }
    events
        .send(MemberEvent::Complete)
        .await
        .expect("there is room for all");
    let controller = Controller {
        secrets: MemberSecrets {
            namespace: NAMESPACE.to_owned(),
            connect: Arc::new(AdministratorClients(clients)),
        },
        host,
        members,
        config: Config::default(),
        clock,
        seed: 1,
        metrics: Metrics::default().into(),
        fence: term.fence,
    };
    if let Some(running) = controller.start(term.end).await {
        running.joined().await;
    }
}

fn federation_clock(federation: &SimFederation) -> Clock {
    let (epoch, started) = (federation.now(), Instant::now());
    Clock::new(move || epoch + started.elapsed())
}
