//! Defaults of the built-in kinds, as the API server's decoder sets them; the writer owns them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::object::{annotation, list};

/// Sets the defaults of a decoded object. Kinds without defaults do not change.
pub(crate) fn defaults(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => {
            if object["spec"].is_null() {
                object["spec"] = json!({});
            }
            default_pod_spec(&mut object["spec"]);
            default_pod_resources(object);
        }
        "PodTemplate" => default_template(&mut object["template"]),
        "ReplicaSet" => {
            set(&mut object["spec"], "replicas", 1);
            default_template(&mut object["spec"]["template"]);
        }
        "Deployment" => default_deployment(&mut object["spec"]),
        "Namespace" => default_namespace(object),
        "Secret" => default_secret(object),
        "Service" => default_service(&mut object["spec"]),
        "CustomResourceDefinition" => default_custom_resource_definition(&mut object["spec"]),
        "ClusterRoleBinding" | "RoleBinding" => default_binding(object),
        "HorizontalPodAutoscaler" => default_autoscaler(object),
        _ => {}
    }
}

/// Sets a field that is absent.
fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object.is_null() {
        *object = Value::Object(Map::new());
    }
    if let Value::Object(fields) = object {
        fields.entry(field).or_insert_with(|| value.into());
    }
}

fn each<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    object
        .get_mut(list)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

fn default_template(template: &mut Value) {
    set(template, "metadata", json!({}));
    set(template, "spec", json!({}));
    default_pod_spec(&mut template["spec"]);
}

/// The CPU utilization in percent that an autoscaler without metrics aims at.
const DEFAULT_UTILIZATION: i64 = 80;

fn default_autoscaler(object: &mut Value) {
    let is_older = object["apiVersion"] == "autoscaling/v1";
    // Metrics that `autoscaling/v1` has no field for.
    let has_others = annotation(object, "autoscaling.alpha.kubernetes.io/metrics").is_some();
    let spec = &mut object["spec"];
    set(spec, "minReplicas", 1);
    if is_older && !has_others {
        set(spec, "targetCPUUtilizationPercentage", DEFAULT_UTILIZATION);
    } else if !is_older && list(spec, "/metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION});
        let resource = json!({"name": "cpu", "target": target});
        spec["metrics"] = json!([{"type": "Resource", "resource": resource}]);
    }
    if let Some(behavior) = spec
        .get_mut("behavior")
        .filter(|behavior| behavior.is_object())
    {
        let policy =
            |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
        for direction in ["scaleUp", "scaleDown"] {
            set(behavior, direction, json!({}));
            let rules = &mut behavior[direction];
            set(rules, "selectPolicy", "Max");
            if direction == "scaleUp" {
                set(rules, "stabilizationWindowSeconds", 0);
                set(
                    rules,
                    "policies",
                    json!([policy("Pods", 4), policy("Percent", 100)]),
                );
            } else {
                set(rules, "policies", json!([policy("Percent", 100)]));
            }
        }
    }
}

/// Defaults of a pod's specification, in a pod or in a template.
pub(super) fn default_pod_spec(spec: &mut Value) {
    if spec.is_null() {
        return;
    }
    set(spec, "restartPolicy", "Always");
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "securityContext", json!({}));
    // The two names of one field have the same value.
    let account = spec
        .get("serviceAccountName")
        .or_else(|| spec.get("serviceAccount"))
        .cloned();
    if let Some(account) = account {
        spec["serviceAccount"] = account.clone();
        spec["serviceAccountName"] = account;
    }
    let host_network = spec["hostNetwork"] == Value::Bool(true);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in each(spec, list) {
            default_container(container, host_network, list == "ephemeralContainers");
        }
    }
    for volume in each(spec, "volumes") {
        default_volume(volume);
    }
}

