//! Trials of one set: changes by its user, and of its local ReplicaSets by others.

use std::collections::BTreeSet;

use fedrs_api::{SetKind, annotations, labels};
use http::Method;
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb, kinds};
use tokio::time::{Duration, Instant};

use super::{
    members::kill_all,
    wait::{
        self, Failed, REACTION, edit, local_writes, reached, replicas, requested, scale, stays,
    },
};
use crate::{
    checks::{is_labeled, is_written_by_fedrs},
    plan::Drift,
    run::{goal::wrong_object, runner::Runner},
    set_kind,
    sim_federation::{HOST, NAMESPACE},
};

/// How often leaders are started anew during a rollout, and how long each of them lives.
const RESTARTS: u32 = 20;
const LIFE: Duration = Duration::from_secs(7);

/// A local ReplicaSet that somebody changed or deleted is as before, with the pods that it had.
pub(super) async fn drift(runner: &mut Runner, set: &str, drift: Drift) -> Result<(), Failed> {
    let mut layout = requested(runner, set).into_iter();
    let Some((member, count)) = layout.find(|(_, count)| *count > 0) else {
        return Ok(());
    };
    let uid = |runner: &Runner| {
        let local = runner.federation.local_set(&member, set);
        local.map(|local| local["metadata"]["uid"].clone())
    };
    let pods = pods(runner, set);
    let deleted = uid(runner).filter(|_| drift == Drift::Deleted);
    edit_local_set(runner, &member, set, drift).await;
    let restored = |runner: &Runner| {
        if deleted.is_some() && uid(runner) == deleted {
            return Some(format!("{set} is being deleted in {member}"));
        }
        let frs = runner.frs(set)?;
        let now = runner.federation.sets(set)[&member].desired;
        wrong_object(runner, &member, &frs)
            .or_else(|| (now != count).then(|| format!("{set} has {now} replicas in {member}")))
    };
    let what = "what somebody changed is restored";
    reached(runner, REACTION, what, restored).await?;
    let kept = |runner: &Runner| {
        let gone = pods.difference(&self::pods(runner, set)).next().cloned();
        gone.map(|pod| format!("the pod {pod} is gone"))
    };
    // A ReplicaSet that is created again adopts them first.
    reached(runner, REACTION, "the pods are adopted", kept).await?;
    stays(runner, REACTION, "the pods stay", kept).await
}

/// Somebody changes or deletes the local ReplicaSet of a member.
async fn edit_local_set(runner: &Runner, member: &str, set: &str, drift: Drift) {
    let patch = match drift {
        Drift::Replicas => {
            let replicas = runner.federation.layout(set)[member] + 1;
            json!({ "spec": { "replicas": replicas } })
        }
        Drift::Image => json!({ "spec": { "template": { "spec": {
            "containers": [{ "name": "main", "image": "registry.example/other:1" }],
        } } } }),
        Drift::MinReadySeconds => json!({ "spec": { "minReadySeconds": 77 } }),
        Drift::Label => json!({ "metadata": { "labels": { labels::MEMBER_CLUSTER: null } } }),
        Drift::Deleted => json!({ "propagationPolicy": "Orphan" }),
    };
    let method = match drift {
        Drift::Deleted => Method::DELETE,
        _ => Method::PATCH,
    };
    let path = runner.federation.local_path(set);
    runner.request(member, method, &path, &patch).await;
}

/// One cluster gets the new replica, and none loses one.
pub(super) async fn growth(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    let (before, more) = (requested(runner, set), replicas(runner, set) + 1);
    scale(runner, set, more).await;
    let grown = |runner: &Runner| {
        let now = requested(runner, set);
        let grown = now.iter().zip(&before).filter(|(now, then)| now.1 > then.1);
        // Perhaps no cluster may have another replica.
        let is_allowed = runner.frs(set)?["status"]["unplacedReplicas"] == 0;
        (is_allowed && grown.count() != 1).then(|| format!("{set}: {before:?} became {now:?}"))
    };
    reached(runner, REACTION, "one cluster gets another replica", grown).await?;
    no_cluster_loses(runner, set, &before).await
}

