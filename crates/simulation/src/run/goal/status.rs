//! Whether the statuses on the host say what there is (F6, F18): the numbers are those of the members, and each condition is
//! as its meaning asks for.

use std::collections::BTreeMap;

use fedrs_api::{
    ClusterStatus, ConditionType, FederatedReplicaSet, FederatedReplicaSetStatus, SetKind,
    annotations, conditions, labels,
};
use serde_json::Value;
use sim_cluster::{Api, Object, kinds};
use tokio::time::{Duration, Instant};

use super::local_set::pods_of;
use crate::{
    checks::{is_labeled, is_of_other_federation},
    observe::LocalSetState,
    run::runner::Runner,
    sim_federation::HOST,
};

/// The conditions that are absent from a set that has what it asks for.
const PROBLEMS: [ConditionType; 8] = [
    ConditionType::Reconciling,
    ConditionType::Stalled,
    ConditionType::NameConflict,
    ConditionType::SelectorOverlap,
    ConditionType::MoveBlocked,
    ConditionType::NotBecomingReady,
    ConditionType::Contended,
    ConditionType::Paused,
];

/// What the status of a set says wrongly of `members`, which have `sets`, and should have what is `planned`: some may keep more.
pub(super) fn wrong_clusters(
    frs: &FederatedReplicaSet,
    (members, planned): (&[String], &[u64]),
    sets: &BTreeMap<String, LocalSetState>,
) -> Option<String> {
    let mut clusters = frs.status.iter().flat_map(|status| &status.clusters);
    clusters.find_map(|cluster| {
        let index = members.iter().position(|member| *member == cluster.name)?;
        let set = &sets[&cluster.name];
        let desired = i64::from(cluster.desired_replicas);
        let is_desired = [set.desired, planned[index]].contains(&desired.unsigned_abs());
        let shown = [
            cluster.replicas,
            cluster.ready_replicas,
            cluster.available_replicas,
        ];
        let real = [set.existing, set.available, set.available];
        let is_wrong = shown.map(i64::from) != real.map(u64::cast_signed)
            || !is_desired
            || cluster.updated_replicas > cluster.replicas
            || cluster.unscheduled_replicas > 0;
        is_wrong.then(|| format!("the status shows {cluster:?}, where there is {set:?}"))
    })
}

/// What the status of a set says wrongly, if every member is known, and `wanted` of its replicas have a cluster and run.
pub(super) fn wrong_whole(
    runner: &Runner,
    frs: &FederatedReplicaSet,
    sets: &BTreeMap<String, LocalSetState>,
    wanted: u64,
) -> Option<String> {
    let status = frs.status.as_ref()?;
    let name = frs.metadata.name.as_deref().unwrap_or_default();
    let replicas = u64::try_from(frs.spec.replicas).unwrap_or(0);
    let pods = PodCounts::of(runner, name, sets.keys());
    let unplaced = replicas - wanted;
    wrong_number(status, sets, &pods, wanted, unplaced)
        .or_else(|| {
            let (shown, is) = (status.observed_generation, frs.metadata.generation);
            (shown != is).then(|| format!("the status is of generation {shown:?}, not {is:?}"))
        })
        .or_else(|| wrong_list(status, sets))
        .or_else(|| wrong_conditions(status, unplaced == 0, pods.updated < pods.all))
}

/// The first sum that is not that of the members.
fn wrong_number(
    status: &FederatedReplicaSetStatus,
    sets: &BTreeMap<String, LocalSetState>,
    pods: &PodCounts,
    placed: u64,
    unplaced: u64,
) -> Option<String> {
    let sum = |count: fn(&LocalSetState) -> u64| sets.values().map(count).sum::<u64>();
    let available = sum(|set| set.available);
    let existing = sum(|set| set.existing);
    let numbers = [
        ("replicas", status.replicas, existing),
        ("readyReplicas", status.ready_replicas, available),
        ("availableReplicas", status.available_replicas, available),
        ("updatedReplicas", status.updated_replicas, pods.updated),
        ("placedReplicas", status.placed_replicas, placed),
        ("unplacedReplicas", status.unplaced_replicas, unplaced),
    ];
    let is_wrong = |(_, shown, real): &&(_, i32, u64)| u64::try_from(*shown) != Ok(*real);
    let (field, shown, real) = numbers.iter().find(is_wrong)?;
    Some(format!(
        "the status shows {field} {shown} instead of {real}"
    ))
}

/// A cluster with replicas that the status does not list, or does not count.
fn wrong_list(
    status: &FederatedReplicaSetStatus,
    sets: &BTreeMap<String, LocalSetState>,
) -> Option<String> {
    let has_replicas = |(_, set): &(&String, &LocalSetState)| set.desired > 0;
    let with_replicas = || sets.iter().filter(has_replicas).map(|(member, _)| member);
    let is_listed = |member: &&String| {
        let mut clusters = status.clusters.iter();
        clusters.any(|ClusterStatus { name, .. }| name == *member)
    };
    if let Some(member) = with_replicas().find(|member| !is_listed(member)) {
        return Some(format!("the status does not list {member}"));
    }
    let all = with_replicas().count();
    let (summary, shown) = (format!("{all}/{all}"), &status.summary);
    (*shown != summary).then(|| format!("the summary is {shown:?}, not {summary:?}"))
}

