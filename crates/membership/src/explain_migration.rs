//! Explains why a pod of a LocalReplicaSet or a ReplicaSet moves or stays, and what keeps a node from being empty (M1): from the objects
//! of the cluster alone, also while its controller is away.

use std::collections::BTreeMap;

use fedrs_api::{
    LocalConditionType, LocalKind, LocalReplicaSet, MaintenanceMark, MigrationPhase,
    MigrationPolicy, MigrationRequest, MigrationRequestStatus, ValidMigrationPolicy,
    annotations::{EVICT, MAINTENANCE},
};
use k8s_openapi::{
    api::{
        apps::v1::ReplicaSet,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, ResourceExt, api::ListParams};
use serde::{Serialize, Serializer};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    eviction::{self, EvictionError},
    migration,
};

/// The taint of a node that is out of service.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// What is said of a pod that gets a request soon.
const NOT_REQUESTED: &str = "has to leave its node, and has no MigrationRequest yet: the controller of LocalReplicaSets makes it";
/// The only mark of a node that does not exist.
const GONE: &str = "does not exist";
/// How the marks of a node that is not ready, and of a pod that is being deleted, begin.
const NOT_READY: &str = "not ready";
const DELETED: &str = "is being deleted";
/// Conditions of a LocalReplicaSet that say why its pods do not move.
const CONDITIONS: [LocalConditionType; 6] = [
    LocalConditionType::PodsNotStopped,
    LocalConditionType::EvictionBlocked,
    LocalConditionType::BudgetUsedByFailures,
    LocalConditionType::MigrationPolicyUnknown,
    LocalConditionType::NotificationsMissing,
    LocalConditionType::Paused,
];

/// Why a pod moves or stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Whether it exists; else its MigrationRequests say what became of it.
    pub exists: bool,
    /// The kind of its set.
    #[serde(serialize_with = "as_kind")]
    pub kind: LocalKind,
    /// The name of its set.
    pub replica_set: String,
    /// The policy of that, if it has one in the cluster. The controller's configuration may name another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Its node; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeState>,
    /// What asks the pod itself to leave.
    pub marks: Vec<String>,
    /// The MigrationRequests for the pod, those that have not ended first.
    pub requests: Vec<RequestState>,
    /// The conditions of a LocalReplicaSet that say why its pods do not move.
    pub conditions: Vec<SetCondition>,
}

/// What keeps a node from being empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    /// The node.
    #[serde(flatten)]
    pub node: NodeState,
    /// The pods of LocalReplicaSets and ReplicaSets on it that have not ended.
    pub pods: Vec<PodOnNode>,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// What asks pods to leave it, or keeps others away.
    pub marks: Vec<String>,
}

/// How far a MigrationRequest is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestState {
    /// Its name.
    pub name: String,
    /// Who asks.
    pub cause: String,
    /// Why, for people.
    pub reason: String,
    /// How far it is; empty before the controller knows it.
    pub phase: String,
    /// What holds it up, for programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wait_reason: String,
    /// What it waits for, or why it ended.
    pub message: String,
    /// When what it waits for ends, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// When the pod is moved whatever holds it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Whether nothing follows.
    pub has_ended: bool,
}

/// A pod of a LocalReplicaSet or a ReplicaSet on a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodOnNode {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The kind of its set.
    #[serde(serialize_with = "as_kind")]
    pub kind: LocalKind,
    /// The name of its set.
    pub replica_set: String,
    /// Its MigrationRequest that has not ended, or else the last one that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestState>,
}

