//! Judges every write of the controller to a local set, from all that the clusters commit: did it take away what was
//! needed (F20), did it ask for too much?
//!
//! ```text
//! changes of the host     --> what each set asks for, over time ----.
//! changes of the members  --> replicas asked for and ready, over time --+--> a write of fedrs: allowed?
//! faults, as they are set --> since when a cluster can't be seen ------'
//! ```
//!
//! The controller can't know more than what it was told, and a write takes time to arrive. So a write is wrong if it is by
//! the best that could be believed of the last few seconds, or since a cluster could last be seen.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{FederatedReplicaSet, ValidFrs, names};
use parking_lot::Mutex;
use serde_json::Value;
use sim_cluster::{Api, ChangeEvent, kinds};
use tokio::time::{Duration, Instant};
use tokio_util::{sync::CancellationToken, sync::DropGuard};

use crate::{Fleet, changes::next_changes, history::History, watcher::CommittedPods};

/// How old what a write is based on may be: the time of a call, the deadline of one before it, and a probe's period.
const LAG: Duration = Duration::from_secs(25);
/// Probes in each member, as configured by default (F34).
const PROBES: u64 = 2;

/// Watches a fleet from its start.
pub struct Judge {
    state: Arc<Mutex<State>>,
    _stop: DropGuard,
}

#[derive(Default)]
struct State {
    /// By name of the set.
    wishes: BTreeMap<String, History<Option<ValidFrs>>>,
    /// By name of the set and of the member.
    sets: BTreeMap<(String, String), LocalSet>,
    /// Since when a cluster can't be seen, or until when it couldn't.
    blind: BTreeMap<String, Blind>,
    complaints: Vec<String>,
}

#[derive(Clone, Copy)]
struct Blind {
    since: Instant,
    until: Option<Instant>,
}

/// One local set over time.
struct LocalSet {
    asked: History<u64>,
    ready: History<u64>,
    pods: CommittedPods,
}

impl Judge {
    /// Judges from now on the sets of these names.
    pub fn start(fleet: &Fleet, names: &[&str]) -> Self {
        let members = fleet.member_names();
        let mut state = State::default();
        for name in names {
            state
                .wishes
                .insert((*name).to_owned(), History::starting(None));
            for member in &members {
                let pods = CommittedPods::list(fleet.member(member).api(), "default", name);
                let set = LocalSet {
                    asked: History::starting(0),
                    ready: History::starting(pods.count()),
                    pods,
                };
                state.sets.insert(((*name).to_owned(), member.clone()), set);
            }
        }
        let state = Arc::new(Mutex::new(state));
        let clusters: Vec<_> = members
            .iter()
            .map(|it| (it.clone(), fleet.member(it).api().clone()))
            .chain([(HOST.to_owned(), fleet.host().api().clone())])
            .collect();
        let cancel = CancellationToken::new();
        let follow = follow(clusters, Arc::clone(&state));
        tokio::spawn(cancel.clone().run_until_cancelled_owned(follow));
        Self {
            state,
            _stop: cancel.drop_guard(),
        }
    }

