//! Whether the controller uses a member, according to its MemberCluster. Pure.

use fedrs_api::{MemberCluster, MemberConditionType, MemberReason, conditions};
use kube::ResourceExt;

use crate::controller_lease::ControllerState;

/// The state of a member while a join waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The controller has not reported the member yet.
    NotObserved,
    /// A condition is not true.
    NotReady {
        /// Its type.
        condition: MemberConditionType,
        /// Its status: `False` or `Unknown`.
        status: String,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
    },
    /// The controller uses the member.
    Ready(ReadyMember),
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
    /// Why it gets no replicas, if it gets none.
    pub excluded: Option<Exclusion>,
}

/// Why a ready member gets no replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// It is cordoned.
    Cordoned,
    /// It is drained.
    Draining,
}

/// What the user can do about a member that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Start the controller, whose Lease is in this namespace.
    StartController(String),
    /// Check the namespace of the controller: it has no Lease in this one.
    CheckNamespace(String),
    /// Read the log of this controller.
    ReadLog(String),
    /// Check how the controller connects to the member.
    CheckConnection,
    /// Describe the MemberCluster of this name.
    Describe(String),
}

impl Readiness {
    /// The readiness of `member`.
    pub(crate) fn of(member: &MemberCluster) -> Self {
        let status = member.status.as_ref();
        let all = status.map_or(&[][..], |status| &status.conditions);
        let Some(ready) = conditions::find(all, MemberConditionType::Ready) else {
            return Self::NotObserved;
        };
        let synced = conditions::find(all, MemberConditionType::Synced);
        let required = [
            (MemberConditionType::Ready, Some(ready)),
            (MemberConditionType::Synced, synced),
        ];
        for (type_, condition) in required {
            if let Some(condition) = condition.filter(|condition| condition.status != "True") {
                return Self::NotReady {
                    condition: type_,
                    status: condition.status.clone(),
                    reason: condition.reason.clone(),
                    message: condition.message.clone(),
                };
            }
        }
        let nodes = status.and_then(|status| status.nodes);
        let excluded = match (member.spec.drain, member.spec.unschedulable) {
            (true, _) => Some(Exclusion::Draining),
            (false, true) => Some(Exclusion::Cordoned),
            (false, false) => None,
        };
        Self::Ready(ReadyMember {
            name: member.name_any(),
            version: status.and_then(|status| status.version.clone()),
            nodes: nodes.map(|nodes| (nodes.ready, nodes.total)),
            excluded,
        })
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self, name: &str, namespace: &str, controller: &ControllerState) -> Hint {
        match (self, controller) {
            (_, ControllerState::Stopped) => Hint::StartController(namespace.to_owned()),
            (Self::NotObserved, ControllerState::Unknown) => {
                Hint::CheckNamespace(namespace.to_owned())
            }
            (Self::NotObserved, ControllerState::Running(holder)) => Hint::ReadLog(holder.clone()),
            (Self::NotReady { reason, .. }, _) if is_connection_problem(reason) => {
                Hint::CheckConnection
            }
            _ => Hint::Describe(name.to_owned()),
        }
    }
}

fn is_connection_problem(reason: &str) -> bool {
    let reason: Option<MemberReason> = reason.parse().ok();
    matches!(
        reason,
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
        assert_eq!(Readiness::of(&member(&[])), Readiness::NotObserved);
        let both = member(&[("Ready", "True"), ("Synced", "True")]);
        assert!(matches!(Readiness::of(&both), Readiness::Ready(_)));
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
            let readiness = Readiness::of(&member(&conditions));
            let Readiness::NotReady { condition, .. } = readiness else {
                panic!("{readiness:?}")
            };
            assert_eq!(condition, open);
        }
    }

    #[test]
    fn the_hint_follows_from_the_condition_and_the_controller() {
        let running = ControllerState::Running("pod-1".to_owned());
        let unreachable = Readiness::of(&member(&[("Ready", "False")]));
        let (system, eu) = ("system".to_owned(), "eu".to_owned());
        for (readiness, controller, hint) in [
            (
                &unreachable,
                ControllerState::Stopped,
                Hint::StartController(system.clone()),
            ),
            (&unreachable, running.clone(), Hint::CheckConnection),
            (
                &Readiness::NotObserved,
                ControllerState::Unknown,
                Hint::CheckNamespace(system.clone()),
            ),
            (
                &Readiness::NotObserved,
                running.clone(),
                Hint::ReadLog("pod-1".to_owned()),
            ),
            (
                &Readiness::NotReady {
                    condition: MemberConditionType::Synced,
                    status: "False".to_owned(),
                    reason: "NotSynced".to_owned(),
                    message: String::new(),
                },
                running.clone(),
                Hint::Describe(eu.clone()),
            ),
        ] {
            assert_eq!(readiness.hint("eu", "system", &controller), hint);
        }
    }
}
