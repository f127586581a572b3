//! A read-only view of a pod for controllers: `Pod(&Value) -> facts`.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::object::{self, annotation, condition, integer, list, map, text, time};

/// The annotation of a pod's deletion cost: pods with lower costs are deleted first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A pod as JSON, read by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pod<'a>(pub(crate) &'a Value);

impl<'a> Pod<'a> {
    pub(crate) fn name(self) -> &'a str {
        object::name(self.0)
    }

    pub(crate) fn namespace(self) -> &'a str {
        object::namespace(self.0)
    }

    pub(crate) fn uid(self) -> &'a str {
        object::uid(self.0)
    }

    pub(crate) fn labels(self) -> Option<&'a Map<String, Value>> {
        map(self.0, "/metadata/labels")
    }

    /// The node that the pod is bound to; empty before that.
    pub(crate) fn node(self) -> &'a str {
        text(self.0, "/spec/nodeName")
    }

    /// `status.phase`; a pod without one is `Pending`.
    pub(crate) fn phase(self) -> &'a str {
        match text(self.0, "/status/phase") {
            "" => "Pending",
            phase => phase,
        }
    }

    /// Whether the pod has terminated: its phase is Succeeded or Failed.
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    pub(crate) fn is_terminating(self) -> bool {
        object::is_terminating(self.0)
    }

    /// Whether the pod counts for a ReplicaSet: it has not terminated and is not being deleted.
    pub(crate) fn is_active(self) -> bool {
        !self.is_terminal() && !self.is_terminating()
    }

    pub(crate) fn is_ready(self) -> bool {
        condition(self.0, "Ready").is_some_and(|ready| text(ready, "/status") == "True")
    }

    /// When the pod became ready; `None` if it is not, or if the condition has no time.
    pub(crate) fn ready_since(self) -> Option<Timestamp> {
        condition(self.0, "Ready")
            .filter(|_| self.is_ready())
            .and_then(|ready| time(ready, "/lastTransitionTime"))
    }

    /// Whether the pod has been ready for `min_ready_seconds` at `now`.
    pub(crate) fn is_available(self, min_ready_seconds: i64, now: Timestamp) -> bool {
        if min_ready_seconds == 0 {
            return self.is_ready();
        }
        self.ready_since()
            .is_some_and(|since| now.as_second() - since.as_second() >= min_ready_seconds)
    }

    pub(crate) fn created(self) -> Option<Timestamp> {
        time(self.0, "/metadata/creationTimestamp")
    }

    /// The pod's deletion cost; 0 if the annotation is absent or not a 32-bit integer.
    pub(crate) fn deletion_cost(self) -> i32 {
        annotation(self.0, DELETION_COST)
            .and_then(|cost| cost.parse().ok())
            .unwrap_or_default()
    }

    /// The largest restart count among its containers.
    pub(crate) fn restarts(self) -> i64 {
        let statuses = list(self.0, "/status/containerStatuses");
        statuses
            .iter()
            .filter_map(|status| integer(status, "/restartCount"))
            .max()
            .unwrap_or_default()
    }

    /// The uid of the pod's controller; empty for an orphan.
    pub(crate) fn controller_uid(self) -> &'a str {
        object::controller_of(self.0)
            .map(|owner| text(owner, "/uid"))
            .unwrap_or_default()
    }

    /// Whether the pod has scheduling gates.
    pub(crate) fn is_gated(self) -> bool {
        !list(self.0, "/spec/schedulingGates").is_empty()
    }

    /// Whether the pod has no node, has not terminated and is not being deleted.
    pub(crate) fn awaits_node(self) -> bool {
        self.node().is_empty() && self.is_active()
    }

    /// The grace period of the pod's deletion, or else `spec.terminationGracePeriodSeconds`, or else 30.
    pub(crate) fn grace_seconds(self) -> i64 {
        let given = integer(self.0, "/metadata/deletionGracePeriodSeconds");
        given
            .or_else(|| integer(self.0, "/spec/terminationGracePeriodSeconds"))
            .unwrap_or(30)
    }

    /// The pod's containers.
    pub(crate) fn containers(self) -> &'a [Value] {
        list(self.0, "/spec/containers")
    }

    /// The pod's tolerations.
    pub(crate) fn tolerations(self) -> &'a [Value] {
        list(self.0, "/spec/tolerations")
    }

    /// The readiness gates that are closed, as the kubelet describes them; empty if all are open.
    pub(crate) fn closed_gates(self) -> String {
        let gates = list(self.0, "/spec/readinessGates")
            .iter()
            .map(|gate| text(gate, "/conditionType"));
        let closed = gates.filter_map(|gate| match condition(self.0, gate) {
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{gate}\" does not exist."
            )),
            Some(condition) if text(condition, "/status") != "True" => Some(format!(
                "the status of pod readiness gate \"{gate}\" is not \"True\", but {}",
                text(condition, "/status")
            )),
            Some(_) => None,
        });
        closed.collect::<Vec<_>>().join(", ")
    }
}
