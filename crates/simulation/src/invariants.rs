//! Checks every write of the controller to the replicas of a local ReplicaSet, in a federation that a test controls itself.
//!
//! ```text
//! changes of all clusters, faults that the test injects --> Observed --a write of fedrs--> checks: Violation?
//! ```

use std::sync::Arc;

use parking_lot::Mutex;
use sim_cluster::{Api, Change, ChangeEvent};
use tokio_util::{sync::CancellationToken, sync::DropGuard};

use crate::{
    SimFederation,
    changes::next_changes,
    checks::{self, Observed, OutageKind, Violation, is_written_by_fedrs},
    sim_federation::HOST,
};

/// Checks a federation from its start.
pub struct InvariantChecker {
    state: Arc<Mutex<State>>,
    _stop: DropGuard,
}

struct State {
    observed: Observed,
    violations: Vec<String>,
}

impl InvariantChecker {
    /// Checks the sets of these names from now on; they do not exist yet.
    pub fn start(federation: &SimFederation, names: &[&str]) -> Self {
        let members = federation.member_names();
        let members: Vec<_> = members.iter().map(String::as_str).collect();
        let sets: Vec<_> = (names.iter())
            .map(|&name| (name, federation.kind_of(name)))
            .collect();
        let state = Arc::new(Mutex::new(State {
            observed: Observed::new(federation.config(), &sets, &members),
            violations: Vec::new(),
        }));
        let clusters = members.iter().chain([&HOST]);
        let clusters =
            clusters.map(|name| ((*name).to_owned(), federation.cluster(name).api().clone()));
        let cancel = CancellationToken::new();
        let follow = follow(clusters.collect(), Arc::clone(&state));
        tokio::spawn(cancel.clone().run_until_cancelled_owned(follow));
        Self {
            state,
            _stop: cancel.drop_guard(),
        }
    }

    /// Records that a member, or [`HOST`], is unreachable from now on, or reachable again.
    pub fn set_unreachable(&self, cluster: &str, on: bool) {
        let fault = ("fault", OutageKind::Connection);
        let mut state = self.state.lock();
        state.observed.set_unobservable(cluster, fault, on);
    }

    /// The violations so far.
    pub fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }
}

async fn follow(clusters: Vec<(String, Api)>, state: Arc<Mutex<State>>) {
    let mut changes: Vec<_> = clusters.iter().map(|(_, api)| api.changes()).collect();
    loop {
        for (place, event) in next_changes(&mut changes).await {
            let ChangeEvent::Change(change) = event else {
                panic!("the change log is long enough for a run");
            };
            state.lock().changed(&clusters[place].0, &change);
        }
    }
}

impl State {
    fn changed(&mut self, cluster: &str, change: &Change) {
        if cluster == HOST {
            self.put(checks::of_record(&self.observed, change));
            self.observed.host_changed(change);
            return;
        }
        if change.new.as_deref().is_some_and(is_written_by_fedrs) {
            self.put(checks::of_replicas(&self.observed, cluster, change));
            self.put(checks::of_template(&self.observed, cluster, change));
        }
        self.observed.member_changed(cluster, change);
    }

    fn put(&mut self, violation: Option<Violation>) {
        self.violations
            .extend(violation.map(|violation| violation.text));
    }
}
