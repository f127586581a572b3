//! Who asks a pod to leave its node. Pure.

use controller_base::clock::whole_seconds;
use fedrs_api::MigrationRequestStatus;
use jiff::Timestamp;

use crate::{migration_object::RequestObject, store::Node};

/// Who asks for what a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A person or a program: the request itself.
    Request,
    /// The mark on the node, with the deadline of its Maintenance (M15).
    Node(Option<Timestamp>),
    /// The mark on a node that is gone, or that nothing has shown yet.
    LostNode,
    /// Nobody any more: the request was made for the mark on a node that has none.
    Nobody,
}

impl Asker {
    /// The one of `request`, whose pod is on `node`.
    pub(super) fn of(request: &RequestObject, node: Option<Node>) -> Self {
        match node {
            _ if !request.follows_its_cause() => Self::Request,
            Some(Node::Exists(state)) if state.mark.is_none() => Self::Nobody,
            Some(Node::Exists(state)) => Self::Node(state.deadline),
            Some(Node::Gone) | None => Self::LostNode,
        }
    }

    /// Whether that is news for `request`, which need not wait for its turn then: it ends, or its deadline is nearer than it says.
    pub(super) fn is_news(self, request: &RequestObject) -> bool {
        let status = request.status();
        if status.is_some_and(MigrationRequestStatus::has_begun) {
            return false;
        }
        let known = status.and_then(|status| status.deadline.as_ref());
        match self {
            Self::Nobody => true,
            Self::Node(Some(deadline)) => {
                known.is_some_and(|known| whole_seconds(deadline) < known.0)
            }
            Self::Request | Self::Node(None) | Self::LostNode => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use replica_set_controller::{Eviction, NodeState};
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn request(owner: Option<(&str, &str)>, phase: &str) -> RequestObject {
        let owners = owner.map(|(api, kind)| {
            json!([{ "apiVersion": api, "kind": kind, "name": "web", "uid": "1", "controller": true }])
        });
        serde_json::from_value(json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
            "metadata": { "name": "one", "namespace": "shop", "ownerReferences": owners.unwrap_or(Value::Null) },
            "spec": { "podName": "web-1" },
            "status": { "phase": phase, "deadline": at(100) },
        }))
        .unwrap()
    }

    fn node(mark: Option<Eviction>, deadline: Option<i64>) -> Node {
        Node::Exists(NodeState {
            is_ready: true,
            not_ready_since: None,
            is_cordoned: true,
            // Also out of service: that is no mark.
            eviction: Some(Eviction::Involuntary),
            mark,
            deadline: deadline.map(at),
            absence: None,
        })
    }

    #[test]
    fn m15_who_asks_and_when_that_is_news() {
        let of_deployment = Some(("apps/v1", "Deployment"));
        let marked = Some(Eviction::Voluntary);
        let waits = "WaitingForBudget";
        for (owner, phase, node, expected, is_news) in [
            (None, waits, Some(node(None, None)), Asker::Request, false),
            (
                None,
                waits,
                Some(node(marked, Some(50))),
                Asker::Request,
                false,
            ),
            (
                Some(("apps/v1", "StatefulSet")),
                waits,
                Some(node(None, None)),
                Asker::Request,
                false,
            ),
            (
                of_deployment,
                waits,
                Some(node(None, Some(50))),
                Asker::Nobody,
                true,
            ),
            (
                Some(("apps/v1", "ReplicaSet")),
                waits,
                Some(node(None, None)),
                Asker::Nobody,
                true,
            ),
            // Made when a LocalReplicaSet had the pod.
            (
                Some(("fedrs.dev/v1alpha1", "LocalReplicaSet")),
                waits,
                Some(node(None, None)),
                Asker::Nobody,
                true,
            ),
            (
                of_deployment,
                "Evicting",
                Some(node(None, None)),
                Asker::Nobody,
                false,
            ),
            (
                of_deployment,
                waits,
                Some(node(marked, None)),
                Asker::Node(None),
                false,
            ),
            (
                of_deployment,
                waits,
                Some(node(marked, Some(50))),
                Asker::Node(Some(at(50))),
                true,
            ),
            (
                of_deployment,
                waits,
                Some(node(marked, Some(100))),
                Asker::Node(Some(at(100))),
                false,
            ),
            (
                of_deployment,
                "Evicting",
                Some(node(marked, Some(50))),
                Asker::Node(Some(at(50))),
                false,
            ),
            (
                of_deployment,
                waits,
                Some(Node::Gone),
                Asker::LostNode,
                false,
            ),
            (of_deployment, waits, None, Asker::LostNode, false),
        ] {
            let request = request(owner, phase);
            let asker = Asker::of(&request, node);
            let decided = (asker, asker.is_news(&request));
            assert_eq!(decided, (expected, is_news), "{owner:?} {phase} {node:?}");
        }
    }
}
