//! The lifecycle of a pod on its node: `pod, start of its stage, settings -> next step`. Pure.
//!
//! ```text
//! Starting --start--> Running --ready--> Ready --image changed in place--> Starting (restart count + 1)
//!     |                  '--crash--> BackingOff --10 s, 20 s, ... 300 s--> Running (restart count + 1)
//!     '--no image--> NoImage
//! resources changed in place: resized, deferred, or infeasible; containers whose policy says so stop and start
//! deleted: removed after the time to stop; if a finalizer holds it, its status says before that its containers have stopped
//! ```
//!
//! The stage is derived from the pod's status, so that a restarted kubelet continues where it was.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::controllers::pod::Pod;
use crate::controllers::settings::Settings;
use crate::object::{annotation, at, condition, finalizers, list, text};

/// Seconds (fractions allowed) this pod takes to start, in place of the cluster's setting.
pub(crate) const START_SECONDS: &str = "sim-cluster.dev/start-seconds";
/// Seconds this pod takes from running to ready.
pub(crate) const READY_SECONDS: &str = "sim-cluster.dev/ready-seconds";
/// Seconds this pod takes to stop.
pub(crate) const STOP_SECONDS: &str = "sim-cluster.dev/stop-seconds";
/// How this pod fails: `crash`, `never-ready` or `image-pull`.
pub(crate) const FAIL: &str = "sim-cluster.dev/fail";

/// The condition of a pod whose resize has to wait, or never happens.
pub(crate) const RESIZE_PENDING: &str = "PodResizePending";

/// The first backoff of a crashed container, doubled up to the last, as in the kubelet.
const FIRST_BACKOFF_SECONDS: i64 = 10;
const LAST_BACKOFF_SECONDS: i64 = 300;

/// The stage of a pod's lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Bound; not all containers run.
    Starting,
    /// Its image cannot be pulled.
    NoImage,
    /// Containers run; the pod is not ready.
    Running,
    /// Containers run and the pod is ready.
    Ready,
    /// Its containers crashed and wait for their restart.
    BackingOff,
    /// Being deleted.
    Stopping,
    /// Terminated, with phase Succeeded or Failed.
    Over,
}

/// The next step of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until the pod changes.
    Rest,
    /// Wait until this time.
    Wait(Timestamp),
    /// Start the containers, ready or not; after a crash this is a restart.
    Start { ready: bool },
    /// Report the containers ready, and the pod if its readiness gates are open.
    JudgeReadiness,
    /// Crash the containers.
    Crash,
    /// End the containers with a failure, without a restart.
    Fail,
    /// Report that the image cannot be pulled.
    MissImage,
    /// Stop the containers whose image was changed, to restart them with the new one.
    StopForImage,
    /// Give the containers the resources of their spec; those whose policy says so stop, to restart with them.
    Resize,
    /// Report that the containers keep their resources, for this reason.
    HoldResize(Hold),
    /// Report that the containers have stopped with their node, to restart them.
    StopForBoot,
    /// Report that the containers have stopped, and are not started again.
    Stop,
    /// Remove the pod.
    Remove,
}

/// Why a pod is not resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The node has no room beside its other pods.
    Deferred,
    /// The node is too small.
    Infeasible,
}

/// The stage that the pod's status shows.
pub(crate) fn stage(pod: Pod<'_>) -> Stage {
    if pod.is_terminating() {
        return Stage::Stopping;
    }
    if pod.is_terminal() {
        return Stage::Over;
    }
    let containers = list(pod.0, "/status/containerStatuses");
    let waits = |reason: &str| {
        containers
            .iter()
            .any(|status| text(status, "/state/waiting/reason") == reason)
    };
    if waits("CrashLoopBackOff") {
        Stage::BackingOff
    } else if waits("ImagePullBackOff") {
        Stage::NoImage
    } else if containers.is_empty()
        || containers
            .iter()
            .any(|status| at(status, "/state/running").is_none())
    {
        Stage::Starting
    } else if pod.is_ready() {
        Stage::Ready
    } else {
        Stage::Running
    }
}