/// The first condition that is not as it should be, if every replica that has a cluster is available.
fn wrong_conditions(
    status: &FederatedReplicaSetStatus,
    is_complete: bool,
    is_outdated: bool,
) -> Option<String> {
    let has = |type_| conditions::is_true(&status.conditions, type_);
    let always = [
        (ConditionType::Accepted, true),
        (ConditionType::Placed, is_complete),
        (ConditionType::Ready, is_complete),
        (ConditionType::TemplateOutdated, is_outdated),
    ];
    let absent = PROBLEMS.into_iter().filter(|_| is_complete);
    let mut wanted = always.into_iter().chain(absent.map(|type_| (type_, false)));
    let (type_, wanted) = wanted.find(|(type_, wanted)| has(*type_) != *wanted)?;
    let found = conditions::find(&status.conditions, type_);
    Some(format!(
        "the condition {type_} is not {wanted}, but {found:?}"
    ))
}

/// The pods of a set in some members.
struct PodCounts {
    all: u64,
    /// Those of the template that their ReplicaSet has now.
    updated: u64,
}

impl PodCounts {
    fn of<'a>(runner: &Runner, name: &str, members: impl Iterator<Item = &'a String>) -> Self {
        let mut counts = Self { all: 0, updated: 0 };
        for member in members {
            let Some(set) = runner.federation.local_set(member, name) else {
                continue;
            };
            if !is_labeled(&set) {
                continue;
            }
            let hash =
                |metadata: &Value| metadata["annotations"][annotations::TEMPLATE_HASH].clone();
            let current = hash(&set["spec"]["template"]["metadata"]);
            for pod in pods_of(runner, member, &set) {
                counts.all += 1;
                counts.updated += u64::from(hash(&pod["metadata"]) == current);
            }
        }
        counts
    }
}

/// The workloads of a member are counted at least as often.
const COUNTED_EVERY: Duration = Duration::from_secs(30);

/// What the status of a MemberCluster says wrongly, if the member and the controller are healthy.
pub(in crate::run) fn wrong_member(runner: &Runner, name: &str) -> Option<String> {
    let host = runner.federation.cluster(HOST).api();
    let kind = host.kind_of("fedrs.dev/v1alpha1", "MemberCluster")?;
    let Ok(object) = host.get(&kind, "", name) else {
        return Some(format!("{name}: there is no MemberCluster"));
    };
    let status = &object["status"];
    let condition = |type_: &str| {
        let conditions = status["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|condition| condition["type"] == type_)
    };
    let member = runner.federation.member(name).api();
    let nodes = member.list(&kinds::NODES, None);
    // The controller looks for the label of its federation.
    let is_ours = |set: &Value| {
        let has_federation = set["metadata"]["labels"].get(labels::FEDERATION).is_some();
        is_labeled(set) && has_federation && !is_of_other_federation(set)
    };
    let occupied = |set: &&crate::plan::SetPlan| {
        let set = runner.federation.local_set(name, &set.name);
        set.is_some_and(|set| is_ours(&set) && set["spec"]["replicas"] != 0)
    };
    // ReplicaSets whose Deployment somebody has deleted without them keep our labels.
    let is_left = |set: &Object| {
        let has_owner = set["metadata"]["ownerReferences"][0].is_object();
        let is_set = runner
            .sets
            .iter()
            .any(|other| set["metadata"]["name"] == other.name);
        is_ours(set) && !has_owner && !is_set && set["spec"]["replicas"] != 0
    };
    let left = member.list(&kinds::REPLICA_SETS, None);
    let left = left.iter().filter(|set| is_left(set)).count();
    let occupied: Vec<_> = runner.sets.iter().filter(occupied).collect();
    // Deployments are watched once there is a FederatedDeployment. A restored host may have none any more.
    let unwatched = if has_deployments(host) {
        0
    } else {
        let deployments = occupied
            .iter()
            .filter(|set| set.kind == SetKind::FederatedDeployment);
        deployments.count()
    };
    let occupied = occupied.len() + left;
    // Where a template is rejected, replicas move with later attempts to write it.
    let counted_since = Instant::now() - COUNTED_EVERY;
    let is_scaled = |set: &crate::plan::SetPlan| {
        runner.recorder.observe(|observed| {
            let mut parts = observed.parts(&set.name);
            let part = parts.find(|(member, _)| **member == *name);
            part.is_some_and(|(_, local)| local.desired.since(counted_since).count() > 1)
        })
    };
    let is_scaled = runner.sets.iter().any(is_scaled);
    let shown = status["workloads"].as_u64().unwrap_or(0);
    let is_true = |type_| condition(type_).is_some_and(|condition| condition["status"] == "True");
    let checks = [
        ("condition Ready", is_true("Ready")),
        ("condition Synced", is_true("Synced")),
        (
            "condition Drained",
            // What nobody moves is left, for somebody to delete.
            is_true("Drained") == (left == 0) || object["spec"]["drain"] != true,
        ),
        (
            "observedGeneration",
            status["observedGeneration"] == object["metadata"]["generation"],
        ),
        ("number of nodes", status["nodes"]["total"] == count(&nodes)),
        (
            "number of ReplicaSets",
            ((occupied - unwatched) as u64..=occupied as u64).contains(&shown) || is_scaled,
        ),
    ];
    let (field, _) = checks.iter().find(|(_, is_right)| !is_right)?;
    Some(format!(
        "the status of the MemberCluster {name} has a wrong {field}: {status}"
    ))
}

fn has_deployments(host: &Api) -> bool {
    let kind = host.kind_of("fedrs.dev/v1alpha1", "FederatedDeployment");
    kind.is_some_and(|kind| !host.list(&kind, None).is_empty())
}

fn count(objects: &[Object]) -> u64 {
    objects.len() as u64
}