/// A condition of a set that is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetCondition {
    /// The type.
    pub r#type: String,
    /// The reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl PodExplanation {
    /// One sentence: whether it moves, and what it waits for.
    #[must_use]
    pub fn summary(&self) -> String {
        let of_node = self.node.iter().flat_map(|node| &node.marks);
        let marks: Vec<_> = of_node.chain(&self.marks).collect();
        let open = self.requests.iter().find(|request| !request.has_ended);
        if let Some(RequestState { phase, message, .. }) = open {
            return match MigrationPhase::parse(phase) {
                Some(MigrationPhase::HandsUp | MigrationPhase::WaitingForConfirmation) => {
                    format!("waits for a person: {message}")
                }
                Some(MigrationPhase::WaitingForBudget) => format!("waits to move: {message}"),
                Some(phase) if message.is_empty() => format!("moves ({phase})"),
                Some(phase) => format!("moves ({phase}): {message}"),
                None => {
                    "waits for the controller of LocalReplicaSets, which has not seen the request"
                        .to_owned()
                }
            };
        }
        let has = |what: &str| {
            let opts_out = |mark: &&String| mark.ends_with("=false");
            marks
                .iter()
                .any(|mark| mark.contains(what) && !opts_out(mark))
        };
        let is_lost = has(OUT_OF_SERVICE) || has(GONE);
        let text = if !self.exists {
            "does not exist any more"
        } else if has(DELETED) {
            "is being deleted"
        } else {
            match self.kind {
                LocalKind::LocalReplicaSet if has(EVICT) || is_lost => match self.policy {
                    Some(_) => NOT_REQUESTED,
                    None => {
                        "is evicted within the budget of its set, under another name: the set has no MigrationPolicy"
                    }
                },
                LocalKind::LocalReplicaSet if has(NOT_READY) => {
                    "stays until its node has not been ready for nodeTimeoutSeconds of its set"
                }
                LocalKind::ReplicaSet if is_lost => "is deleted by Kubernetes: its node is gone",
                LocalKind::ReplicaSet if has(EVICT) => NOT_REQUESTED,
                LocalKind::ReplicaSet if has(NOT_READY) => {
                    "stays until Kubernetes deletes it: its node is not ready"
                }
                _ => "stays: nobody asks it to leave its node",
            }
        };
        text.to_owned()
    }
}

/// Explains a pod.
///
/// # Errors
/// If there is neither such a pod nor a request for one, or it belongs to no LocalReplicaSet or ReplicaSet.
pub async fn pod(
    cluster: &ClusterClient,
    (namespace, name): (&str, &str),
) -> Result<PodExplanation, EvictionError> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    let pod = cluster.call("read the pod", pods.get_opt(name)).await?;
    let all = migration::list(cluster, Some(namespace)).await?;
    let mut of_pod = all.iter().filter(|request| request.spec.pod_name == name);
    let mut requests: Vec<_> = of_pod.clone().map(RequestState::of).collect();
    // The latest first, of those that have ended.
    requests.reverse();
    requests.sort_by_key(|request| request.has_ended);
    let named = format!("pod {namespace}/{name}");
    let (kind, set) = if let Some(pod) = &pod {
        set_of(pod).ok_or(EvictionError::NotMigrated(named))?
    } else {
        // It is being made again, or was.
        let last = of_pod.next_back();
        let last = last.and_then(|request| set_of_request(request.status.as_ref()?));
        last.ok_or(EvictionError::NotFound(named))?
    };
    let node_name = pod
        .as_ref()
        .and_then(|pod| pod.spec.as_ref()?.node_name.clone());
    let node = match node_name {
        Some(node) => Some(node_state(cluster, &node).await?),
        None => None,
    };
    let (policy, conditions) = match kind {
        LocalKind::LocalReplicaSet => of_local_set(cluster, namespace, &set).await?,
        // Pods of Deployments belong to ReplicaSets.
        LocalKind::ReplicaSet | LocalKind::Deployment => {
            (of_native_set(cluster, namespace, &set).await?, Vec::new())
        }
    };
    let marks = pod.as_ref().map(|pod| marks_of_pod(kind, pod));
    Ok(PodExplanation {
        namespace: namespace.to_owned(),
        pod: name.to_owned(),
        exists: pod.is_some(),
        kind,
        replica_set: set,
        policy,
        node,
        marks: marks.unwrap_or_default(),
        requests,
        conditions,
    })
}

