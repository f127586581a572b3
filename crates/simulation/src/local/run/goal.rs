//! The end of a run: everything has recovered. Is the desired state reached in time, and does it stay without a write?

use std::collections::BTreeMap;

use fedrs_api::{LocalRecord, annotations};
use serde_json::Value;
use sim_cluster::{Object, kinds};
use tokio::time::{Duration, Instant};

use super::{
    super::{
        NAMESPACE,
        checks::{limit, record},
        plan::HOSTNAME,
    },
    runner::Runner,
};
use crate::{checks::Invariant, trace::Topic};

/// What recovery takes at most, beside the time of the updates themselves: failed requests are repeated within 64 s, evictions delay
/// updates for 10 min, a crashing container waits for 5 min.
const RECOVERY: Duration = Duration::from_secs(1_500);
/// The longest that one pod takes to stop, to start and to become available.
const POD: Duration = Duration::from_secs(120);
/// What migrations take beside: for each of some pods, the time between two, and the time to stop.
const MIGRATIONS: Duration = Duration::from_secs(2_400);
/// How often the state is looked at.
const APART: Duration = Duration::from_secs(2);
/// After this time everything is written: statuses, PodDisruptionBudgets.
const QUIET: Duration = Duration::from_secs(120);
/// The longest that pods may take to shut down by a policy.
const SHUTDOWN: Duration = Duration::from_secs(200);
/// How long nothing may be written then.
const SETTLED: Duration = Duration::from_secs(900);

/// Waits until all sets are as users want them, and checks that they stay so.
pub(super) async fn check(runner: &mut Runner) {
    let deadline = Instant::now() + time_of(runner);
    while let Err(reason) = reached(runner) {
        if Instant::now() >= deadline {
            return runner.fail(Invariant::Reached, reason);
        }
        runner.confirm().await;
        runner.start_all().await;
        runner.wait_until(Instant::now() + APART).await;
    }
    runner
        .recorder
        .trace(Topic::Phase, "the desired state is reached");
    if has_policy(runner) {
        // Of a pod that left its set while it was being removed, a person is asked later.
        let asked = Instant::now() + SHUTDOWN;
        while Instant::now() < asked {
            runner.confirm().await;
            runner.start_all().await;
            runner.wait_until(Instant::now() + APART).await;
        }
    }
    runner.wait_until(Instant::now() + QUIET).await;
    let written = runner.recorder.writes();
    runner.wait_until(Instant::now() + SETTLED).await;
    if let Err(reason) = reached(runner) {
        return runner.fail(Invariant::Settled, reason);
    }
    let writes = runner.recorder.writes_after(written);
    if !writes.is_empty() {
        let text = format!("still writes {}", writes.join(", "));
        runner.fail(Invariant::Settled, text);
    }
}

fn has_policy(runner: &Runner) -> bool {
    (runner.recorder).observe(|observed| observed.has_policy())
}

/// How long all sets may take.
fn time_of(runner: &Runner) -> Duration {
    let sets = runner.existing_sets();
    let times = sets.iter().map(|set| {
        let number = |value: &Value| u32::try_from(value.as_u64().unwrap_or_default()).unwrap_or(0);
        let spec = &set["spec"];
        let speed = &spec["deploymentStrategy"]["deploySpeed"];
        let delay = Duration::from_secs(number(&speed["minDelay"]).into());
        (POD + delay) * number(&spec["replicas"])
    });
    let migrations = if has_policy(runner) {
        MIGRATIONS
    } else {
        Duration::ZERO
    };
    RECOVERY + migrations + times.max().unwrap_or_default()
}

/// Whether the state is what users want, or what is missing.
fn reached(runner: &Runner) -> Result<(), String> {
    let sets = runner.existing_sets();
    for set in &sets {
        let name = set["metadata"]["name"].as_str().unwrap_or_default();
        set_reached(runner, set).map_err(|reason| format!("{name}: {reason}"))?;
    }
    for request in runner.requests() {
        let phase = request["status"]["phase"].as_str().unwrap_or_default();
        if !["Done", "Forced", "Cancelled"].contains(&phase) {
            let name = &request["metadata"]["name"];
            return Err(format!(
                "{name} is {phase}: {}",
                request["status"]["message"]
            ));
        }
    }
    nothing_left(runner, &sets)
}

