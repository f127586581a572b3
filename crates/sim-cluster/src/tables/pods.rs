//! The table of pods, whose status is the most relevant state of its containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, join, name, number, or_none, since};
use super::layout::{Cells, Layout, columns};
use crate::object::{list, text};
use crate::resources::{Kind, kinds};

pub(super) fn layout(kind: &Kind) -> Option<Layout> {
    (*kind == *kinds::PODS).then(|| Layout {
        columns: columns(&[
            "Name",
            "Ready",
            "Status",
            "Restarts",
            "Age",
            "*IP",
            "*Node",
            "*Nominated Node",
            "*Readiness Gates",
        ]),
        cells: Box::new(cells),
    })
}

/// The condition of a terminated pod, which clients show in grey.
pub(super) fn ended_condition(object: &Value) -> Option<Value> {
    if object["kind"] != "Pod" {
        return None;
    }
    let phase = text(object, "/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": phase, "message": message}))
}

/// The summary of the statuses of containers.
#[derive(Default)]
struct Containers {
    ready: usize,
    restarts: i64,
    last_restart: String,
    reason: String,
    any_running: bool,
}

fn cells(pod: &Value, now: Timestamp) -> Cells {
    let total = list(pod, "/spec/containers").len() + restartable_init(pod);
    let (initialising, containers) = summarise(pod);
    let restarts = if containers.restarts > 0 && !containers.last_restart.is_empty() {
        let ago = since(&containers.last_restart, now);
        format!(
            "{} ({} ago)",
            containers.restarts,
            ago.as_str().unwrap_or_default()
        )
    } else {
        containers.restarts.to_string()
    };
    vec![
        name(pod),
        json!(format!("{}/{total}", containers.ready)),
        json!(status(pod, initialising, &containers)),
        json!(restarts),
        age(pod, now),
        or_none(text(pod, "/status/podIP")),
        or_none(text(pod, "/spec/nodeName")),
        or_none(text(pod, "/status/nominatedNodeName")),
        readiness_gates(pod),
    ]
}

fn is_restartable(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn restartable_init(pod: &Value) -> usize {
    list(pod, "/spec/initContainers")
        .iter()
        .filter(|each| is_restartable(each))
        .count()
}

/// The reason of the first init container that has not completed, and the sums over the others.
fn summarise(pod: &Value) -> (Option<String>, Containers) {
    let mut sums = Containers::default();
    let initialising = initialising(pod);
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        sums.restarts += number(status, "/restartCount");
        let restarted = text(status, "/lastState/terminated/finishedAt");
        if restarted > sums.last_restart.as_str() {
            restarted.clone_into(&mut sums.last_restart);
        }
        let terminated = &status["state"]["terminated"];
        let waiting = text(status, "/state/waiting/reason");
        let running = status["state"]["running"].is_object() && status["ready"] == json!(true);
        if !waiting.is_empty() {
            waiting.clone_into(&mut sums.reason);
        } else if terminated.is_object() {
            sums.reason = termination(terminated);
        } else if running {
            sums.any_running = true;
            sums.ready += 1;
        }
    }
    (initialising, sums)
}

fn termination(terminated: &Value) -> String {
    let reason = text(terminated, "/reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match number(terminated, "/signal") {
        0 => format!("ExitCode:{}", number(terminated, "/exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

fn initialising(pod: &Value) -> Option<String> {
    let total = list(pod, "/spec/initContainers").len();
    for (at, status) in list(pod, "/status/initContainerStatuses")
        .iter()
        .enumerate()
    {
        let terminated = &status["state"]["terminated"];
        let specified = pod.pointer(&format!("/spec/initContainers/{at}"));
        let done = terminated.is_object() && number(terminated, "/exitCode") == 0
            || specified.is_some_and(is_restartable) && status["started"] == json!(true);
        if done {
            continue;
        }
        let waiting = text(status, "/state/waiting/reason");
        return Some(if terminated.is_object() {
            format!("Init:{}", termination(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{at}/{total}")
        });
    }
    None
}

fn status(pod: &Value, initialising: Option<String>, containers: &Containers) -> String {
    let phase = text(pod, "/status/phase");
    let own_reason = text(pod, "/status/reason");
    let mut reason = if own_reason.is_empty() {
        phase
    } else {
        own_reason
    }
    .to_owned();
    let gated = list(pod, "/status/conditions")
        .iter()
        .any(|each| each["type"] == "PodScheduled" && each["reason"] == "SchedulingGated");
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    match initialising {
        Some(initialising) => reason = initialising,
        None if !containers.reason.is_empty() => reason.clone_from(&containers.reason),
        None => {}
    }
    if reason == "Completed" && containers.any_running {
        let ready = list(pod, "/status/conditions")
            .iter()
            .any(|each| each["type"] == "Ready" && each["status"] == "True");
        if ready { "Running" } else { "NotReady" }.clone_into(&mut reason);
    }
    let deleting = !text(pod, "/metadata/deletionTimestamp").is_empty();
    if deleting && own_reason == "NodeLost" {
        return "Unknown".to_owned();
    }
    if deleting && !matches!(phase, "Succeeded" | "Failed") {
        return "Terminating".to_owned();
    }
    reason
}

fn readiness_gates(pod: &Value) -> Value {
    let gates: Vec<&str> = list(pod, "/spec/readinessGates")
        .iter()
        .map(|gate| text(gate, "/conditionType"))
        .collect();
    if gates.is_empty() {
        return json!("<none>");
    }
    let met = |gate: &&&str| {
        list(pod, "/status/conditions")
            .iter()
            .any(|each| each["type"] == ***gate && each["status"] == "True")
    };
    json!(format!(
        "{}/{}",
        gates.iter().filter(met).count(),
        gates.len()
    ))
}

/// Names and images of a template's containers.
pub(super) fn names_and_images(template_spec: &Value) -> [Value; 2] {
    let texts = |pointer: &str| {
        json!(join(
            list(template_spec, "/containers")
                .iter()
                .map(|each| text(each, pointer))
        ))
    };
    [texts("/name"), texts("/image")]
}