/// Explains a node.
///
/// # Errors
/// If there is no such node and no pod on it.
pub async fn node(cluster: &ClusterClient, name: &str) -> Result<NodeExplanation, EvictionError> {
    let node = node_state(cluster, name).await?;
    let pods: Api<Pod> = Api::all(cluster.client());
    let fields = format!("spec.nodeName={name},status.phase!=Succeeded,status.phase!=Failed");
    let on_node = ListParams::default().fields(&fields);
    let pods = cluster.call("list pods", pods.list(&on_node)).await?.items;
    if pods.is_empty() && node.marks == [GONE] {
        return Err(EvictionError::NotFound(format!("node {name}")));
    }
    let requests = migration::list(cluster, None).await?;
    let pods = pods.iter().filter_map(|pod| {
        let (kind, replica_set) = set_of(pod)?;
        let is_of_pod = |request: &&MigrationRequest| {
            let uid = request.spec.pod_uid.as_ref();
            request.namespace() == pod.namespace()
                && request.spec.pod_name == pod.name_any()
                && uid.is_none_or(|uid| Some(uid) == pod.metadata.uid.as_ref())
        };
        let of_pod = requests.iter().filter(is_of_pod);
        let open = of_pod.clone().map(RequestState::of);
        // One that a person has cancelled says why no other one is made.
        let ended = of_pod.filter(|of| of.spec.cancel && of.spec.pod_uid.is_some());
        let ended = ended.map(RequestState::of).next_back();
        Some(PodOnNode {
            namespace: pod.namespace().unwrap_or_default(),
            pod: pod.name_any(),
            kind,
            replica_set,
            request: open.into_iter().find(|state| !state.has_ended).or(ended),
        })
    });
    let mut pods: Vec<_> = pods.collect();
    pods.sort_by(|a, b| (&a.namespace, &a.pod).cmp(&(&b.namespace, &b.pod)));
    Ok(NodeExplanation { node, pods })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn as_kind<S: Serializer>(kind: &LocalKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

impl RequestState {
    fn of(request: &MigrationRequest) -> Self {
        let status = request.status.clone().unwrap_or_default();
        Self {
            name: request.name_any(),
            cause: request.spec.cause.to_string(),
            reason: request.spec.reason.clone(),
            phase: status
                .phase
                .map_or_else(String::new, |phase| phase.to_string()),
            has_ended: status.ended().is_some(),
            wait_reason: status.reason,
            message: status.message,
            until: status.until,
            deadline: status.deadline,
        }
    }
}

async fn node_state(cluster: &ClusterClient, name: &str) -> Result<NodeState, RequestError> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = cluster.call("read the node", nodes.get_opt(name)).await?;
    Ok(NodeState {
        name: name.to_owned(),
        marks: node.map_or_else(|| vec![GONE.to_owned()], |node| marks_of_node(&node)),
    })
}

fn marks_of_node(node: &Node) -> Vec<String> {
    let mut marks = Vec::new();
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .into_iter()
        .find(|condition| condition.type_ == "Ready");
    if let Some(ready) = ready.filter(|ready| ready.status != "True") {
        let since = ready.last_transition_time.as_ref();
        let since = since.map_or_else(String::new, |time| format!(" since {:.0}", time.0));
        marks.push(format!("{NOT_READY}{since}"));
    }
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    if taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE) {
        marks.push(format!("taint {OUT_OF_SERVICE}"));
    }
    if let Some(value) = node.labels().get(EVICT).filter(|value| *value != "false") {
        marks.push(format!("label {EVICT}={value}"));
    }
    let mark = node.annotations().get(MAINTENANCE);
    if let Some(mark) = mark.and_then(|mark| MaintenanceMark::parse(mark)) {
        let time = |what: &str, time: Option<Time>| {
            time.map_or_else(String::new, |time| format!(", {what} {:.0}", time.0))
        };
        let (until, deadline) = (time("until", mark.until), time("deadline", mark.deadline));
        marks.push(format!("Maintenance {}{until}{deadline}", mark.name));
    }
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        marks.push("cordoned".to_owned());
    }
    marks
}

