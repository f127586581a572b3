//! Checks every write of the controller to a local ReplicaSet against the committed state of all clusters: does it remove
//! replicas that are needed (F20), or request too many?
//!
//! ```text
//! changes of the host     --> spec of each set, over time ---------------.
//! changes of the members  --> desired and ready replicas, over time -----+--> a write of fedrs: allowed?
//! faults, when injected   --> since when a cluster is unobservable ------'
//! ```
//!
//! The controller sees a state that is some seconds old, and a write takes time to arrive. So a write violates an invariant
//! only if it does so by every state of the last few seconds, or since the cluster was last observable.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{FederatedReplicaSet, ValidFrs, names};
use parking_lot::Mutex;
use serde_json::Value;
use sim_cluster::{Api, ChangeEvent, kinds};
use tokio::time::{Duration, Instant};
use tokio_util::{sync::CancellationToken, sync::DropGuard};

use crate::{SimFederation, changes::next_changes, history::History, ready_pods::ReadyPods};

/// How old the state that a write is based on may be: one call, the deadline of the call before it, and a probe period.
const MAX_STALENESS: Duration = Duration::from_secs(25);
/// Capacity probes in each member, as configured by default (F34).
const CAPACITY_PROBES: u64 = 2;

/// Checks a federation from its start.
pub struct InvariantChecker {
    state: Arc<Mutex<State>>,
    _stop: DropGuard,
}

#[derive(Default)]
struct State {
    /// By name of the set.
    specs: BTreeMap<String, History<Option<ValidFrs>>>,
    /// By name of the set and of the member.
    sets: BTreeMap<(String, String), LocalSet>,
    /// Clusters that are unobservable, or were until recently.
    outages: BTreeMap<String, Outage>,
    violations: Vec<String>,
}

#[derive(Clone, Copy)]
struct Outage {
    since: Instant,
    until: Option<Instant>,
}

/// One local ReplicaSet over time.
struct LocalSet {
    desired: History<u64>,
    ready: History<u64>,
    pods: ReadyPods,
}

impl InvariantChecker {
    /// Checks the sets of these names from now on.
    pub fn start(federation: &SimFederation, names: &[&str]) -> Self {
        let members = federation.member_names();
        let mut state = State::default();
        for name in names {
            state
                .specs
                .insert((*name).to_owned(), History::starting(None));
            for member in &members {
                let pods = ReadyPods::list(federation.member(member).api(), "default", name);
                let set = LocalSet {
                    desired: History::starting(0),
                    ready: History::starting(pods.count()),
                    pods,
                };
                state.sets.insert(((*name).to_owned(), member.clone()), set);
            }
        }
        let state = Arc::new(Mutex::new(state));
        let clusters: Vec<_> = members
            .iter()
            .map(|name| (name.clone(), federation.member(name).api().clone()))
            .chain([(HOST.to_owned(), federation.host().api().clone())])
            .collect();
        let cancel = CancellationToken::new();
        let follow = follow(clusters, Arc::clone(&state));
        tokio::spawn(cancel.clone().run_until_cancelled_owned(follow));
        Self {
            state,
            _stop: cancel.drop_guard(),
        }
    }

    /// Records that a member, or [`HOST`], is unobservable from now on, or observable again.
    pub fn set_unobservable(&self, cluster: &str, outages: bool) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let before = state.outages.get(cluster).copied();
        let since = before
            .filter(|outage| outage.until.is_none_or(|until| until + MAX_STALENESS > now))
            .map_or(now, |outage| outage.since);
        if outages || before.is_some() {
            let until = (!outages).then_some(now);
            state
                .outages
                .insert(cluster.to_owned(), Outage { since, until });
        }
    }

    /// The violations so far.
    pub fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }
}

/// The host's name among the clusters.
pub const HOST: &str = "(host)";

async fn follow(clusters: Vec<(String, Api)>, state: Arc<Mutex<State>>) {
    let mut changes: Vec<_> = clusters.iter().map(|(_, api)| api.changes()).collect();
    loop {
        for (place, event) in next_changes(&mut changes).await {
            let name = &clusters[place].0;
            let mut state = state.lock();
            if name == HOST {
                state.host_changed(&event);
            } else {
                state.member_changed(name, &event);
            }
        }
    }
}

impl State {
    fn host_changed(&mut self, event: &ChangeEvent) {
        let ChangeEvent::Change(change) = event else {
            panic!("the change log is long enough for a run");
        };
        let Some(spec) = self
            .specs
            .get_mut(&change.name)
            .filter(|_| change.kind.plural == "federatedreplicasets")
        else {
            return;
        };
        let object = change.new.as_deref().cloned();
        let frs: Option<FederatedReplicaSet> = object.map(|object| {
            serde_json::from_value(object).expect("the API server validates the object")
        });
        spec.put(frs.and_then(|frs| ValidFrs::check(&frs).ok()));
    }