/// The next step at `now` of a pod that has been in its stage since `since`.
pub(crate) fn next(pod: Pod<'_>, since: Timestamp, settings: &Settings, now: Timestamp) -> Step {
    let fault = annotation(pod.0, FAIL).unwrap_or_default();
    let after = |delay: Duration, step: Step| {
        let due = since
            .saturating_add(SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX))
            .unwrap_or(Timestamp::MAX);
        if due <= now { step } else { Step::Wait(due) }
    };
    let start = override_of(pod, START_SECONDS, settings.start_time);
    let ready_delay = override_of(pod, READY_SECONDS, settings.ready_delay);
    let ready = ready_delay.is_zero() && fault.is_empty();
    let gated = !pod.closed_gates().is_empty();
    let crash = if text(pod.0, "/spec/restartPolicy") == "Never" {
        Step::Fail
    } else {
        Step::Crash
    };
    match stage(pod) {
        Stage::Starting if fault == "image-pull" => after(start, Step::MissImage),
        Stage::NoImage if fault == "image-pull" => Step::Rest,
        Stage::Starting | Stage::NoImage => after(start, Step::Start { ready }),
        Stage::Running | Stage::Ready if fault == "crash" => after(settings.crash_after, crash),
        Stage::Running | Stage::Ready if image_changed(pod) => Step::StopForImage,
        Stage::Running if fault == "never-ready" || gated && containers_ready(pod) => Step::Rest,
        Stage::Running => after(ready_delay, Step::JudgeReadiness),
        Stage::Ready if gated => Step::JudgeReadiness,
        Stage::Ready | Stage::Over => Step::Rest,
        Stage::BackingOff => after(crash_backoff(pod), Step::Start { ready }),
        Stage::Stopping => {
            let grace = Duration::from_secs(u64::try_from(pod.grace_seconds()).unwrap_or_default());
            let is_held = !finalizers(pod.0).is_empty();
            let step = match (is_held, have_stopped(pod)) {
                (true, true) if grace.is_zero() => return Step::Rest,
                (true, false) => Step::Stop,
                (true, true) | (false, _) => Step::Remove,
            };
            let stop = override_of(pod, STOP_SECONDS, settings.stop_time);
            after(stop.min(grace), step)
        }
    }
}

/// The next step if running containers have other resources than their spec; `hold` says why they can't get them.
pub(crate) fn next_of_resize(pod: Pod<'_>, hold: impl FnOnce() -> Option<Hold>) -> Option<Step> {
    if !matches!(stage(pod), Stage::Running | Stage::Ready) || !resources_changed(pod) {
        return None;
    }
    let Some(hold) = hold() else {
        return Some(Step::Resize);
    };
    let reported = condition(pod.0, RESIZE_PENDING);
    let is_current = pod.0["status"]["observedGeneration"] == pod.0["metadata"]["generation"];
    let is_reported =
        is_current && reported.is_some_and(|pending| text(pending, "/reason") == hold.reason());
    (!is_reported).then_some(Step::HoldResize(hold))
}

impl Hold {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Deferred => "Deferred",
            Self::Infeasible => "Infeasible",
        }
    }
}

fn resources_changed(pod: Pod<'_>) -> bool {
    let statuses = list(pod.0, "/status/containerStatuses");
    pod.containers().iter().any(|container| {
        let mut statuses = statuses.iter();
        let status = statuses.find(|status| status["name"] == container["name"]);
        status.is_some_and(|status| !same_resources(container, status))
    })
}

/// Whether a container's status has the resources of its spec.
pub(crate) fn same_resources(container: &Value, status: &Value) -> bool {
    let of = |value: &Value| match &value["resources"] {
        Value::Null => Value::Object(serde_json::Map::new()),
        resources => resources.clone(),
    };
    of(container) == of(status)
}

/// Whether a container restarts to get the resources of its spec.
pub(crate) fn restarts_for_resources(container: &Value, status: &Value) -> bool {
    list(container, "/resizePolicy").iter().any(|policy| {
        let resource = &policy["resourceName"].as_str().unwrap_or_default();
        let differs = |of: &str| {
            container["resources"][of].get(resource) != status["resources"][of].get(resource)
        };
        policy["restartPolicy"] == "RestartContainer" && (differs("requests") || differs("limits"))
    })
}

/// Whether the pod reports containers that run since before `booted`, when its node started: they have stopped with it.
pub(crate) fn runs_since_before(pod: Pod<'_>, booted: Timestamp) -> bool {
    let containers = list(pod.0, "/status/containerStatuses").iter();
    let mut started = containers.map(|status| text(status, "/state/running/startedAt"));
    let stage = stage(pod);
    !matches!(stage, Stage::Over | Stage::Stopping)
        && started.any(|time| time.parse().is_ok_and(|time: Timestamp| time < booted))
}

/// Whether the status says that all containers have stopped.
fn have_stopped(pod: Pod<'_>) -> bool {
    let statuses = list(pod.0, "/status/containerStatuses");
    let has_stopped = |status: &Value| at(status, "/state/terminated").is_some();
    statuses.len() == pod.containers().len() && statuses.iter().all(has_stopped)
}

fn containers_ready(pod: Pod<'_>) -> bool {
    condition(pod.0, "ContainersReady").is_some_and(|ready| text(ready, "/status") == "True")
}

fn override_of(pod: Pod<'_>, key: &str, usual: Duration) -> Duration {
    let seconds = annotation(pod.0, key).and_then(|seconds| seconds.parse::<f64>().ok());
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(usual)
}

/// 10 s after the first crash, 20 s after the second, at most 5 min.
fn crash_backoff(pod: Pod<'_>) -> Duration {
    let restarts = u32::try_from(pod.restarts()).unwrap_or_default().min(8);
    let seconds = (FIRST_BACKOFF_SECONDS << restarts).min(LAST_BACKOFF_SECONDS);
    Duration::from_secs(u64::try_from(seconds).expect("between 10 and 300"))
}

/// Whether a container runs another image than its spec has.
pub(crate) fn image_changed(pod: Pod<'_>) -> bool {
    let runs = |name: &str| {
        list(pod.0, "/status/containerStatuses")
            .iter()
            .find(|status| text(status, "/name") == name)
    };
    pod.containers().iter().any(|container| {
        runs(text(container, "/name")).is_some_and(|status| !same_image(container, status))
    })
}