fn marks_of_pod(kind: LocalKind, pod: &Pod) -> Vec<String> {
    let mut marks = Vec::new();
    // The annotation counts before the label, and neither counts on pods of ReplicaSets.
    let asks = (kind == LocalKind::LocalReplicaSet)
        .then(|| (pod.annotations().get(EVICT), pod.labels().get(EVICT)));
    match asks.unwrap_or_default() {
        (Some(value), _) if value == "false" => marks.push(format!("annotation {EVICT}=false")),
        (Some(value), _) => marks.push(format!("{EVICT}={value}")),
        (None, Some(value)) if value != "false" => marks.push(format!("label {EVICT}={value}")),
        _ => {}
    }
    if let Some(since) = &pod.metadata.deletion_timestamp {
        marks.push(format!("{DELETED} since {:.0}", since.0));
    }
    marks
}

/// The kind and name of the set of a pod, if pods of that are migrated.
fn set_of(pod: &Pod) -> Option<(LocalKind, String)> {
    let (kind, name) = eviction::set_of(pod.owner_references())?;
    Some((kind, name.to_owned()))
}

/// The kind and name of the set of the pod of a request, once the controller knows it.
fn set_of_request(status: &MigrationRequestStatus) -> Option<(LocalKind, String)> {
    let kind = match status.native {
        Some(_) => LocalKind::ReplicaSet,
        None => LocalKind::LocalReplicaSet,
    };
    let name = status.replica_set.clone();
    (!name.is_empty()).then_some((kind, name))
}

/// The name of the policy of a LocalReplicaSet, and its conditions.
async fn of_local_set(
    cluster: &ClusterClient,
    namespace: &str,
    name: &str,
) -> Result<(Option<String>, Vec<SetCondition>), RequestError> {
    let sets: Api<LocalReplicaSet> = Api::namespaced(cluster.client(), namespace);
    let read = sets.get_opt(name);
    let Some(set) = cluster.call("read the localreplicaset", read).await? else {
        return Ok((None, Vec::new()));
    };
    let status = set.status.as_ref();
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    let is_shown = |type_: &str| CONDITIONS.iter().any(|shown| shown.as_str() == type_);
    let conditions = conditions.filter(|of| of.status == "True" && is_shown(&of.type_));
    let conditions = conditions.map(|condition| SetCondition {
        r#type: condition.type_.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    });
    let conditions = conditions.collect();
    if let Some(policy) = &set.spec.migration_policy {
        return Ok((Some(policy.clone()), conditions));
    }
    Ok((
        selecting(cluster, namespace, set.labels()).await?,
        conditions,
    ))
}

/// The name of the policy of a ReplicaSet.
async fn of_native_set(
    cluster: &ClusterClient,
    namespace: &str,
    name: &str,
) -> Result<Option<String>, RequestError> {
    let sets: Api<ReplicaSet> = Api::namespaced(cluster.client(), namespace);
    let read = sets.get_metadata_opt(name);
    match cluster.call("read the replicaset", read).await? {
        Some(set) => selecting(cluster, namespace, set.labels()).await,
        None => Ok(None),
    }
}

/// The policy that selects sets with these labels.
async fn selecting(
    cluster: &ClusterClient,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Option<String>, RequestError> {
    let policies: Api<MigrationPolicy> = Api::namespaced(cluster.client(), namespace);
    let all = ListParams::default();
    let read = policies.list(&all);
    let policies = cluster.call("list migrationpolicies", read).await?.items;
    let selects = |policy: &&MigrationPolicy| {
        ValidMigrationPolicy::check(&policy.spec).is_ok_and(|policy| policy.selects(labels))
    };
    let selecting = policies.iter().filter(selects);
    Ok(selecting.map(ResourceExt::name_any).min())
}
