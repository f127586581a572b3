//! A small world for checks: every write succeeds, and each cluster runs replicas up to its capacity. The benchmark uses it,
//! too.

use std::time::Duration;

use cluster_informer::{Health, PodCounts, SyncState, WorkloadState, WorkloadView};
use federation_controller::{
    check::{
        Action, Check, DesiredHashes, Member, NamespaceState, Outage, Outcome, Outcomes, SetChange,
        Snapshot, check, refresh_status, with_outcomes,
    },
    config::Config,
};
use fedrs_api::{FederatedReplicaSetStatus, ValidFrs, WorkloadKey};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

pub(crate) const DESIRED: DesiredHashes = DesiredHashes {
    spec: 0xabc,
    settings: None,
};
pub(crate) const LIVE: u64 = 0xdef;
pub(crate) const TEMPLATE: u32 = 0x7e;
const GRACE: Duration = Duration::from_secs(60);

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub(crate) fn frs(replicas: i32, placement: Value) -> ValidFrs {
    frs_with(json!({ "replicas": replicas, "placement": placement }))
}

pub(crate) fn frs_with(extra: Value) -> ValidFrs {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "uid": "u-1", "generation": 1 },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    });
    for (field, value) in extra.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    ValidFrs::check(&serde_json::from_value(object).unwrap()).unwrap()
}

pub(crate) fn even(rebalance: bool) -> Value {
    json!({ "rebalance": rebalance, "clusters": { "*": { "weight": 1 } } })
}

/// A member that runs all of its `replicas`, or has no set if there are none.
pub(crate) fn running(name: &str, replicas: u32) -> Member {
    let mut member = Member {
        name: name.to_owned(),
        schedulable: true,
        draining: false,
        namespace: NamespaceState::Taken,
        outage: Outage::None,
        stabilizes_at: None,
        no_ready_nodes: false,
        joined: at(-3600),
        awaited: true,
        removed: None,
        invalid_kubeconfig: None,
        health: Health::Healthy,
        sync: SyncState::Synced,
        unlisted: None,
        lacks_kind: false,
        write_pending: false,
        view: WorkloadView::default(),
    };
    if replicas > 0 {
        hold(&mut member, replicas, replicas);
    }
    member
}

/// What the outage of `member` means with a grace period of a minute while another member answers.
fn outage(member: &Member, now: i64) -> Outage {
    let unreachable = match member.health {
        Health::Unreachable { since, .. } => Some(since),
        _ => None,
    };
    match unreachable.into_iter().chain(member.removed).min() {
        None => Outage::None,
        Some(since) if since + GRACE <= at(now) => Outage::Lost { since },
        Some(since) => Outage::Until(since + GRACE),
    }
}

/// Gives `member` a set of `replicas`, of which `ready` are ready.
pub(crate) fn hold(member: &mut Member, replicas: u32, ready: u32) {
    member.view.workload = Some(WorkloadState {
        key: WorkloadKey::new("default", "web"),
        uid: format!("2a9f1a4e-7d2c-4b1e-9d0a-{}", member.name),
        resource_version: "1234567".into(),
        generation: 3,
        observed_generation: 3,
        replicas,
        status_replicas: replicas,
        ready_replicas: ready,
        available_replicas: ready,
        fully_labeled_replicas: replicas,
        replica_failure: None,
        spec_hash: LIVE,
        lowest_replicas: replicas,
        open_scale_up: None,
        federation: "f".into(),
        member_cluster: (*member.name).into(),
        deletion: None,
        behind_since: None,
        has_owners: false,
        has_controller: false,
        deployment: None,
        owned_by: None,
    });
    member.view.pods = PodCounts {
        active: replicas,
        ready,
        by_template: vec![(TEMPLATE, replicas)],
        ..PodCounts::default()
    };
}

/// A FederatedReplicaSet and its members: every write succeeds, and each cluster runs replicas up to its capacity.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) frs: ValidFrs,
    pub(crate) members: Vec<Member>,
    /// The capacity of each member; unlimited if absent.
    pub(crate) capacity: std::collections::BTreeMap<String, u32>,
    pub(crate) previous: FederatedReplicaSetStatus,
    pub(crate) settings: Config,
    pub(crate) now: i64,
    /// Until when no replica that runs is removed.
    pub(crate) keeps_running_until: Option<i64>,
}

impl World {
    pub(crate) fn new(frs: ValidFrs, names: &[&str]) -> Self {
        Self {
            frs,
            members: names.iter().map(|name| running(name, 0)).collect(),
            capacity: std::collections::BTreeMap::new(),
            previous: FederatedReplicaSetStatus::default(),
            settings: Config::default(),
            now: 0,
            keeps_running_until: None,
        }
    }

