//! A process that takes part in the election on a fleet's host, as `fedrs controller` does.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use federation_controller::{
    Controller,
    clock::Clock,
    config::{Config, LeaderElectionConfig},
    election::{Elector, LeaderElectorConfig, LeaderState, Term},
    members::{MemberEvent, MemberSecrets},
    metrics::{ElectionMetrics, Metrics},
};
use fedrs_api::names;
use fedrs_tests::{Fleet, Life, linked};
use kube::Client;
use parking_lot::Mutex;
use tokio::{sync::mpsc, sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// Where the Lease is.
pub(crate) const NAMESPACE: &str = names::SYSTEM_NAMESPACE;
/// Its name.
pub(crate) const LEASE: &str = names::CONTROLLER;

/// One process.
pub(crate) struct Contender {
    /// Its link to the host.
    pub(crate) host: Life,
    /// Its links to the members.
    pub(crate) members: Life,
    /// Where it counts.
    pub(crate) metrics: ElectionMetrics,
    identity: String,
    state: watch::Receiver<LeaderState>,
    ice: Ice,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

/// The durations of every election here: the defaults.
pub(crate) fn timing() -> LeaderElectionConfig {
    LeaderElectionConfig::default()
}

impl Contender {
    /// Starts one whose identity is `identity`.
    pub(crate) fn start(fleet: &Fleet, identity: &str) -> Self {
        let (host, members) = (Life::default(), Life::default());
        let metrics = ElectionMetrics::default();
        let clock = fleet_clock(fleet);
        let host_client = linked(fleet.host(), &host);
        let elector = Elector::new(LeaderElectorConfig {
            host: host_client.clone(),
            namespace: NAMESPACE.to_owned(),
            lease: LEASE.to_owned(),
            identity: identity.to_owned(),
            timing: timing(),
            clock: clock.clone(),
            seed: identity.len() as u64,
            metrics: metrics.clone(),
        });
        let state = elector.state();
        let clients: Vec<_> = fleet
            .member_names()
            .into_iter()
            .map(|name| {
                let client = linked(fleet.member(&name), &members);
                (name, client)
            })
            .collect();
        let lead =
            move |term: Term| work(term, host_client.clone(), clients.clone(), clock.clone());
        let cancel = CancellationToken::new();
        let ice = Ice::default();
        let task = tokio::spawn(ice.clone().around(elector.run(cancel.clone(), lead)));
        Self {
            host,
            members,
            metrics,
            identity: identity.to_owned(),
            state,
            ice,
            cancel,
            task,
        }
    }

    /// Waits until it leads, at most a minute; answers how long that took.
    pub(crate) async fn leads(&mut self) -> Duration {
        self.stands(|standing| *standing == LeaderState::Leading)
            .await
    }

    /// Waits until it follows `leader`.
    pub(crate) async fn follows(&mut self, leader: &Self) {
        let leader = leader.identity.clone();
        self.stands(|standing| {
            *standing
                == LeaderState::Standby {
                    leader: leader.clone(),
                }
        })
        .await;
    }

    /// Waits until it stands so, at most a minute; answers how long that took.
    pub(crate) async fn stands(&mut self, so: impl FnMut(&LeaderState) -> bool) -> Duration {
        let started = Instant::now();
        let waited = tokio::time::timeout(Duration::from_secs(60), self.state.wait_for(so));
        let found = waited.await.map(|it| it.map(drop));
        let now = self.state.borrow();
        assert!(
            matches!(found, Ok(Ok(()))),
            "{} is {now:?} after a minute",
            self.identity
        );
        started.elapsed()
    }

    /// Where it stands now.
    pub(crate) fn standing(&self) -> LeaderState {
        self.state.borrow().clone()
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.task.await.expect("it does not panic");
    }

    /// Kills it: nothing that it sends arrives any more.
    pub(crate) async fn crash(self) {
        self.host.end();
        self.members.end();
        self.stop().await;
    }

    /// From now on its election is not run, while its controller goes on: SIGSTOP stops both, so the fence has to
    /// hold without it.
    pub(crate) fn freeze(&self) {
        self.ice.0.lock().frozen = true;
    }

    /// Its election goes on.
    pub(crate) fn thaw(&self) {
        let mut water = self.ice.0.lock();
        water.frozen = false;
        if let Some(waker) = water.waker.take() {
            waker.wake();
        }
    }
}

async fn work(term: Term, host: Client, clients: Vec<(String, Client)>, clock: Clock) {
    let (events, members) = mpsc::channel(clients.len() + 1);
    for (name, client) in clients {
        events
            .send(MemberEvent::Present { name, client })
            .await
            .expect("there is room for all");
    }
    events
        .send(MemberEvent::Complete)
        .await
        .expect("there is room for all");
    let controller = Controller {
        secrets: MemberSecrets::default(),
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

fn fleet_clock(fleet: &Fleet) -> Clock {
    let (epoch, started) = (fleet.now(), Instant::now());
    Clock::new(move || epoch + started.elapsed())
}

/// Keeps a future from being polled.
#[derive(Clone, Default)]
struct Ice(Arc<Mutex<Water>>);

#[derive(Default)]
struct Water {
    frozen: bool,
    waker: Option<Waker>,
}

impl Ice {
    async fn around(self, inner: impl Future<Output = ()>) {
        let mut inner = std::pin::pin!(inner);
        poll_fn(|context| {
            let mut water = self.0.lock();
            if water.frozen {
                water.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            drop(water);
            inner.as_mut().poll(context)
        })
        .await;
    }
}
