//! The fields that the API server itself writes into an object: admission plugins and the strategies of kinds.
//!
//! No manager owns these fields, so this runs after ownership has been recorded.

use serde_json::{Value, json};

use super::checks::items;
use super::pod_resources::qos_class;

/// The default seconds for which a pod stays on a node that is not ready or unreachable.
const DEFAULT_TOLERATION_SECONDS: i64 = 300;

/// The default admission plugins that mutate new objects: `ServiceAccount`, `DefaultTolerationSeconds`, `Priority`.
pub(crate) fn admit_create(kind: &str, object: &mut Value) {
    if kind != "Pod" || !object["spec"].is_object() {
        return;
    }
    let spec = &mut object["spec"];
    if spec.get("serviceAccountName").is_none() {
        spec["serviceAccountName"] = "default".into();
        spec["serviceAccount"] = "default".into();
    }
    let priority = match spec["priorityClassName"].as_str() {
        Some("system-node-critical") => 2_000_001_000,
        Some("system-cluster-critical") => 2_000_000_000,
        _ => 0,
    };
    spec["priority"] = priority.into();
    if spec.get("preemptionPolicy").is_none() {
        spec["preemptionPolicy"] = "PreemptLowerPriority".into();
    }
    tolerate_lost_nodes(spec);
}

/// The default admission plugin that mutates updated objects: `DefaultTolerationSeconds`.
pub(crate) fn admit_update(kind: &str, object: &mut Value) {
    if kind == "Pod" && object["spec"].is_object() {
        tolerate_lost_nodes(&mut object["spec"]);
    }
}

fn tolerate_lost_nodes(spec: &mut Value) {
    for taint in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        add_toleration(spec, taint);
    }
}

fn add_toleration(spec: &mut Value, taint: &str) {
    let tolerations = spec
        .as_object_mut()
        .expect("a specification is an object")
        .entry("tolerations")
        .or_insert(json!([]));
    let Value::Array(tolerations) = tolerations else {
        return;
    };
    let tolerated = tolerations.iter().any(|one| {
        let key = one["key"].as_str().unwrap_or_default();
        let effect = one["effect"].as_str().unwrap_or_default();
        (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
    });
    if !tolerated {
        tolerations.push(json!({
            "effect": "NoExecute", "key": taint, "operator": "Exists", "tolerationSeconds": DEFAULT_TOLERATION_SECONDS
        }));
    }
}

/// Sets the initial status of a new object and the other fields that only the server writes. The writer's status is dropped.
pub(crate) fn prepare_create(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => {
            let class = qos_class(object);
            object["status"] = json!({ "phase": "Pending", "qosClass": class });
            object["metadata"]["generation"] = 1.into();
            if gated(object) {
                object["status"]["conditions"] = json!([{
                    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": null, "lastTransitionTime": object["metadata"]["creationTimestamp"]
                }]);
            }
        }
        "ReplicaSet" => {
            object["status"] = json!({ "replicas": 0 });
            object["metadata"]["generation"] = 1.into();
        }
        "Deployment"
        | "PodDisruptionBudget"
        | "CustomResourceDefinition"
        | "HorizontalPodAutoscaler" => {
            let status = match kind {
                "PodDisruptionBudget" => {
                    json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 })
                }
                "CustomResourceDefinition" => {
                    json!({ "conditions": null, "acceptedNames": { "kind": "", "plural": "" }, "storedVersions": null })
                }
                "HorizontalPodAutoscaler" if object["apiVersion"] == "autoscaling/v1" => {
                    json!({ "desiredReplicas": 0, "currentReplicas": 0 })
                }
                "HorizontalPodAutoscaler" => {
                    json!({ "desiredReplicas": 0, "currentMetrics": null })
                }
                _ => json!({}),
            };
            object["status"] = status;
            if kind != "HorizontalPodAutoscaler" {
                object["metadata"]["generation"] = 1.into();
            }
        }
        "Namespace" => {
            object["status"] = json!({ "phase": "Active" });
            add_namespace_finalizer(object);
        }
        "ResourceQuota" => object["status"] = json!({}),
        "PersistentVolumeClaim" => object["status"] = json!({ "phase": "Pending" }),
        "Service" => object["status"] = json!({ "loadBalancer": {} }),
        _ => {}
    }
}

