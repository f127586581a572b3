//! Asks the controller of LocalReplicaSets to move pods off their nodes (M1), and reads how far that is: MigrationRequests.

use fedrs_api::{AwaitedAction, MigrationPhase, MigrationRequest, MigrationRequestSpec, names};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        authentication::v1::SelfSubjectReview,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, ResourceExt, api::ListParams, api::PostParams};
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    eviction::{EvictionError, set_of},
    object::{ObjectRef, Write, WriteMode},
};

/// The options of a MigrationRequest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationOptions {
    /// Why, for people.
    pub reason: String,
    /// When the pod is moved whatever holds it up.
    pub deadline: Option<Timestamp>,
}

/// A pod that was asked to leave its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The MigrationRequest.
    pub request: String,
    /// Whether it was there already.
    pub is_old: bool,
}

/// Asks a pod of a LocalReplicaSet, or of a native ReplicaSet, to leave its node.
pub async fn request_pod(
    cluster: &ClusterClient,
    (namespace, name): (&str, &str),
    options: &MigrationOptions,
) -> Result<Requested, EvictionError> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    let pod = cluster.call("read the pod", pods.get_opt(name)).await?;
    let named = format!("pod {namespace}/{name}");
    let pod = pod.ok_or_else(|| EvictionError::NotFound(named.clone()))?;
    if set_of(pod.owner_references()).is_none() {
        return Err(EvictionError::NotMigrated(named));
    }
    let known = listed(cluster, Some(namespace)).await?;
    Ok(request(cluster, &pod, &known, options).await?)
}

/// Asks all pods of LocalReplicaSets and native ReplicaSets on a node to leave it. Returns whether the node is cordoned, too.
pub async fn request_node(
    cluster: &ClusterClient,
    name: &str,
    options: &MigrationOptions,
) -> Result<(Vec<Requested>, bool), EvictionError> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = cluster.call("read the node", nodes.get_opt(name)).await?;
    let node = node.ok_or_else(|| EvictionError::NotFound(format!("node {name}")))?;
    let spec = node.spec.unwrap_or_default();
    let pods: Api<Pod> = Api::all(cluster.client());
    let on_node = ListParams::default().fields(&format!("spec.nodeName={name}"));
    let pods = cluster.call("list pods", pods.list(&on_node)).await?;
    let known = listed(cluster, None).await?;
    let mut requested = Vec::new();
    let migrated = |pod: &&Pod| set_of(pod.owner_references()).is_some();
    for pod in pods.items.iter().filter(migrated) {
        requested.push(request(cluster, pod, &known, options).await?);
    }
    Ok((requested, spec.unschedulable == Some(true)))
}

/// Cancels a MigrationRequest, unless it has begun.
pub async fn cancel(
    cluster: &ClusterClient,
    (namespace, name): (&str, &str),
) -> Result<(), EvictionError> {
    let object = ObjectRef::namespaced::<MigrationRequest>(namespace, name);
    let named = format!("migrationrequest {namespace}/{name}");
    let Some(live) = cluster.get(&object).await? else {
        return Err(EvictionError::NotFound(named));
    };
    let phase = live["status"]["phase"].as_str();
    let phase = phase.and_then(MigrationPhase::parse);
    if let Some(end) = phase.filter(|phase| phase.is_end()) {
        return Err(EvictionError::Ended(named, end));
    }
    let write = Write::Patch(json!({ "spec": { "cancel": true } }));
    cluster.write(&object, &write, WriteMode::Persist).await?;
    Ok(())
}

/// What a person confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirms {
    /// What the MigrationRequest waits for.
    WhatIsAwaited,
    /// That the machine of the pod is destroyed: nothing can prove it but a look at it.
    MachineIsDestroyed,
}