    /// `replicas` over three members, which run their desired replicas.
    pub(crate) fn settled(replicas: i32) -> Self {
        let mut world = Self::new(frs(replicas, even(true)), &["a", "b", "c"]);
        world.settle(1);
        world.step();
        world
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            frs: &self.frs,
            desired: DESIRED,
            template_hash: TEMPLATE,
            rollout: None,
            previous: &self.previous,
            members: &self.members,
            overlapping: &[],
            keeps_running_until: self
                .keeps_running_until
                .filter(|time| self.now < *time)
                .map(at),
            settings: &self.settings,
        }
    }

    pub(crate) fn check(&self) -> Check {
        check(&self.observed().snapshot(), at(self.now))
    }

    /// The world as the reconciler shows it to a check: with the outages, the settings of the set, and watches that work
    /// unless a test says otherwise.
    fn observed(&self) -> Self {
        let mut world = self.clone();
        world.settings = self.settings.of_set(&self.frs.rescheduling).into_owned();
        for member in &mut world.members {
            member.outage = outage(member, self.now);
            member.view.current_at.get_or_insert(at(self.now));
        }
        world
    }

    /// Checks, and carries out the actions: pods beyond the capacity are unscheduled from then on, the others run at once.
    pub(crate) fn step(&mut self) -> Check {
        self.step_unless(|_| None)
    }

    /// Like `step`, but an action for which `rejected` returns an outcome is not carried out.
    pub(crate) fn step_unless(&mut self, rejected: impl Fn(&Action) -> Option<Outcome>) -> Check {
        let decided = self.check();
        let mut outcomes = Outcomes::new();
        for action in &decided.actions {
            let (name, change) = (&action.member, &action.change);
            if let Some(outcome) = rejected(action) {
                outcomes.insert(name.clone(), outcome);
                continue;
            }
            let member = self
                .members
                .iter_mut()
                .find(|member| member.name == *name)
                .unwrap();
            let replicas = match change {
                SetChange::Create { replicas, .. } | SetChange::Overwrite { replicas, .. } => {
                    *replicas
                }
                SetChange::Scale { to, .. } => *to,
                SetChange::DrainPods { seen, pods, since } => {
                    member.view.pods.draining = *pods;
                    member.view.pods.draining_since = (*pods > 0).then_some(*since);
                    let spec_version = seen.spec_version;
                    outcomes.insert(name.clone(), Outcome::PodsDraining { spec_version });
                    continue;
                }
                SetChange::LabelPods { .. } | SetChange::Rollout { .. } => {
                    panic!("a world without adopted pods and Deployments")
                }
            };
            let capacity = self.capacity.get(name).copied().unwrap_or(u32::MAX);
            run(member, replicas, capacity, self.now);
            let set = member.view.workload.clone().unwrap();
            let outcome = if matches!(change, SetChange::Scale { .. }) {
                Outcome::Scaled { set, by: None }
            } else {
                Outcome::Written(set)
            };
            outcomes.insert(name.clone(), outcome);
        }
        self.remember(&decided, &outcomes);
        if decided.actions.is_empty() {
            self.observe();
        }
        decided
    }

    /// A status refresh reports the same as the check before (F22).
    fn observe(&self) {
        let refreshed = refresh_status(&self.observed().snapshot(), at(self.now));
        assert_eq!(refreshed.status, self.previous);
    }

    /// Makes the decided status, with the outcomes, the next check's previous status.
    pub(crate) fn remember(&mut self, decided: &Check, outcomes: &Outcomes) {
        let (status, now) = (decided.status.clone(), at(self.now));
        self.previous = with_outcomes(status, outcomes, DESIRED, now, &self.settings);
    }

    /// Steps, `seconds` apart, until a step changes nothing.
    pub(crate) fn settle(&mut self, seconds: i64) {
        for _ in 0..200 {
            if self.step().actions.is_empty() {
                return;
            }
            self.now += seconds;
        }
        panic!("no end: {:#?}", self.previous.clusters);
    }

    pub(crate) fn placed(&self) -> Vec<u32> {
        self.members
            .iter()
            .map(|member| member.view.workload.as_ref().map_or(0, |set| set.replicas))
            .collect()
    }

    pub(crate) fn ready(&self) -> u32 {
        self.members
            .iter()
            .map(|member| {
                member
                    .view
                    .workload
                    .as_ref()
                    .map_or(0, |set| set.ready_replicas)
            })
            .sum()
    }

    pub(crate) fn set_capacity(&mut self, name: &str, capacity: u32) {
        self.capacity.insert(name.to_owned(), capacity);
        let member = self
            .members
            .iter_mut()
            .find(|member| member.name == name)
            .unwrap();
        let Some(replicas) = member.view.workload.as_ref().map(|set| set.replicas) else {
            return;
        };
        run(member, replicas, capacity, self.now);
    }
}

/// Gives `member` a set of `replicas`, of which those beyond `capacity` wait: since `now`, or for as long as others did.
fn run(member: &mut Member, replicas: u32, capacity: u32, now: i64) {
    let waiting = &member.view.pods.unscheduled_since;
    let since = waiting.first().map_or(at(now), |(since, _)| *since);
    let ready = replicas.min(capacity);
    hold(member, replicas, ready);
    if replicas > ready {
        member.view.pods.unscheduled = replicas - ready;
        member.view.pods.unscheduled_since = vec![(since, replicas - ready)];
    }
}

pub(crate) fn desired(check: &Check) -> Vec<i32> {
    check
        .status
        .clusters
        .iter()
        .map(|cluster| cluster.desired_replicas)
        .collect()
}

pub(crate) fn condition<'a>(check: &'a Check, type_: &str) -> &'a str {
    find_condition(check, type_).map_or("", |found| found.status.as_str())
}

pub(crate) fn condition_message<'a>(check: &'a Check, type_: &str) -> &'a str {
    find_condition(check, type_).map_or("", |found| found.message.as_str())
}

pub(crate) fn condition_reason<'a>(check: &'a Check, type_: &str) -> &'a str {
    find_condition(check, type_).map_or("", |found| found.reason.as_str())
}

fn find_condition<'a>(check: &'a Check, type_: &str) -> Option<&'a Condition> {
    let mut conditions = check.status.conditions.iter();
    conditions.find(|condition| condition.type_ == type_)
}