fn gated(pod: &Value) -> bool {
    pod["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty())
}

fn add_namespace_finalizer(object: &mut Value) {
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    let spec = object["spec"].as_object_mut().expect("it was made one");
    let finalizers = spec.entry("finalizers").or_insert(json!([]));
    if let Value::Array(names) = finalizers
        && !names.iter().any(|name| name == "kubernetes")
    {
        names.push("kubernetes".into());
    }
}

/// Restores the fields that no update changes; the writer is recorded as owner nevertheless.
pub(crate) fn prepare_update(kind: &str, subresource: &str, old: &Value, new: &mut Value) {
    match (kind, subresource) {
        ("Pod", "status") => new["status"]["qosClass"] = old["status"]["qosClass"].clone(),
        ("Pod", "resize") => keep_all_but_resources(old, new),
        _ => {}
    }
}

/// A resize changes nothing but the resources of containers and sidecars.
fn keep_all_but_resources(old: &Value, new: &mut Value) {
    let asked = std::mem::replace(&mut new["spec"], old["spec"].clone());
    for list in ["containers", "initContainers"] {
        let containers = new["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let asked = items(&asked, list);
            let mut same = asked.filter(|(_, asked)| asked["name"] == container["name"]);
            if let Some((_, asked)) = same.next() {
                container["resources"] = asked["resources"].clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_pod_tolerates_lost_nodes_for_five_minutes() {
        let mut pod = json!({ "metadata": {}, "spec": { "containers": [], "tolerations": [{ "key": "node.kubernetes.io/not-ready", "operator": "Exists" }] } });
        admit_create("Pod", &mut pod);
        let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
        assert_eq!(tolerations.len(), 2);
        assert_eq!(tolerations[1]["key"], "node.kubernetes.io/unreachable");
        assert_eq!(pod["spec"]["serviceAccountName"], "default");
        assert_eq!(pod["spec"]["priority"], 0);
    }

    #[test]
    fn a_pod_loses_no_default_toleration_when_others_are_written() {
        let mut pod = json!({ "spec": { "tolerations": [{ "key": "a", "operator": "Exists" }] } });
        admit_update("Pod", &mut pod);
        let keys = pod["spec"]["tolerations"].as_array().unwrap();
        let keys: Vec<_> = keys
            .iter()
            .map(|toleration| toleration["key"].as_str().unwrap())
            .collect();
        assert_eq!(
            keys,
            [
                "a",
                "node.kubernetes.io/not-ready",
                "node.kubernetes.io/unreachable"
            ]
        );
        let once = pod.clone();
        admit_update("Pod", &mut pod);
        assert_eq!(pod, once);
    }

    #[test]
    fn a_new_pod_is_pending_regardless_of_its_status() {
        let mut pod = json!({ "metadata": {}, "spec": { "containers": [{ "name": "a" }] }, "status": { "phase": "Running" } });
        prepare_create("Pod", &mut pod);
        assert_eq!(
            pod["status"],
            json!({ "phase": "Pending", "qosClass": "BestEffort" })
        );
    }

    #[test]
    fn the_quality_of_service_class_is_immutable() {
        let old = json!({ "status": { "qosClass": "Burstable" } });
        let mut new = json!({ "status": { "qosClass": "Guaranteed", "phase": "Running" } });
        prepare_update("Pod", "status", &old, &mut new);
        let expected = json!({ "status": { "qosClass": "Burstable", "phase": "Running" } });
        assert_eq!(new, expected);
    }
}
