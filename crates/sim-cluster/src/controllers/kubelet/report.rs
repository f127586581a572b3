//! The status of a pod that a kubelet reports: `pod, step -> status`. Pure.

use jiff::Timestamp;
use serde_json::{Value, json};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::clock::to_time;
use crate::controllers::pod::Pod;
use crate::object::{Condition, condition, list, set_condition, text};

use super::lifecycle::{Hold, RESIZE_PENDING, Step, restarts_for_resources, same_image};

/// The addresses of a pod and its node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) host_ip: String,
    pub(crate) pod_ip: String,
}

/// Carries `step` into `pod`'s status.
pub(crate) fn report(pod: &mut Value, step: Step, place: &Place, now: Timestamp) {
    match step {
        Step::Start { ready } => run(pod, ready, place, now),
        Step::JudgeReadiness => judge_readiness(pod, now),
        Step::Crash => crash(pod, now),
        Step::Fail => fail(pod, now),
        Step::MissImage => miss_image(pod, place, now),
        Step::StopForImage => stop(pod, same_image, now),
        Step::Resize => resize(pod, now),
        Step::HoldResize(hold) => hold_resize(pod, hold, now),
        Step::StopForBoot => stop(pod, |_, _| false, now),
        Step::Stop => end(pod, now),
        Step::Rest | Step::Wait(_) | Step::Remove => {}
    }
}

fn run(pod: &mut Value, ready: bool, place: &Place, now: Timestamp) {
    let old = list(pod, "/status/containerStatuses").to_vec();
    let started = |container: &Value| {
        let before = old
            .iter()
            .find(|status| status["name"] == container["name"]);
        start_container(container, before, ready, now)
    };
    let statuses: Vec<Value> = Pod(pod).containers().iter().map(started).collect();
    let init: Vec<Value> = list(pod, "/spec/initContainers")
        .iter()
        .map(|container| done(container, now))
        .collect();
    begin(pod, place, now);
    let status = &mut pod["status"];
    status["phase"] = json!("Running");
    status["podIP"] = json!(place.pod_ip);
    status["podIPs"] = json!([{"ip": place.pod_ip}]);
    status["containerStatuses"] = json!(statuses);
    if !init.is_empty() {
        status["initContainerStatuses"] = json!(init);
    }
    set(pod, "PodReadyToStartContainers", true, now);
    set(pod, "Initialized", true, now);
    set_ready(pod, ready, now);
}

/// A running container stays as it is; one that ran before is restarted.
fn start_container(
    container: &Value,
    before: Option<&Value>,
    ready: bool,
    now: Timestamp,
) -> Value {
    match before {
        Some(before) if before["state"].get("running").is_some() => {
            let mut status = before.clone();
            status["ready"] = json!(ready);
            status
        }
        Some(before) if !text(before, "/imageID").is_empty() => {
            let mut status = running(container, ready, now);
            status["restartCount"] = json!(before["restartCount"].as_i64().unwrap_or_default() + 1);
            status["lastState"] = before["lastState"].clone();
            status
        }
        _ => running(container, ready, now),
    }
}

/// Sets what the first report of a pod sets.
fn begin(pod: &mut Value, place: &Place, now: Timestamp) {
    // The scheduler does not see a pod that is created with a node's name.
    if condition(pod, "PodScheduled").is_none_or(|c| text(c, "/status") != "True") {
        set(pod, "PodScheduled", true, now);
    }
    if pod["status"].get("startTime").is_none() {
        pod["status"]["startTime"] = json!(to_time(now));
    }
    pod["status"]["hostIP"] = json!(place.host_ip);
    pod["status"]["hostIPs"] = json!([{"ip": place.host_ip}]);
    observe(pod);
}

/// The status is about the present generation of the spec.
fn observe(pod: &mut Value) {
    if let Some(generation) = pod["metadata"].get("generation").cloned() {
        pod["status"]["observedGeneration"] = generation;
    }
}

fn resize(pod: &mut Value, now: Timestamp) {
    observe(pod);
    remove_condition(pod, RESIZE_PENDING);
    let restarts = |container: &Value, status: &Value| !restarts_for_resources(container, status);
    if Pod(pod).containers().iter().any(|container| {
        let mut statuses = list(pod, "/status/containerStatuses").iter();
        let status = statuses.find(|status| status["name"] == container["name"]);
        status.is_some_and(|status| restarts_for_resources(container, status))
    }) {
        stop(pod, restarts, now);
    }
    let containers = Pod(pod).containers().to_vec();
    for status in container_statuses(pod) {
        let mut containers = containers.iter();
        let container = containers.find(|container| container["name"] == status["name"]);
        status["resources"] = container.map(resources).unwrap_or_default();
    }
}

fn hold_resize(pod: &mut Value, hold: Hold, now: Timestamp) {
    observe(pod);
    let condition = Condition {
        kind: RESIZE_PENDING,
        status: "True",
        reason: hold.reason(),
        message: "Node didn't have enough resource",
    };
    set_condition(pod, condition, now);
}