fn set_reached(runner: &Runner, set: &Value) -> Result<(), String> {
    let spec = &set["spec"];
    let replicas = usize::try_from(spec["replicas"].as_u64().unwrap_or_default()).unwrap_or(0);
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let mut pods = runner.pods(name);
    pods.retain(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"]);
    if pods.len() != replicas {
        return Err(format!("{} pods exist, of {replicas}", pods.len()));
    }
    for pod in &pods {
        let name = &pod["metadata"]["name"];
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("{name} is being removed"));
        }
        if !has_template(pod, &spec["template"]) {
            return Err(format!("{name} has another template"));
        }
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if !conditions
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        {
            return Err(format!("{name} is not ready"));
        }
    }
    is_spread(&pods, &spec["constraints"]["antiaffinity"])?;
    status_is_true(set, replicas)?;
    budget_is_lent(runner, set, replicas)
}

/// Whether no node has more of the pods than users want (L1).
fn is_spread(pods: &[Object], constraints: &Value) -> Result<(), String> {
    let constraints = constraints.as_array().into_iter().flatten();
    let of_nodes = constraints.filter(|constraint| constraint["key"] == HOSTNAME);
    let most = of_nodes.filter_map(|constraint| constraint["maxPods"].as_u64());
    let Some(most) = most.min() else {
        return Ok(());
    };
    let mut counts = BTreeMap::<_, u64>::new();
    for pod in pods {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        *counts.entry(node).or_default() += 1;
    }
    match counts.into_iter().find(|(_, count)| *count > most) {
        Some((node, count)) => Err(format!("{count} pods are on {node}, where {most} may be")),
        None => Ok(()),
    }
}

/// Whether the pod has what updates change.
fn has_template(pod: &Value, template: &Value) -> bool {
    let includes = |field: &str, keys: &[&str]| {
        let of = |object: &Value, key: &str| object["metadata"][field][key].clone();
        keys.iter().all(|key| of(pod, key) == of(template, key))
    };
    let image = |object: &Value| object["spec"]["containers"][0]["image"].clone();
    let grace = &template["spec"]["terminationGracePeriodSeconds"];
    includes("labels", &["app", "version"])
        && includes(
            "annotations",
            &["note", annotations::RESTARTED_AT, "sim-cluster.dev/fail"],
        )
        && image(pod) == image(template)
        && (grace.is_null() || pod["spec"]["terminationGracePeriodSeconds"] == *grace)
}

/// Whether the status says that everything is as it should be.
fn status_is_true(set: &Value, replicas: usize) -> Result<(), String> {
    let status = &set["status"];
    if status["observedGeneration"] != set["metadata"]["generation"] {
        return Err("the status is behind the spec".to_owned());
    }
    for field in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "updatedAvailableReplicas",
    ] {
        if status[field].as_u64().unwrap_or_default() != replicas as u64 {
            return Err(format!(
                "status.{field} is {}, of {replicas}",
                status[field]
            ));
        }
    }
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    if !conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
        return Err(format!("it is not Ready: {}", status["conditions"]));
    }
    let LocalRecord {
        updates, evictions, ..
    } = record(set).ok_or("the record can't be read")?;
    if !updates.is_empty() || !evictions.is_empty() {
        return Err(format!("the record still has {updates:?}, {evictions:?}"));
    }
    Ok(())
}

/// Whether evictions through the API server may use the whole budget, and no more (L20).
fn budget_is_lent(runner: &Runner, set: &Value, replicas: usize) -> Result<(), String> {
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let limit = limit(
        &set["spec"]["deploymentStrategy"]["maxUnavailable"],
        replicas,
    );
    let api = runner.cluster.api();
    let name = format!("lrs-{name}");
    let budget = api.get(&kinds::POD_DISRUPTION_BUDGETS, NAMESPACE, &name);
    let Ok(budget) = budget else {
        let is_missing = replicas > 0;
        return if is_missing {
            Err("it has no PodDisruptionBudget".to_owned())
        } else {
            Ok(())
        };
    };
    let least = budget["spec"]["minAvailable"].as_u64().unwrap_or_default();
    let wanted = replicas.saturating_sub(limit) as u64;
    if replicas > 0 && least != wanted {
        return Err(format!(
            "its PodDisruptionBudget keeps {least} pods, and not {wanted}"
        ));
    }
    Ok(())
}

/// Whether sets that are gone have left only what users wanted to stay.
fn nothing_left(runner: &Runner, sets: &[Object]) -> Result<(), String> {
    let exists = |uid: &Value| sets.iter().any(|set| set["metadata"]["uid"] == *uid);
    let pods = runner.cluster.api().list(&kinds::PODS, Some(NAMESPACE));
    for pod in &pods {
        let owners = pod["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        if owners.any(|owner| owner["kind"] == "LocalReplicaSet" && !exists(&owner["uid"])) {
            let name = &pod["metadata"]["name"];
            return Err(format!("{name} belongs to a set that is gone"));
        }
    }
    Ok(())
}
