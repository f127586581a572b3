//! Whether the controller uses a member, according to its MemberCluster. Pure.

use std::fmt;

use derive_more::Display;
use fedrs_api::{MemberCluster, MemberConditionType, MemberReason, conditions, pluralize};
use kube::ResourceExt;

use crate::controller_lease::ControllerState;

/// Why a member is not ready.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
pub enum NotReady {
    /// The controller has not reported the member yet.
    #[display("the controller has not observed the member yet")]
    NotObserved,
    /// A condition is not true.
    #[display("{condition} is {status} ({reason}): {message}")]
    Condition {
        /// Its type.
        condition: MemberConditionType,
        /// Its status: `False` or `Unknown`.
        status: String,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
    },
}

/// A member that the controller uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadyMember {
    /// Its name.
    pub name: String,
    /// The version of its API server, if known.
    pub version: Option<String>,
    /// Ready nodes and all nodes, if known.
    pub nodes: Option<(i32, i32)>,
    /// Why it gets no replicas, if it gets none: it is `cordoned` or `draining`.
    pub excluded: Option<&'static str>,
}

impl fmt::Display for ReadyMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(f, "{name} is ready")?;
        if let Some(version) = &self.version {
            write!(f, ": Kubernetes {version}")?;
        }
        if let Some((ready, total)) = self.nodes {
            write!(f, ", {ready} of {} ready", pluralize(total, "node"))?;
        }
        match self.excluded {
            Some(excluded) => write!(
                f,
                ". It gets no replicas because it is {excluded}: run `fedrs uncordon {name}`"
            ),
            None => Ok(()),
        }
    }
}

/// The readiness of `member`: whether it answers, and its view is current.
pub(super) fn readiness(member: &MemberCluster) -> Result<ReadyMember, NotReady> {
    let status = member.status.as_ref();
    let all = status.map_or(&[][..], |status| &status.conditions);
    if conditions::find(all, MemberConditionType::Ready).is_none() {
        return Err(NotReady::NotObserved);
    }
    for type_ in [MemberConditionType::Ready, MemberConditionType::Synced] {
        let condition = conditions::find(all, type_);
        if let Some(condition) = condition.filter(|condition| condition.status != "True") {
            return Err(NotReady::Condition {
                condition: type_,
                status: condition.status.clone(),
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            });
        }
    }
    let nodes = status.and_then(|status| status.nodes);
    Ok(ReadyMember {
        name: member.name_any(),
        version: status.and_then(|status| status.version.clone()),
        nodes: nodes.map(|nodes| (nodes.ready, nodes.total)),
        excluded: match (member.spec.drain, member.spec.unschedulable) {
            (true, _) => Some("draining"),
            (false, true) => Some("cordoned"),
            (false, false) => None,
        },
    })
}

impl NotReady {
    /// What the user can do for the member `name` of a controller in `namespace`.
    pub(crate) fn hint(&self, name: &str, namespace: &str, controller: &ControllerState) -> String {
        match (self, controller) {
            (_, ControllerState::Stopped) => format!(
                "No controller is running: no process holds the Lease in namespace {namespace}."
            ),
            (Self::NotObserved, ControllerState::Unknown) => format!(
                "Check that a controller runs on the host with the namespace {namespace}: it has no Lease there."
            ),
            (Self::NotObserved, ControllerState::Running(holder)) => {
                format!("See the log of the controller {holder} for the cause.")
            }
            (Self::Condition { reason, .. }, _) if is_connection_problem(reason) => {
                "Check that the controller can connect to the address in the member's kubeconfig. Set another address \
                 with --member-server."
                    .to_owned()
            }
            _ => format!("Run `kubectl describe mc {name}` for details."),
        }
    }
}

fn is_connection_problem(reason: &str) -> bool {
    matches!(
        MemberReason::parse(reason),
        Some(MemberReason::Unreachable | MemberReason::ProbeFailing)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(conditions: &[(&str, &str)]) -> MemberCluster {
        let condition = |(type_, status): &(&str, &str)| {
            json!({
                "type": type_, "status": status, "reason": "Unreachable", "message": "timed out",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster",
            "metadata": { "name": "eu" }, "spec": {}, "status": { "conditions": conditions },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_member_is_ready_when_it_answers_and_its_view_is_current() {
        assert_eq!(readiness(&member(&[])), Err(NotReady::NotObserved));
        let both = member(&[("Ready", "True"), ("Synced", "True")]);
        assert!(readiness(&both).is_ok());
        for (conditions, open) in [
            (
                [("Ready", "False"), ("Synced", "True")],
                MemberConditionType::Ready,
            ),
            (
                [("Ready", "True"), ("Synced", "False")],
                MemberConditionType::Synced,
            ),
        ] {
            let readiness = readiness(&member(&conditions));
            let Err(NotReady::Condition { condition, .. }) = readiness else {
                panic!("{readiness:?}")
            };
            assert_eq!(condition, open);
        }
    }

    #[test]
    fn the_hint_follows_from_the_condition_and_the_controller() {
        let running = ControllerState::Running("pod-1".to_owned());
        let unreachable = readiness(&member(&[("Ready", "False")])).unwrap_err();
        let not_synced = NotReady::Condition {
            condition: MemberConditionType::Synced,
            status: "False".to_owned(),
            reason: "NotSynced".to_owned(),
            message: String::new(),
        };
        for (not_ready, controller, hint) in [
            (
                &unreachable,
                &ControllerState::Stopped,
                "No controller is running",
            ),
            (&unreachable, &running, "can connect to the address"),
            (
                &NotReady::NotObserved,
                &ControllerState::Unknown,
                "runs on the host with the namespace system",
            ),
            (
                &NotReady::NotObserved,
                &running,
                "log of the controller pod-1",
            ),
            (&not_synced, &running, "kubectl describe mc eu"),
        ] {
            let text = not_ready.hint("eu", "system", controller);
            assert!(text.contains(hint), "{text}");
        }
    }
}