    /// A member, or [`HOST`], can't be seen any more, or can be again.
    pub fn put_blind(&self, cluster: &str, blind: bool) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let before = state.blind.get(cluster).copied();
        let since = before
            .filter(|it| it.until.is_none_or(|until| until + LAG > now))
            .map_or(now, |it| it.since);
        if blind || before.is_some() {
            let until = (!blind).then_some(now);
            state
                .blind
                .insert(cluster.to_owned(), Blind { since, until });
        }
    }

    /// What was wrong so far.
    pub fn complaints(&self) -> Vec<String> {
        self.state.lock().complaints.clone()
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
            panic!("the log is long enough for a story");
        };
        let Some(wish) = self
            .wishes
            .get_mut(&change.name)
            .filter(|_| change.kind.plural == "federatedreplicasets")
        else {
            return;
        };
        let object = change.new.as_deref().cloned();
        let frs: Option<FederatedReplicaSet> =
            object.map(|it| serde_json::from_value(it).expect("the CRD is ours"));
        wish.put(frs.and_then(|frs| ValidFrs::check(&frs).ok()));
    }

    fn member_changed(&mut self, member: &str, event: &ChangeEvent) {
        let names: Vec<_> = self.wishes.keys().cloned().collect();
        for name in &names {
            let key = (name.clone(), member.to_owned());
            let set = self.sets.get_mut(&key).expect("all are there");
            set.pods.take(event);
            let ready = set.pods.count();
            set.ready.put(ready);
        }
        let ChangeEvent::Change(change) = event else {
            panic!("the log is long enough for a story");
        };
        if change.kind != *kinds::REPLICA_SETS || !names.contains(&change.name) {
            return;
        }
        let asked =
            |set: Option<&Value>| set.map_or(0, |it| it["spec"]["replicas"].as_u64().unwrap_or(0));
        let (before, now) = (asked(change.old.as_deref()), asked(change.new.as_deref()));
        let is_ours = change.new.as_deref().is_some_and(is_written_by_us);
        let complaint = match is_ours {
            true if now < before => self.lowered(&change.name, member, before, now),
            true if now > before => self.raised(&change.name, member, now),
            _ => None,
        };
        self.complaints.extend(complaint);
        let key = (change.name.clone(), member.to_owned());
        self.sets
            .get_mut(&key)
            .expect("all are there")
            .asked
            .put(now);
    }

    /// From when on what a cluster held may still be believed to hold.
    fn horizon(&self, cluster: &str) -> Instant {
        let recent = Instant::now() - LAG;
        match self.blind.get(cluster) {
            Some(blind) if blind.until.is_none_or(|until| until > recent) => {
                blind.since.min(recent) - LAG
            }
            _ => recent,
        }
    }

    fn is_seen(&self, cluster: &str) -> bool {
        self.horizon(cluster) + LAG >= Instant::now()
    }

    fn sets_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a LocalSet)> {
        let sets = self.sets.iter().filter(move |((set, _), _)| set == name);
        sets.map(|((_, member), set)| (member.as_str(), set))
    }

    /// What the user may have asked for, as the controller knows it.
    fn wishes(&self, name: &str) -> impl Iterator<Item = &ValidFrs> {
        let since = self.horizon(HOST);
        self.wishes[name].since(since).flatten()
    }

    /// F20: what is left must be N, or what there was.
    fn lowered(&self, name: &str, member: &str, before: u64, now: u64) -> Option<String> {
        let needed = self.wishes(name).map(|frs| self.needed(name, frs)).min()?;
        let of_member = &self.sets[&(name.to_owned(), member.to_owned())].ready;
        let in_others: u64 = self
            .sets_of(name)
            .filter(|(it, _)| *it != member)
            .map(|(it, set)| {
                let ready = set.ready.since(self.horizon(it)).copied().max();
                ready.unwrap_or(0).min(*set.asked.now())
            })
            .sum();
        let fewer = of_member.since(self.horizon(member)).map(|&ready| {
            let (was, left) = (in_others + ready.min(before), in_others + ready.min(now));
            (left < needed.min(was)).then(|| {
                format!("{name} in {member} from {before} to {now}: {was} ran, {left} are left, {needed} are needed")
            })
        });
        // By one of the views that there may have been it was right.
        fewer.collect::<Option<Vec<_>>>()?.pop()
    }

    /// N, or what the preferences allow of it.
    fn needed(&self, name: &str, frs: &ValidFrs) -> u64 {
        let wanted = u64::from(frs.replicas);
        let allowed = self.sets_of(name).map(|(member, _)| {
            let Some(it) = frs.placement.for_cluster(member) else {
                return 0;
            };
            let max = it.max_replicas.map_or(wanted, i64::unsigned_abs);
            if it.weight == 0 {
                max.min(it.min_replicas.unsigned_abs())
            } else {
                max
            }
        });
        wanted.min(allowed.sum())
    }

    /// Growth asks for N, the surge and the probes, and for no more.
    fn raised(&self, name: &str, member: &str, now: u64) -> Option<String> {
        let wanted = self.wishes(name).map(|frs| u64::from(frs.replicas)).max()?;
        let seen = self.sets_of(name).filter(|(it, _)| self.is_seen(it));
        let asked: u64 = seen
            .map(|(it, set)| {
                let lowest = set.asked.since(self.horizon(it)).min();
                if it == member {
                    now
                } else {
                    lowest.copied().unwrap_or(0)
                }
            })
            .sum();
        let members = self.sets_of(name).count() as u64;
        let allowed = wanted + (wanted / 4).max(1) + PROBES * members;
        (asked > allowed).then(|| {
            format!("{name} in {member} to {now}: {asked} are asked for, {wanted} wanted, {allowed} allowed")
        })
    }
}

/// Whether the replicas of a local set are as fedrs wrote them.
fn is_written_by_us(set: &Value) -> bool {
    let managers = set["metadata"]["managedFields"].as_array();
    managers.into_iter().flatten().any(|it| {
        it["manager"] == names::FIELD_MANAGER && it.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}
