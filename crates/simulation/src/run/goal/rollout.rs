//! Whether the rollout of a FederatedDeployment has ended, by its status.

use fedrs_api::RolloutStatus;
use serde::Deserialize;
use serde_json::Value;
use sim_cluster::kinds;

use crate::{run::runner::Runner, sim_federation::NAMESPACE};

/// The replicas that a Deployment had when its controller last changed the size of a ReplicaSet.
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";

/// What of the status does not say that all members have the template, and that nothing is lent any more.
pub(super) fn wrong_rollout(object: &Value) -> Option<String> {
    let status = &object["status"];
    let conditions = status["conditions"].as_array();
    let progressing = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Progressing");
    let is_complete = |condition: &Value| condition["reason"] == "RolloutComplete";
    if !progressing.is_some_and(is_complete) {
        return Some(format!("the rollout is not complete, but {progressing:?}"));
    }
    if status["currentRevision"] != status["updateRevision"] {
        let (current, update) = (&status["currentRevision"], &status["updateRevision"]);
        return Some(format!("revisions {current} and {update} are not the same"));
    }
    let record = status["rollout"]["record"].as_str().unwrap_or_default();
    let record: Value = serde_json::from_str(record).unwrap_or_default();
    let loans = record["loans"]
        .as_object()
        .filter(|loans| !loans.is_empty());
    loans.map(|loans| format!("loans are left: {}", Value::Object(loans.clone())))
}

/// Whether the Deployment controller of a member has stopped for ever, as that of Kubernetes does: the only ReplicaSet with pods has
/// the desired number, and an annotation with an earlier one. The controller takes that for a scaling that is still to be done, and
/// finds nothing to scale.
pub(super) fn is_stuck(runner: &Runner, member: &str, set: &str) -> bool {
    let Some(deployment) = runner.federation.stored_set(member, set) else {
        return false;
    };
    let (uid, desired) = (
        &deployment["metadata"]["uid"],
        &deployment["spec"]["replicas"],
    );
    let sets = runner.federation.member(member).api();
    let mut sets = sets.list(&kinds::REPLICA_SETS, Some(NAMESPACE));
    sets.retain(|set| {
        set["metadata"]["ownerReferences"][0]["uid"] == *uid && set["spec"]["replicas"] != 0
    });
    let [set] = &*sets else {
        return false;
    };
    let recorded = &set["metadata"]["annotations"][DESIRED_REPLICAS];
    set["spec"]["replicas"] == *desired && recorded.as_str() != Some(&*desired.to_string())
}

/// The pods that members may make unavailable with what is lent to them.
pub(super) fn lent(object: &Value) -> u64 {
    let status = RolloutStatus::deserialize(&object["status"]["rollout"]).unwrap_or_default();
    let loans = status.record.loans.values();
    loans.map(|loan| loan.strategy.unavailable).sum()
}