/// The speed, and the budget, of a rollout that leaders begin again and again.
async fn rollout(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    let now = runner.federation.now().as_second();
    let containers = json!([{ "name": "main", "image": format!("registry.example/main:{now}") }]);
    let speed = json!({ "updatePortion": 2, "minDelaySeconds": 10 });
    let spec = json!({
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "60%", "maxSurge": 0 } },
        "rollout": { "speed": speed },
        "template": { "spec": { "containers": containers } },
    });
    edit(runner, set, &json!({ "spec": spec })).await;
    for _ in 0..RESTARTS {
        runner.wait_until(Instant::now() + LIFE).await;
        kill_all(runner).await;
        runner.start_controllers();
    }
    edit(
        runner,
        set,
        &json!({ "spec": { "rollout": { "speed": null } } }),
    )
    .await;
    Ok(())
}

/// Every member has the template, and the pods stay.
pub(super) async fn template(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    if runner.federation.kind_of(set) == SetKind::FederatedDeployment {
        return rollout(runner, set).await;
    }
    let pods = pods(runner, set);
    let image = format!(
        "registry.example/main:{}",
        runner.federation.now().as_second()
    );
    let containers = json!([{ "name": "main", "image": image }]);
    let template = json!({ "spec": { "containers": containers } });
    edit(runner, set, &json!({ "spec": { "template": template } })).await;
    let written = |runner: &Runner| {
        let frs = runner.frs(set)?;
        let members = runner.federation.member_names();
        members
            .iter()
            .find_map(|member| wrong_object(runner, member, &frs))
    };
    reached(runner, REACTION, "every member has the template", written).await?;
    let kept = |runner: &Runner| {
        let now = self::pods(runner, set);
        (now != pods).then(|| format!("the pods of {set} were {pods:?} and are {now:?}"))
    };
    stays(runner, REACTION, "the pods stay", kept).await
}

/// Nothing is written to the members while a set is paused.
pub(super) async fn pause(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    edit(runner, set, &stop(runner, set, true)).await;
    let shown = |runner: &Runner| lacks_condition(runner, set, "Paused", "True");
    reached(runner, REACTION, "the status shows the pause", shown).await?;
    untouched(runner, set, "a paused set").await?;
    edit(runner, set, &stop(runner, set, false)).await;
    Ok(())
}

/// The patch that stops all changes of a set, or no longer does.
fn stop(runner: &Runner, set: &str, stopped: bool) -> Value {
    let field = match runner.federation.kind_of(set) {
        SetKind::FederatedReplicaSet => "paused",
        SetKind::FederatedDeployment => "stopped",
    };
    json!({ "spec": { field: stopped } })
}

/// A status that the host rejects as written for an older object is written again.
pub(super) async fn conflict(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    let kind = runner.federation.kind_of(set);
    let faults = runner.federation.cluster(HOST).faults().clone();
    let requests = RequestMatcher::all().verb(Verb::Patch);
    let status = Status::new(409, "Conflict", "the object has been modified");
    faults.refuse(requests.resource(set_kind::resource(kind)), 1, status);
    edit(runner, set, &stop(runner, set, true)).await;
    let shown = |runner: &Runner| lacks_condition(runner, set, "Paused", "True");
    reached(runner, REACTION, "the status is written again", shown).await?;
    faults.heal();
    edit(runner, set, &stop(runner, set, false)).await;
    Ok(())
}

