//! Sets, pods and plans, as short as the tables need them.

use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

use federated_rollout::{Amount, Speed};
use fedrs_api::{
    AllowedChanges, EvictionRecord, LocalRecord, MigrationPolicySpec, RecreateRecord, UpdateRecord,
    ValidMigrationPolicy,
};
use jiff::Timestamp;
use replica_set_controller::{
    Action, Change, Disruptions, EvictionBy, Gate, Guard, InPlace, Life, Node, Owner, Patch, Plan,
    Pod, Policy, Readiness, Resize, Set, SlowStart, Wait, step,
};
use serde_json::Value;

/// The hash of an earlier template, whose pods are updated in place.
pub(crate) const OLD: u32 = 1;
/// The hash of an earlier template, whose pods are recreated.
pub(crate) const OTHER: u32 = 2;
/// The hash of the current template.
pub(crate) const TARGET: u32 = 9;

static CHANGES: LazyLock<BTreeMap<u32, Change>> = LazyLock::new(|| {
    let patch = Patch {
        images: [("web".to_owned(), "web:9".to_owned())].into(),
        ..Patch::default()
    };
    let recreate = Change::Recreate(vec!["spec.containers[web].resources".to_owned()]);
    [(OLD, Change::InPlace(patch)), (OTHER, recreate)].into()
});

/// The time, in seconds after some start.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("it is a time")
}

/// The time of the steps.
pub(crate) fn now() -> Timestamp {
    at(0)
}

/// A set of `replicas` pods, any number of which may be unavailable.
pub(crate) fn set(replicas: usize) -> Set<'static> {
    Set {
        name: "web",
        uid: "set",
        replicas,
        min_ready: Duration::from_secs(10),
        progress_deadline: Some(Duration::from_secs(600)),
        max_unavailable: Amount::Percent(100),
        availability_limit: None,
        speed: None,
        allowed: AllowedChanges::All,
        is_deleted: false,
        removal_timeout: Duration::from_secs(1800),
        eviction_timeout: Duration::from_secs(600),
        drain: Duration::ZERO,
        migration: Policy::None,
        target: TARGET,
        changes: &CHANGES,
    }
}

/// The same with a budget.
pub(crate) fn budget(replicas: usize, max_unavailable: u64) -> Set<'static> {
    Set {
        max_unavailable: Amount::Number(max_unavailable),
        ..set(replicas)
    }
}

/// The same with `drainSeconds` 30.
pub(crate) fn with_drain(set: Set<'static>) -> Set<'static> {
    let drain = Duration::from_secs(30);
    Set { drain, ..set }
}

pub(crate) fn speed(portion: u64) -> Speed {
    let min_delay = Duration::from_secs(30);
    Speed { portion, min_delay }
}

/// An available pod with the current template.
pub(crate) fn pod(name: &'static str) -> Pod<'static> {
    Pod {
        name,
        uid: name,
        revision: Some(TARGET),
        owner: Owner::Set,
        node: Some(Node {
            name: "node",
            is_ready: true,
            is_cordoned: false,
        }),
        life: ready(-1000),
        eviction: None,
        eviction_by: EvictionBy::Pod,
        absence: None,
        migration: None,
        shard: None,
        guard: Guard::Absent,
        is_gated: false,
        is_destroyed: false,
        is_disrupted: false,
        deletion_cost: 0,
        created: at(-2000),
        restarts: 0,
        is_refused: false,
        gate: Gate::Open,
        in_place: InPlace::Settled,
        resize: Resize::Settled,
        is_crowded: false,
        is_resizable: true,
    }
}

/// An available pod with an earlier template.
pub(crate) fn old(name: &'static str) -> Pod<'static> {
    Pod {
        revision: Some(OLD),
        ..pod(name)
    }
}

pub(crate) fn ready(since: i64) -> Life<'static> {
    Life::Live(Readiness::Ready { since: at(since) })
}

/// Not ready, for 20 s.
pub(crate) fn starting() -> Life<'static> {
    let (since, failure) = (at(-20), None);
    Life::Live(Readiness::NotReady { since, failure })
}

pub(crate) fn failed() -> Life<'static> {
    let (since, failure) = (at(-20), Some("CrashLoopBackOff"));
    Life::Live(Readiness::NotReady { since, failure })
}

pub(crate) fn terminating(since: i64) -> Life<'static> {
    let since = Some(at(since));
    Life::Terminating { since }
}

pub(crate) fn live(name: &'static str, life: Life<'static>) -> Pod<'static> {
    Pod { life, ..pod(name) }
}