fn remove_condition(pod: &mut Value, kind: &str) {
    let conditions = pod.pointer_mut("/status/conditions");
    if let Some(conditions) = conditions.and_then(Value::as_array_mut) {
        conditions.retain(|condition| condition["type"] != kind);
    }
}

fn running(container: &Value, ready: bool, now: Timestamp) -> Value {
    let image = text(container, "/image");
    let name = text(container, "/name");
    json!({
        "name": name, "image": image, "imageID": image_id(image), "containerID": container_id(name, now),
        "ready": ready, "started": true, "restartCount": 0, "lastState": {}, "state": {"running": {"startedAt": to_time(now)}},
        "resources": resources(container),
    })
}

fn resources(container: &Value) -> Value {
    match &container["resources"] {
        Value::Null => json!({}),
        resources => resources.clone(),
    }
}

fn done(container: &Value, now: Timestamp) -> Value {
    let mut status = running(container, true, now);
    status["state"] = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": to_time(now), "finishedAt": to_time(now),
        "containerID": status["containerID"],
    }});
    status["started"] = json!(false);
    status
}

/// Depends on the image only, as the digests of registries do.
fn image_id(image: &str) -> String {
    let [high, low] = [1, 2].map(|seed| xxh3_128_with_seed(image.as_bytes(), seed));
    format!("sim://{image}@sha256:{high:032x}{low:032x}")
}

fn container_id(name: &str, now: Timestamp) -> String {
    let started = now.as_nanosecond().to_le_bytes();
    let high = xxh3_64_with_seed(&started, 1);
    let low = xxh3_64_with_seed(name.as_bytes(), 2);
    format!("sim://{high:016x}{low:016x}")
}

fn judge_readiness(pod: &mut Value, now: Timestamp) {
    for status in container_statuses(pod) {
        status["ready"] = json!(true);
    }
    set_ready(pod, true, now);
}

fn crash(pod: &mut Value, now: Timestamp) {
    for status in container_statuses(pod) {
        status["lastState"] = terminated(status, now);
        let message = format!(
            "back-off restarting failed container={}",
            text(status, "/name")
        );
        status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
        status["ready"] = json!(false);
        status["started"] = json!(false);
    }
    set_ready(pod, false, now);
}

fn fail(pod: &mut Value, now: Timestamp) {
    for status in container_statuses(pod) {
        status["state"] = terminated(status, now);
        status["ready"] = json!(false);
        status["started"] = json!(false);
    }
    pod["status"]["phase"] = json!("Failed");
    for kind in ["Ready", "ContainersReady"] {
        set_condition(
            pod,
            Condition {
                kind,
                status: "False",
                reason: "PodFailed",
                message: "",
            },
            now,
        );
    }
}