    fn member_changed(&mut self, member: &str, event: &ChangeEvent) {
        let names: Vec<_> = self.specs.keys().cloned().collect();
        for name in &names {
            let key = (name.clone(), member.to_owned());
            let set = self.sets.get_mut(&key).expect("all are there");
            set.pods.apply(event);
            let ready = set.pods.count();
            set.ready.put(ready);
        }
        let ChangeEvent::Change(change) = event else {
            panic!("the change log is long enough for a run");
        };
        if change.kind != *kinds::REPLICA_SETS || !names.contains(&change.name) {
            return;
        }
        let desired = |set: Option<&Value>| {
            set.map_or(0, |set| set["spec"]["replicas"].as_u64().unwrap_or(0))
        };
        let (before, now) = (
            desired(change.old.as_deref()),
            desired(change.new.as_deref()),
        );
        let is_by_fedrs = change.new.as_deref().is_some_and(is_written_by_fedrs);
        let violation = match is_by_fedrs {
            true if now < before => self.check_scale_down(&change.name, member, before, now),
            true if now > before => self.check_scale_up(&change.name, member, now),
            _ => None,
        };
        self.violations.extend(violation);
        let key = (change.name.clone(), member.to_owned());
        self.sets
            .get_mut(&key)
            .expect("all are there")
            .desired
            .put(now);
    }

    /// The time since which the state of a cluster may still be believed to be current.
    fn oldest_belief(&self, cluster: &str) -> Instant {
        let recent = Instant::now() - MAX_STALENESS;
        match self.outages.get(cluster) {
            Some(outages) if outages.until.is_none_or(|until| until > recent) => {
                outages.since.min(recent) - MAX_STALENESS
            }
            _ => recent,
        }
    }

    fn is_observable(&self, cluster: &str) -> bool {
        self.oldest_belief(cluster) + MAX_STALENESS >= Instant::now()
    }

    fn sets_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a LocalSet)> {
        let sets = self.sets.iter().filter(move |((set, _), _)| set == name);
        sets.map(|((_, member), set)| (member.as_str(), set))
    }

    /// The specs that the controller may act on.
    fn specs(&self, name: &str) -> impl Iterator<Item = &ValidFrs> {
        let since = self.oldest_belief(HOST);
        self.specs[name].since(since).flatten()
    }

    /// F20: at least N replicas remain, or as many as there were.
    fn check_scale_down(&self, name: &str, member: &str, before: u64, now: u64) -> Option<String> {
        let needed = self.specs(name).map(|frs| self.needed(name, frs)).min()?;
        let of_member = &self.sets[&(name.to_owned(), member.to_owned())].ready;
        let in_others: u64 = self
            .sets_of(name)
            .filter(|(other, _)| *other != member)
            .map(|(other, set)| {
                let ready = set.ready.since(self.oldest_belief(other)).copied().max();
                ready.unwrap_or(0).min(*set.desired.now())
            })
            .sum();
        let fewer = of_member.since(self.oldest_belief(member)).map(|&ready| {
            let (was, left) = (in_others + ready.min(before), in_others + ready.min(now));
            (left < needed.min(was)).then(|| {
                format!("{name} in {member} scaled from {before} to {now}: {was} replicas were ready, {left} are left, {needed} are needed")
            })
        });
        // The write is allowed if it is right by one of the possible states.
        fewer.collect::<Option<Vec<_>>>()?.pop()
    }

    /// N, or fewer if the placement allows fewer.
    fn needed(&self, name: &str, frs: &ValidFrs) -> u64 {
        let wanted = u64::from(frs.replicas);
        let allowed = self.sets_of(name).map(|(member, _)| {
            let Some(preference) = frs.placement.for_cluster(member) else {
                return 0;
            };
            let max = preference.max_replicas.map_or(wanted, i64::unsigned_abs);
            if preference.weight == 0 {
                max.min(preference.min_replicas.unsigned_abs())
            } else {
                max
            }
        });
        wanted.min(allowed.sum())
    }

    /// Growth requests at most N, the surge and the capacity probes.
    fn check_scale_up(&self, name: &str, member: &str, now: u64) -> Option<String> {
        let wanted = self.specs(name).map(|frs| u64::from(frs.replicas)).max()?;
        let observable = self
            .sets_of(name)
            .filter(|(other, _)| self.is_observable(other));
        let desired: u64 = observable
            .map(|(other, set)| {
                let lowest = set.desired.since(self.oldest_belief(other)).min();
                if other == member {
                    now
                } else {
                    lowest.copied().unwrap_or(0)
                }
            })
            .sum();
        let members = self.sets_of(name).count() as u64;
        let allowed = wanted + (wanted / 4).max(1) + CAPACITY_PROBES * members;
        (desired > allowed).then(|| {
            format!("{name} in {member} scaled to {now}: {desired} replicas are desired in all clusters, {wanted} requested, {allowed} allowed")
        })
    }
}

/// Whether fedrs wrote the replicas of a local ReplicaSet last.
fn is_written_by_fedrs(set: &Value) -> bool {
    let managers = set["metadata"]["managedFields"].as_array();
    managers.into_iter().flatten().any(|manager| {
        manager["manager"] == names::FIELD_MANAGER
            && manager.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}