/// Nothing is written to the members while a set is invalid.
pub(super) async fn invalid(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    // It has a placement as well.
    let preferences =
        |text: Value| json!({ "metadata": { "annotations": { annotations::PREFERENCES: text } } });
    edit(
        runner,
        set,
        &preferences(json!(r#"{"clusters":{"*":{"weight":1}}}"#)),
    )
    .await;
    let shown = |runner: &Runner| lacks_condition(runner, set, "Accepted", "False");
    reached(runner, REACTION, "the status shows the error", shown).await?;
    untouched(runner, set, "an invalid set").await?;
    edit(runner, set, &preferences(Value::Null)).await;
    Ok(())
}

/// Changes a set that must not be acted on, and checks that nothing is written to the members.
async fn untouched(runner: &mut Runner, set: &str, what: &str) -> Result<(), Failed> {
    let more = replicas(runner, set) + 2;
    scale(runner, set, more).await;
    if let Some((member, count)) = requested(runner, set).into_iter().next() {
        let patch = json!({ "spec": { "replicas": count + 1 } });
        runner
            .patch(&member, &runner.federation.local_path(set), &patch)
            .await;
    }
    let before = runner.recorder.writes();
    let written = |runner: &Runner| local_writes(runner, set, before);
    stays(runner, Duration::from_secs(90), what, written).await
}

/// All replicas go to the only cluster that the annotation selects.
pub(super) async fn annotation(runner: &mut Runner, set: &str, member: &str) -> Result<(), Failed> {
    let clusters = json!({ member: { "Weight": 1 } });
    let preferences = json!({ "rebalance": true, "clusters": clusters }).to_string();
    let patch = json!({
        "metadata": { "annotations": { annotations::PREFERENCES: preferences } },
        "spec": { "placement": null },
    });
    edit(runner, set, &patch).await;
    Ok(())
}

/// Without rebalancing, another weight moves nothing, and another replica takes none away.
pub(super) async fn unbalanced(runner: &mut Runner, set: &str, member: &str) -> Result<(), Failed> {
    let frs = runner.frs(set).unwrap_or_default();
    let placement = &frs["spec"]["placement"];
    let clusters = &placement["clusters"];
    let preference = |member: &str| clusters.get(member).or_else(|| clusters.get("*"));
    let members = runner.federation.member_names();
    let minimums = members
        .iter()
        .filter_map(|member| preference(member)?["minReplicas"].as_u64());
    let Some(mut preference) = preference(member).cloned() else {
        return Ok(());
    };
    // The weights decide who has its minimum first, and a minimum moves replicas.
    if minimums.sum::<u64>() > replicas(runner, set) {
        return Ok(());
    }
    preference["weight"] = (preference["weight"].as_u64().unwrap_or(0) + 3).into();
    let before = requested(runner, set);
    let clusters = json!({ member: preference });
    let placement = json!({ "rebalance": false, "clusters": clusters });
    edit(runner, set, &json!({ "spec": { "placement": placement } })).await;
    let moved = |runner: &Runner| {
        let now = requested(runner, set);
        (now != before).then(|| format!("{set}: {before:?} became {now:?}"))
    };
    stays(runner, Duration::from_secs(60), "no replica moves", moved).await?;
    let more = replicas(runner, set) + 1;
    scale(runner, set, more).await;
    no_cluster_loses(runner, set, &before).await?;
    let placement = json!({ "rebalance": true });
    edit(runner, set, &json!({ "spec": { "placement": placement } })).await;
    Ok(())
}

/// The set is gone within a minute, with its replicas or without.
///
/// Each member rejects the first writes of its ReplicaSet: they are repeated.
pub(super) async fn deletion(
    runner: &mut Runner,
    set: &str,
    deletes: bool,
    rejections: u32,
) -> Result<(), Failed> {
    let (pods, layout) = (pods(runner, set), runner.federation.layout(set));
    // The template of a Deployment that an earlier set of this name released labels the pods that are created since.
    let mut members = runner.federation.member_names();
    members.retain(|member| {
        let local = runner.federation.local_set(member, set);
        local.is_none_or(|local| is_labeled(&local))
    });
    let policy = if deletes { "Delete" } else { "Orphan" };
    edit(
        runner,
        set,
        &json!({ "spec": { "deletionPolicy": policy } }),
    )
    .await;
    runner.wait_until(Instant::now() + REACTION).await;
    reject_writes(runner, set, rejections);
    let path = runner.federation.set_path(set);
    runner
        .request(HOST, Method::DELETE, &path, &Value::Null)
        .await;
    let gone = |runner: &Runner| runner.frs(set).map(|_| format!("{set} exists"));
    reached(runner, Duration::from_secs(60), "the set is gone", gone).await?;
    for member in runner.federation.member_names() {
        runner.federation.member(&member).faults().heal();
    }
    // A release changes no template of a Deployment, which would replace its pods.
    let changes_template = runner.federation.kind_of(set) == SetKind::FederatedReplicaSet;
    let left = |runner: &Runner| {
        let local_set = members.iter().find_map(|member| {
            let local = runner.federation.local_set(member, set)?;
            let template = &local["spec"]["template"]["metadata"];
            let has_label = template["labels"].get(labels::REPLICA_SET).is_some();
            let is_ours = is_labeled(&local) || changes_template && has_label;
            is_ours.then(|| format!("{member} has its ReplicaSet"))
        });
        local_set.or_else(|| labeled_pod(runner, &members, set))
    };
    // Its pods take a while to terminate.
    reached(
        runner,
        Duration::from_secs(120),
        "nothing of it is left",
        left,
    )
    .await?;
    if deletes {
        return Ok(());
    }
    let changed = |runner: &Runner| {
        let (now, left) = (self::pods(runner, set), runner.federation.layout(set));
        let is_same = now == pods && left == layout;
        (!is_same).then(|| format!("{layout:?} with {pods:?} became {left:?} with {now:?}"))
    };
    stays(
        runner,
        Duration::from_secs(60),
        "its replicas stay",
        changed,
    )
    .await
}

/// The next changes and deletions of ReplicaSets are rejected by each member, so many times.
fn reject_writes(runner: &Runner, set: &str, times: u32) {
    let kind = runner.federation.kind_of(set);
    for member in runner.federation.member_names() {
        for verb in [Verb::Patch, Verb::Delete] {
            let requests = RequestMatcher::all()
                .verb(verb)
                .resource(set_kind::local_resource(kind));
            let status = Status::new(500, "InternalError", "injected");
            let faults = runner.federation.member(&member).faults();
            faults.refuse(requests, times, status);
        }
    }
}

/// A pod of a local set that the controller wrote, with the label of the set. One whose local set somebody deleted without it belongs
/// to nobody, or to what somebody created instead.
fn labeled_pod(runner: &Runner, members: &[String], set: &str) -> Option<String> {
    members.iter().find_map(|member| {
        let api = runner.federation.member(member).api();
        let local = runner.federation.stored_set(member, set);
        if local.is_some_and(|local| !is_written_by_fedrs(&local)) {
            return None;
        }
        let pods = api.list(&kinds::PODS, Some(NAMESPACE));
        let has_owners = |object: &Value| object["metadata"].get("ownerReferences").is_some();
        let is_owned = |pod: &Value| {
            let owner = &pod["metadata"]["ownerReferences"][0];
            let is_of_deployment = runner.federation.kind_of(set) == SetKind::FederatedDeployment;
            let owner = owner["name"].as_str().filter(|_| is_of_deployment);
            let owner = owner.map(|owner| api.get(&kinds::REPLICA_SETS, NAMESPACE, owner));
            has_owners(pod) && owner.is_none_or(|owner| owner.is_ok_and(|owner| has_owners(&owner)))
        };
        let mut labeled = pods.iter().filter(|pod| {
            let metadata = &pod["metadata"];
            metadata["labels"][labels::REPLICA_SET] == set
                && metadata.get("deletionTimestamp").is_none()
                && is_owned(pod)
        });
        let pod = labeled.next()?;
        Some(format!(
            "{} in {member} has labels of fedrs",
            crate::name_of(pod)
        ))
    })
}

/// Checks for a while that no cluster has fewer replicas than `before`.
async fn no_cluster_loses(
    runner: &mut Runner,
    set: &str,
    before: &[(String, u64)],
) -> Result<(), Failed> {
    let lost = |runner: &Runner| {
        let now = requested(runner, set);
        let mut pairs = now.iter().zip(before);
        let loses = pairs.any(|(now, then)| now.1 < then.1);
        loses.then(|| format!("{set}: {before:?} became {now:?}"))
    };
    stays(
        runner,
        Duration::from_secs(30),
        "no cluster loses a replica",
        lost,
    )
    .await
}

/// The pods of a set in all members, by their uids.
fn pods(runner: &Runner, set: &str) -> BTreeSet<String> {
    let members = runner.federation.member_names();
    let pods = members.iter();
    let pods = pods.flat_map(|member| wait::pods(runner, member, set));
    pods.map(|pod| pod["metadata"]["uid"].to_string()).collect()
}

/// What the condition of a set says instead of `status`.
pub(super) fn lacks_condition(
    runner: &Runner,
    set: &str,
    type_: &str,
    status: &str,
) -> Option<String> {
    let frs = runner.frs(set)?;
    let conditions = frs["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == type_);
    let is_so = condition.is_some_and(|condition| condition["status"] == status);
    (!is_so).then(|| format!("{set}: {type_} is not {status}, but {condition:?}"))
}