/// Confirms what a MigrationRequest waits for (M4, M7, M11). Returns the user's name, which is recorded, and what was confirmed.
pub async fn confirm(
    cluster: &ClusterClient,
    (namespace, name): (&str, &str),
    confirms: Confirms,
) -> Result<(String, AwaitedAction), EvictionError> {
    let object = ObjectRef::namespaced::<MigrationRequest>(namespace, name);
    let named = format!("migrationrequest {namespace}/{name}");
    let Some(live) = cluster.get(&object).await? else {
        return Err(EvictionError::NotFound(named));
    };
    let awaited = awaited(&named, &live["status"])?;
    let is_destroyed = confirms == Confirms::MachineIsDestroyed;
    let user = user_name(cluster).await?;
    let spec = match awaited {
        AwaitedAction::ShutDown if !is_destroyed => {
            return Err(EvictionError::NotShutDown(named));
        }
        AwaitedAction::ConfirmDestroyed if !is_destroyed => {
            let node = live["status"]["node"].as_str().unwrap_or_default();
            return Err(EvictionError::NotProved(named, format!("node {node}")));
        }
        AwaitedAction::Start => return Err(EvictionError::NotStarted(named)),
        AwaitedAction::ShutDown
        | AwaitedAction::ConfirmStopped
        | AwaitedAction::ConfirmDestroyed => {
            json!({ "confirmation": { "confirmedBy": user, "machineIsDestroyed": is_destroyed } })
        }
        AwaitedAction::ConfirmActivation => json!({ "activationConfirmedBy": user }),
        AwaitedAction::ConfirmShutdown => json!({ "shutdownConfirmedBy": user }),
    };
    // What is confirmed is what was read: if it waits for something else by now, it was changed.
    let metadata = &live["metadata"];
    let metadata =
        json!({ "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] });
    let write = Write::Patch(json!({ "metadata": metadata, "spec": spec }));
    cluster.write(&object, &write, WriteMode::Persist).await?;
    Ok((user, awaited))
}

/// What a MigrationRequest with this status waits for.
fn awaited(named: &str, status: &Value) -> Result<AwaitedAction, EvictionError> {
    let awaits = status["awaits"].as_str().and_then(AwaitedAction::parse);
    let phase = status["phase"].as_str().and_then(MigrationPhase::parse);
    match (phase, awaits) {
        (Some(end), _) if end.is_end() => Err(EvictionError::Ended(named.to_owned(), end)),
        (_, Some(awaits)) => Ok(awaits),
        (phase, None) => {
            let phase = phase.map_or("unknown", MigrationPhase::as_str);
            Err(EvictionError::NotAwaited(named.to_owned(), phase))
        }
    }
}

/// Starts a pod that a person has to start (M7, M12): it loses the scheduling gate.
pub async fn start(
    cluster: &ClusterClient,
    (namespace, name): (&str, &str),
) -> Result<(), EvictionError> {
    let object = ObjectRef::namespaced::<Pod>(namespace, name);
    let named = format!("pod {namespace}/{name}");
    let pod = cluster.get(&object).await?;
    let pod = pod.ok_or_else(|| EvictionError::NotFound(named.clone()))?;
    let gates = pod["spec"]["schedulingGates"].as_array();
    let mut gates = gates.cloned().unwrap_or_default();
    let before = gates.len();
    gates.retain(|gate| gate["name"] != *names::START);
    if gates.len() == before {
        return Err(EvictionError::NotGated(named));
    }
    let metadata = &pod["metadata"];
    let metadata =
        json!({ "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] });
    let patch = json!({ "metadata": metadata, "spec": { "schedulingGates": gates } });
    let write = Write::Patch(patch);
    cluster.write(&object, &write, WriteMode::Persist).await?;
    Ok(())
}

/// The user's name, as the API server knows it.
async fn user_name(cluster: &ClusterClient) -> Result<String, RequestError> {
    let reviews: Api<SelfSubjectReview> = Api::all(cluster.client());
    let parameters = PostParams::default();
    let review = SelfSubjectReview::default();
    let reviewed = reviews.create(&parameters, &review);
    let reviewed = cluster.call("read the user's name", reviewed).await?;
    let user = reviewed.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}

/// The MigrationRequests of a namespace, or of all; the oldest first.
pub async fn list(
    cluster: &ClusterClient,
    namespace: Option<&str>,
) -> Result<Vec<MigrationRequest>, RequestError> {
    let mut requests = listed(cluster, namespace).await?;
    let age = |request: &MigrationRequest| request.creation_timestamp().map(|time| time.0);
    requests.sort_by_key(|request| (age(request), request.namespace(), request.name_any()));
    Ok(requests)
}

async fn listed(
    cluster: &ClusterClient,
    namespace: Option<&str>,
) -> Result<Vec<MigrationRequest>, RequestError> {
    let requests: Api<MigrationRequest> = match namespace {
        Some(namespace) => Api::namespaced(cluster.client(), namespace),
        None => Api::all(cluster.client()),
    };
    let all = ListParams::default();
    let listed = requests.list(&all);
    Ok(cluster.call("list migrationrequests", listed).await?.items)
}

/// The request of a person for the pod: the one of the `known` that has not ended, or a new one.
async fn request(
    cluster: &ClusterClient,
    pod: &Pod,
    known: &[MigrationRequest],
    options: &MigrationOptions,
) -> Result<Requested, RequestError> {
    let namespace = pod.namespace().unwrap_or_default();
    let (name, uid) = (pod.name_any(), pod.uid());
    let is_open = |request: &&MigrationRequest| {
        let status = request.status.as_ref();
        let has_ended = status.is_some_and(|status| status.ended().is_some());
        let is_own = request.owner_references().is_empty();
        !has_ended && !request.spec.cancel && is_own && request.spec.pod_uid == uid
    };
    let requested = |request: String, is_old| Requested {
        namespace: namespace.clone(),
        pod: name.clone(),
        request,
        is_old,
    };
    if let Some(open) = known.iter().find(is_open) {
        return Ok(requested(open.name_any(), true));
    }
    let spec = MigrationRequestSpec {
        pod_name: name.clone(),
        pod_uid: uid,
        reason: options.reason.clone(),
        deadline: options.deadline.map(Time),
        ..MigrationRequestSpec::default()
    };
    let mut request = MigrationRequest::new("", spec);
    request.metadata.name = None;
    request.metadata.generate_name = Some(format!("{name}-"));
    let requests: Api<MigrationRequest> = Api::namespaced(cluster.client(), &namespace);
    let parameters = PostParams::default();
    let created = requests.create(&parameters, &request);
    let created = cluster.call("create a migrationrequest", created).await?;
    Ok(requested(created.name_any(), false))
}