fn default_container(container: &mut Value, host_network: bool, ephemeral: bool) {
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if pulls_always(image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    set(container, "imagePullPolicy", policy);
    if !ephemeral {
        set(container, "resources", json!({}));
    }
    for port in each(container, "ports") {
        set(port, "protocol", "TCP");
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            set(port, "hostPort", number);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            default_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(get) = container
            .get_mut("lifecycle")
            .and_then(|life| life.get_mut(hook))
            .and_then(|hook| hook.get_mut("httpGet"))
        {
            default_http_get(get);
        }
    }
    for variable in each(container, "env") {
        if let Some(reference) = variable
            .get_mut("valueFrom")
            .and_then(|from| from.get_mut("fieldRef"))
        {
            set(reference, "apiVersion", "v1");
        }
    }
}

/// Whether an image without a pull policy is pulled each time: no tag, or `latest`, and no digest.
fn pulls_always(image: &str) -> bool {
    if image.is_empty() || image.contains('@') {
        return image.is_empty();
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn default_http_get(get: &mut Value) {
    set(get, "path", "/");
    set(get, "scheme", "HTTP");
}

fn default_probe(probe: &mut Value) {
    set(probe, "timeoutSeconds", 1);
    set(probe, "periodSeconds", 10);
    set(probe, "successThreshold", 1);
    set(probe, "failureThreshold", 3);
    if let Some(get) = probe.get_mut("httpGet") {
        default_http_get(get);
    }
    if let Some(grpc) = probe.get_mut("grpc") {
        set(grpc, "service", "");
    }
}

fn default_volume(volume: &mut Value) {
    const MODE: i32 = 0o644;
    let named_only = volume
        .as_object()
        .is_some_and(|fields| fields.len() == 1 && fields.contains_key("name"));
    if named_only {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            set(source, "defaultMode", MODE);
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        set(path, "type", "");
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in each(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                set(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = source.get_mut("downwardAPI") {
                default_field_references(downward);
            }
        }
    }
    if let Some(downward) = volume.get_mut("downwardAPI") {
        default_field_references(downward);
    }
}

fn default_field_references(downward: &mut Value) {
    for item in each(downward, "items") {
        if let Some(reference) = item.get_mut("fieldRef") {
            set(reference, "apiVersion", "v1");
        }
    }
}

/// Defaults of pods that templates do not have: requests from limits, service links, host ports.
fn default_pod_resources(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec") else {
        return;
    };
    set(spec, "enableServiceLinks", true);
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let Some(limits) = container["resources"]
                .get("limits")
                .and_then(Value::as_object)
                .cloned()
            else {
                continue;
            };
            for (resource, limit) in limits {
                set(&mut container["resources"]["requests"], &resource, limit);
            }
        }
    }
}

fn default_deployment(spec: &mut Value) {
    set(spec, "replicas", 1);
    set(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    set(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        set(&mut strategy["rollingUpdate"], "maxUnavailable", "25%");
        set(&mut strategy["rollingUpdate"], "maxSurge", "25%");
    }
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "progressDeadlineSeconds", 600);
    default_template(&mut spec["template"]);
}

/// Moves `stringData` into `data`.
fn default_secret(object: &mut Value) {
    set(object, "type", "Opaque");
    let texts = object
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"));
    for (key, text) in texts
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
        set(&mut object["data"], key, "");
        object["data"][key.as_str()] = encoded.into();
    }
}

fn default_namespace(object: &mut Value) {
    if let Some(name) = object["metadata"].get("name").cloned() {
        set(
            &mut object["metadata"]["labels"],
            "kubernetes.io/metadata.name",
            name,
        );
    }
}

fn default_service(spec: &mut Value) {
    set(spec, "sessionAffinity", "None");
    set(spec, "type", "ClusterIP");
    for port in each(spec, "ports") {
        set(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            set(port, "targetPort", number);
        }
    }
}

fn default_custom_resource_definition(spec: &mut Value) {
    set(spec, "conversion", json!({ "strategy": "None" }));
    let Some(names) = spec.get_mut("names") else {
        return;
    };
    if let Some(kind) = names.get("kind").and_then(Value::as_str).map(str::to_owned) {
        set(names, "singular", kind.to_lowercase());
        set(names, "listKind", format!("{kind}List"));
    }
}

fn default_binding(object: &mut Value) {
    set(
        &mut object["roleRef"],
        "apiGroup",
        "rbac.authorization.k8s.io",
    );
    for subject in each(object, "subjects") {
        let group = if subject["kind"] == "ServiceAccount" {
            ""
        } else {
            "rbac.authorization.k8s.io"
        };
        if !group.is_empty() {
            set(subject, "apiGroup", group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("nginx", true)]
    #[case("nginx:latest", true)]
    #[case("nginx:1.25", false)]
    #[case("registry:5000/nginx", true)]
    #[case("registry:5000/nginx:1", false)]
    #[case("nginx@sha256:0000", false)]
    fn an_image_is_always_pulled_without_a_tag(#[case] image: &str, #[case] always: bool) {
        assert_eq!(pulls_always(image), always);
    }

    #[test]
    fn a_pod_gets_the_api_servers_defaults() {
        let mut pod = json!({ "spec": { "containers": [{ "name": "a", "image": "nginx:1", "ports": [{ "containerPort": 80 }],
            "resources": { "limits": { "cpu": "1" } } }] } });
        defaults("Pod", &mut pod);
        let expected = json!({ "spec": {
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30, "securityContext": {}, "enableServiceLinks": true,
            "containers": [{ "name": "a", "image": "nginx:1", "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "ports": [{ "containerPort": 80, "protocol": "TCP" }],
                "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": "1" } } }]
        } });
        assert_eq!(pod, expected);
    }

    #[test]
    fn string_data_of_a_secret_becomes_data() {
        let mut secret = json!({ "stringData": { "a": "b" }, "data": { "a": "", "c": "ZA==" } });
        defaults("Secret", &mut secret);
        assert_eq!(
            secret,
            json!({ "type": "Opaque", "data": { "a": "Yg==", "c": "ZA==" } })
        );
    }

    #[test]
    fn a_replica_set_gets_one_replica_and_no_labels_of_its_template() {
        let mut set = json!({ "spec": { "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [] } } } });
        defaults("ReplicaSet", &mut set);
        assert_eq!(set["spec"]["replicas"], 1);
        assert_eq!(set.get("metadata"), None);
        assert_eq!(
            set["spec"]["template"]["spec"].get("enableServiceLinks"),
            None
        );
    }
}