/// A pod that clients leave since the time.
pub(crate) fn draining(pod: Pod<'static>, since: i64) -> Pod<'static> {
    let (since, failure) = (at(since), None);
    Pod {
        gate: Gate::Draining { since },
        life: Life::Live(Readiness::NotReady { since, failure }),
        ..pod
    }
}

/// What is decided if nothing was recorded.
pub(crate) fn plan<'a>(set: &Set<'a>, pods: &'a [Pod<'a>]) -> Plan<'a> {
    plan_with(set, pods, &LocalRecord::default())
}

pub(crate) fn plan_with<'a>(set: &Set<'a>, pods: &'a [Pod<'a>], record: &LocalRecord) -> Plan<'a> {
    plan_beside(set, pods, record, &Disruptions::default())
}

/// What is decided beside these PodDisruptionBudgets.
pub(crate) fn plan_beside<'a>(
    set: &Set<'a>,
    pods: &'a [Pod<'a>],
    record: &LocalRecord,
    disruptions: &Disruptions<'_>,
) -> Plan<'a> {
    let known = (record, &SlowStart::default());
    step(set, pods, disruptions, known, now())
}

/// The actions as text: `Remove a`.
pub(crate) fn actions(plan: &Plan<'_>) -> Vec<String> {
    let text = |action: &Action<'_>| match action {
        Action::Adopt { pod } => format!("Adopt {}", pod.name),
        Action::Release { pod } => format!("Release {}", pod.name),
        Action::Create { name, .. } => format!("Create {name}"),
        Action::Remove { pod, .. } => format!("Remove {}", pod.name),
        Action::ForceRemove { pod, .. } => format!("ForceRemove {}", pod.name),
        Action::AddFinalizer { pod } => format!("AddFinalizer {}", pod.name),
        Action::RemoveFinalizer { pod } => format!("RemoveFinalizer {}", pod.name),
        Action::CloseGate { pod } => format!("CloseGate {}", pod.name),
        Action::Drain { pod } => format!("Drain {}", pod.name),
        Action::Patch { pod, .. } => format!("Patch {}", pod.name),
        Action::Resize { pod } => format!("Resize {}", pod.name),
        Action::OpenGate { pod } => format!("OpenGate {}", pod.name),
    };
    plan.actions.iter().map(text).collect()
}

/// The pods whose update begins, or has begun.
pub(crate) fn updates<'p>(plan: &'p Plan<'_>) -> Vec<&'p str> {
    plan.record.updates.keys().map(String::as_str).collect()
}

/// The pods whose eviction begins, or has begun.
pub(crate) fn evictions<'p>(plan: &'p Plan<'_>) -> Vec<&'p str> {
    let begun = plan
        .record
        .evictions
        .iter()
        .filter(|(_, eviction)| eviction.begun);
    begun.map(|(uid, _)| uid.as_str()).collect()
}

/// The waits of the whole set.
pub(crate) fn set_waits<'a>(plan: &Plan<'a>) -> Vec<Wait<'a>> {
    let is_of_set = |wait: &&Wait<'_>| !matches!(wait, Wait::Pod { .. } | Wait::Migration { .. });
    plan.waits.iter().filter(is_of_set).cloned().collect()
}

/// The update of the pod `name` was recorded, in place.
pub(crate) fn updating(name: &str) -> LocalRecord {
    let update = UpdateRecord {
        from: Some(OLD),
        seen: false,
        recreate: None,
    };
    LocalRecord {
        updates: [(name.to_owned(), update)].into(),
        ..LocalRecord::default()
    }
}

/// The update of the pod `name` was recorded, by its recreation.
pub(crate) fn recreating(name: &str) -> LocalRecord {
    let place = RecreateRecord {
        name: name.to_owned(),
        node: Some("node".to_owned()),
        shard: None,
        gated: false,
    };
    let update = UpdateRecord {
        from: Some(OTHER),
        seen: false,
        recreate: Some(place),
    };
    LocalRecord {
        updates: [(name.to_owned(), update)].into(),
        ..LocalRecord::default()
    }
}

/// The eviction of the pod `name` was recorded, and has begun.
pub(crate) fn evicting(name: &str, since: i64) -> LocalRecord {
    let eviction = EvictionRecord::begun(at(since));
    LocalRecord {
        evictions: [(name.to_owned(), eviction)].into(),
        ..LocalRecord::default()
    }
}

/// The MigrationPolicy with these fields.
pub(crate) fn policy(fields: Value) -> ValidMigrationPolicy {
    let spec: MigrationPolicySpec = serde_json::from_value(fields).expect("it is a spec");
    ValidMigrationPolicy::check(&spec).expect("it is valid")
}

/// The same set with a policy.
pub(crate) fn with<'a>(set: Set<'a>, policy: &'a ValidMigrationPolicy) -> Set<'a> {
    let migration = Policy::Is(policy);
    Set { migration, ..set }
}