/// Whether a container's status has the image of its spec.
pub(crate) fn same_image(container: &Value, status: &Value) -> bool {
    text(container, "/image") == text(status, "/image")
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases are written as values")]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn second(s: i64) -> Timestamp {
        Timestamp::from_second(s).unwrap()
    }

    fn pod(fault: &str, status: Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": "p"}, "status": status,
            "spec": {"containers": [{"name": "c", "image": "v1"}], "restartPolicy": "Always"},
        });
        if !fault.is_empty() {
            pod["metadata"]["annotations"] = json!({FAIL: fault});
        }
        pod
    }

    fn container(state: Value, image: &str, restarts: i64, ready: &str) -> Value {
        json!({
            "containerStatuses": [{"name": "c", "image": image, "state": state, "restartCount": restarts}],
            "conditions": [{"type": "Ready", "status": ready}],
        })
    }

    fn running(ready: &str) -> Value {
        container(json!({"running": {}}), "v1", 0, ready)
    }

    fn waiting(reason: &str, restarts: i64) -> Value {
        container(
            json!({"waiting": {"reason": reason}}),
            "v1",
            restarts,
            "False",
        )
    }

    /// Each pod has been in its stage since second 0; the first step is at 0, the second at 1,000.
    #[rstest]
    #[case::starts(pod("", json!({})), Step::Wait(second(1)), Step::Start { ready: false })]
    #[case::image_pull(pod("image-pull", json!({})), Step::Wait(second(1)), Step::MissImage)]
    #[case::no_image_stays(
        pod("image-pull", waiting("ImagePullBackOff", 0)),
        Step::Rest,
        Step::Rest
    )]
    #[case::image_is_back(pod("", waiting("ImagePullBackOff", 0)), Step::Wait(second(1)), Step::Start { ready: false })]
    #[case::becomes_ready(pod("", running("False")), Step::Wait(second(2)), Step::JudgeReadiness)]
    #[case::never_ready(pod("never-ready", running("False")), Step::Rest, Step::Rest)]
    #[case::ready(pod("", running("True")), Step::Rest, Step::Rest)]
    #[case::crashes(pod("crash", running("False")), Step::Wait(second(3)), Step::Crash)]
    #[case::first_backoff(pod("crash", waiting("CrashLoopBackOff", 0)), Step::Wait(second(10)), Step::Start { ready: false })]
    #[case::third_backoff(pod("crash", waiting("CrashLoopBackOff", 2)), Step::Wait(second(40)), Step::Start { ready: false })]
    #[case::longest_backoff(pod("crash", waiting("CrashLoopBackOff", 99)), Step::Wait(second(300)), Step::Start { ready: false })]
    #[case::image_changed(pod("", container(json!({"running": {}}), "v0", 0, "True")), Step::StopForImage, Step::StopForImage)]
    #[case::over(pod("", json!({"phase": "Failed"})), Step::Rest, Step::Rest)]
    fn steps(#[case] pod: Value, #[case] at_once: Step, #[case] later: Step) {
        let settings = Settings {
            ready_delay: Duration::from_secs(2),
            crash_after: Duration::from_secs(3),
            ..Settings::default()
        };
        assert_eq!(next(Pod(&pod), second(0), &settings, second(0)), at_once);
        assert_eq!(next(Pod(&pod), second(0), &settings, second(1000)), later);
    }

    #[rstest]
    #[case::setting(json!({}), 30, second(1))]
    #[case::grace_is_shorter(json!({}), 0, second(0))]
    #[case::own(json!({STOP_SECONDS: "2.5"}), 30, Timestamp::from_millisecond(2500).unwrap())]
    fn stopping(#[case] annotations: Value, #[case] grace: i64, #[case] due: Timestamp) {
        let pod = json!({"metadata": {
            "annotations": annotations, "deletionTimestamp": "1970-01-01T00:00:30Z", "deletionGracePeriodSeconds": grace,
        }});
        let expected = if due == second(0) {
            Step::Remove
        } else {
            Step::Wait(due)
        };
        assert_eq!(
            next(Pod(&pod), second(0), &Settings::default(), second(0)),
            expected
        );
        assert_eq!(
            next(Pod(&pod), second(0), &Settings::default(), due),
            Step::Remove
        );
    }

    #[rstest]
    #[case::runs(json!({"running": {}}), 30, Step::Stop)]
    #[case::has_stopped(json!({"terminated": {}}), 30, Step::Remove)]
    #[case::is_held(json!({"terminated": {}}), 0, Step::Rest)]
    #[case::was_deleted_by_force(json!({"running": {}}), 0, Step::Stop)]
    fn a_finalizer_holds_a_pod_that_has_stopped(
        #[case] state: Value,
        #[case] grace: i64,
        #[case] expected: Step,
    ) {
        let mut pod = pod("", container(state, "v1", 0, "True"));
        pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
        pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:30Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        let step = next(Pod(&pod), second(0), &Settings::default(), second(100));
        assert_eq!(step, expected);
    }
}