/// Ends all containers, those that never ran as well, as the kubelet of a pod that is being deleted does.
fn end(pod: &mut Value, now: Timestamp) {
    let old = list(pod, "/status/containerStatuses").to_vec();
    let ended = |container: &Value| {
        let mut statuses = old.iter();
        let before = statuses.find(|status| status["name"] == container["name"]);
        let mut status = before.map_or_else(
            || json!({"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0, "lastState": {}}),
            Value::clone,
        );
        let runs = before.is_some_and(|before| before["state"].get("running").is_some());
        let (code, reason) = if runs {
            (0, "Completed")
        } else {
            (137, "ContainerStatusUnknown")
        };
        status["state"] = json!({"terminated": {
            "exitCode": code, "reason": reason, "startedAt": status["state"]["running"]["startedAt"], "finishedAt": to_time(now),
            "containerID": status["containerID"],
        }});
        status["ready"] = json!(false);
        status["started"] = json!(false);
        status
    };
    let statuses: Vec<Value> = Pod(pod).containers().iter().map(ended).collect();
    pod["status"]["containerStatuses"] = json!(statuses);
    set_ready(pod, false, now);
}

fn terminated(status: &Value, now: Timestamp) -> Value {
    json!({"terminated": {
        "exitCode": 1, "reason": "Error", "startedAt": status["state"]["running"]["startedAt"], "finishedAt": to_time(now),
        "containerID": status["containerID"],
    }})
}

fn miss_image(pod: &mut Value, place: &Place, now: Timestamp) {
    let statuses: Vec<Value> = Pod(pod).containers().iter().map(|container| {
        let image = text(container, "/image");
        json!({
            "name": container["name"], "image": image, "imageID": "", "ready": false, "started": false, "restartCount": 0,
            "lastState": {}, "state": {"waiting": {
                "reason": "ImagePullBackOff", "message": format!("Back-off pulling image \"{image}\""),
            }},
        })
    }).collect();
    begin(pod, place, now);
    pod["status"]["phase"] = json!("Pending");
    pod["status"]["containerStatuses"] = json!(statuses);
    set(pod, "PodReadyToStartContainers", true, now);
    set(pod, "Initialized", true, now);
    set_ready(pod, false, now);
}

/// Stops the running containers but those that `stays`.
fn stop(pod: &mut Value, stays: impl Fn(&Value, &Value) -> bool, now: Timestamp) {
    let containers = Pod(pod).containers().to_vec();
    for status in container_statuses(pod) {
        let Some(container) = containers
            .iter()
            .find(|container| container["name"] == status["name"])
        else {
            continue;
        };
        if stays(container, status) {
            continue;
        }
        status["lastState"] = terminated(status, now);
        status["state"] = json!({"waiting": {"reason": "ContainerCreating"}});
        status["ready"] = json!(false);
        status["started"] = json!(false);
    }
    set_ready(pod, false, now);
}

fn container_statuses(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    pod.pointer_mut("/status/containerStatuses")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

fn set(pod: &mut Value, kind: &str, holds: bool, now: Timestamp) {
    let status = if holds { "True" } else { "False" };
    set_condition(
        pod,
        Condition {
            kind,
            status,
            reason: "",
            message: "",
        },
        now,
    );
}

/// `ContainersReady`, and `Ready` if the readiness gates agree.
fn set_ready(pod: &mut Value, ready: bool, now: Timestamp) {
    let names: Vec<&str> = Pod(pod)
        .containers()
        .iter()
        .map(|container| text(container, "/name"))
        .collect();
    let unready = format!("containers with unready status: [{}]", names.join(" "));
    let closed = Pod(pod).closed_gates();
    for kind in ["Ready", "ContainersReady"] {
        let state = if !ready {
            Condition {
                kind,
                status: "False",
                reason: "ContainersNotReady",
                message: &unready,
            }
        } else if kind == "Ready" && !closed.is_empty() {
            Condition {
                kind,
                status: "False",
                reason: "ReadinessGatesNotReady",
                message: &closed,
            }
        } else {
            Condition {
                kind,
                status: "True",
                reason: "",
                message: "",
            }
        };
        set_condition(pod, state, now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lifecycle::{Stage, stage};
    use super::*;

    fn pod() -> Value {
        json!({"metadata": {"name": "p", "generation": 3}, "spec": {"containers": [{"name": "c", "image": "v1"}]}, "status": {}})
    }

    fn after(pod: &mut Value, step: Step) -> Stage {
        let place = Place {
            host_ip: "10.0.0.1".into(),
            pod_ip: "10.244.0.2".into(),
        };
        report(pod, step, &place, Timestamp::from_second(7).unwrap());
        stage(Pod(pod))
    }

    fn status_of<'a>(pod: &'a Value, kind: &str) -> &'a str {
        text(condition(pod, kind).unwrap(), "/status")
    }

    #[test]
    fn a_container_starts_crashes_and_restarts() {
        let mut pod = pod();
        assert_eq!(
            after(&mut pod, Step::Start { ready: false }),
            Stage::Running
        );
        assert_eq!(
            (status_of(&pod, "Initialized"), status_of(&pod, "Ready")),
            ("True", "False")
        );
        assert_eq!(after(&mut pod, Step::JudgeReadiness), Stage::Ready);
        assert_eq!(
            (Pod(&pod).phase(), status_of(&pod, "ContainersReady")),
            ("Running", "True")
        );
        assert_eq!(
            (text(&pod, "/status/podIP"), text(&pod, "/status/hostIP")),
            ("10.244.0.2", "10.0.0.1")
        );
        assert_eq!(after(&mut pod, Step::Crash), Stage::BackingOff);
        assert_eq!(after(&mut pod, Step::Start { ready: true }), Stage::Ready);
        assert_eq!(Pod(&pod).restarts(), 1);
    }

    #[test]
    fn an_image_changed_in_place_restarts_its_container() {
        let mut pod = pod();
        after(&mut pod, Step::Start { ready: true });
        let before = pod["status"]["containerStatuses"][0]["imageID"].clone();
        pod["spec"]["containers"][0]["image"] = json!("v2");
        assert_eq!(after(&mut pod, Step::StopForImage), Stage::Starting);
        assert_eq!(status_of(&pod, "Ready"), "False");
        assert_eq!(after(&mut pod, Step::Start { ready: true }), Stage::Ready);
        let status = &pod["status"]["containerStatuses"][0];
        assert_eq!(
            (&status["image"], &status["restartCount"]),
            (&json!("v2"), &json!(1))
        );
        assert_ne!(status["imageID"], before);
    }

    #[test]
    fn a_missing_image_leaves_the_pod_pending() {
        let mut pod = pod();
        assert_eq!(after(&mut pod, Step::MissImage), Stage::NoImage);
        assert_eq!(
            (Pod(&pod).phase(), status_of(&pod, "Ready")),
            ("Pending", "False")
        );
        assert_eq!(after(&mut pod, Step::Start { ready: true }), Stage::Ready);
    }

    #[test]
    fn readiness_gates_are_waited_for() {
        let mut pod = pod();
        pod["spec"]["readinessGates"] = json!([{"conditionType": "example.com/open"}]);
        assert_eq!(after(&mut pod, Step::Start { ready: true }), Stage::Running);
        assert_eq!(status_of(&pod, "ContainersReady"), "True");
        let open = Condition {
            kind: "example.com/open",
            status: "True",
            reason: "",
            message: "",
        };
        set_condition(&mut pod, open, Timestamp::UNIX_EPOCH);
        assert_eq!(after(&mut pod, Step::JudgeReadiness), Stage::Ready);
    }
}
