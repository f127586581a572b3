//! What kwok reports of nodes and pods, in the place of kubelets: its stages.
//!
//! ```text
//! pod bound -> all containers run -> ready, once its readiness gates are open
//! image changed -> that container has another id, and one restart more
//! CPU or memory changed -> that container has them, and runs on
//! image of a registry `*.invalid` -> waiting: it can't be pulled
//! deletion -> gone at once
//! ```

use serde_json::{Value, json};

const READY_NODE: &str = r"{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
phase: Running
";

/// In jq: `containers` if containers are to be started, `readiness` if the condition `Ready` is to follow the others, `settled`
/// otherwise. One expression decides, so that no two stages apply to one pod.
const POD_STATE: &str = r#"
[.spec.containers[] | [.name, .image, .resources // {}]] as $wanted
| [.status.containerStatuses[]? | [.name, .image, .resources // {}]] as $found
| [.status.conditions[]? | select(.status == "True") | .type] as $true
| (["ContainersReady", .spec.readinessGates[]?.conditionType] - $true == []) as $ready
| if .status.phase == "Failed" or .status.phase == "Succeeded" then "settled"
  elif ($wanted | sort) != ($found | sort) then "containers"
  elif $ready != ($true | index("Ready") != null) then "readiness"
  else "settled" end
"#;

/// Defines `$true`, the types of the conditions that are true, and `$open`, whether the pod's readiness gates are open.
const GATES: &str = r#"{{ $true := dict }}
{{ range .status.conditions }}{{ if eq .status "True" }}{{ $_ := set $true .type true }}{{ end }}{{ end }}
{{ $open := true }}
{{ range .spec.readinessGates }}{{ if not (hasKey $true .conditionType) }}{{ $open = false }}{{ end }}{{ end }}
"#;

/// After [`GATES`]. Address, start time and the containers whose image has not changed stay as they are, but for CPU and memory.
const CONTAINERS: &str = r#"{{ $now := Now }}
{{ $known := dict }}
{{ range .status.containerStatuses }}{{ $_ := set $known .name . }}{{ end }}
{{ $ready := true }}
{{ $started := false }}
{{ range .spec.containers }}
{{ if .image | splitList "/" | first | hasSuffix ".invalid" }}{{ $ready = false }}{{ else }}{{ $started = true }}{{ end }}
{{ if hasKey $known .name }}{{ if hasKey (get $known .name) "containerID" }}{{ $started = true }}{{ end }}{{ end }}
{{ end }}
phase: {{ if $started }}Running{{ else }}Pending{{ end }}
startTime: {{ .status.startTime | default $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ .status.podIP | default (PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" )) | Quote }}
conditions:
{{ range $type := list "PodReadyToStartContainers" "Initialized" }}
- type: {{ $type | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
- type: ContainersReady
  status: {{ $ready | ternary "True" "False" | Quote }}
  lastTransitionTime: {{ $now | Quote }}
- type: Ready
  status: {{ and $ready $open | ternary "True" "False" | Quote }}
  lastTransitionTime: {{ $now | Quote }}
containerStatuses:
{{ range .spec.containers }}
{{ $before := dict }}
{{ if hasKey $known .name }}{{ $before = get $known .name }}{{ end }}
{{ if eq .image ($before.image | default "") }}
- {{ set $before "resources" (.resources | default dict) | toJson }}
{{ else if .image | splitList "/" | first | hasSuffix ".invalid" }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  resources: {{ .resources | default dict | toJson }}
  imageID: ""
  ready: false
  started: false
  restartCount: {{ $before.restartCount | default 0 }}
  state:
    running: null
    waiting:
      reason: ImagePullBackOff
      message: {{ printf "Back-off pulling image %q" .image | Quote }}
{{ else }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  resources: {{ .resources | default dict | toJson }}
  imageID: {{ .image | sha256sum | printf "kwok@sha256:%s" | Quote }}
  containerID: {{ printf "kwok://%s" uuidv4 | Quote }}
  ready: true
  started: true
  restartCount: {{ if hasKey $before "containerID" }}{{ $before.restartCount | int | add1 }}{{ else }}0{{ end }}
  state:
    waiting: null
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
{{ end }}
"#;

/// After [`GATES`].
const READINESS: &str = r#"conditions:
- type: Ready
  status: {{ and (hasKey $true "ContainersReady") $open | ternary "True" "False" | Quote }}
  lastTransitionTime: {{ Now | Quote }}
"#;

/// In jq: whether kwok is to delete the pod. A deletion without a grace period, as kwok's own, changes the pod before it is gone: kwok
/// would delete again, by the name of a pod that may have been recreated meanwhile, and again after that.
const BEING_DELETED: &str =
    ".metadata | (.deletionTimestamp != null and .deletionGracePeriodSeconds != 0) | tostring";

/// kwok's stages, as a file for its configuration.
pub(crate) fn stages() -> String {
    let not_ready = json!({ "key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status", "operator": "NotIn", "values": ["True"] });
    let not_deleted = json!({ "key": ".metadata.deletionTimestamp", "operator": "DoesNotExist" });
    let pod = |state: &str, status: &str| {
        let selected = json!({ "key": POD_STATE.trim(), "operator": "In", "values": [state] });
        stage(
            &format!("pod-{state}"),
            "Pod",
            &[not_deleted.clone(), selected],
            &json!({ "patches": [patch(status)] }),
        )
    };
    let stages = [
        stage(
            "node-ready",
            "Node",
            &[not_ready],
            &json!({ "statusTemplate": READY_NODE }),
        ),
        pod("containers", CONTAINERS),
        // Also after the node controller has said of the pods of a lost node that they are not ready.
        pod("readiness", READINESS),
        stage(
            "pod-gone",
            "Pod",
            &[json!({ "key": BEING_DELETED, "operator": "In", "values": ["true"] })],
            &json!({ "finalizers": { "empty": true }, "delete": true }),
        ),
    ];
    stages.map(|stage| format!("{stage:#}\n")).join("---\n")
}

/// A patch of the status of the pod that was seen: kwok repeats rejected requests later, by the name of a pod that may have been
/// recreated meanwhile.
fn patch(status: &str) -> Value {
    let status = status.trim_end().replace('\n', "\n  ");
    let uid = "metadata:\n  uid: {{ .metadata.uid | Quote }}\n";
    let template = format!("{GATES}{uid}status:\n  {status}\n");
    json!({ "subresource": "status", "type": "strategic", "template": template })
}

fn stage(name: &str, kind: &str, selected: &[Value], next: &Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": { "name": name },
        "spec": {
            "resourceRef": { "apiGroup": "v1", "kind": kind },
            "selector": { "matchExpressions": selected },
            "next": next,
        },
    })
}
