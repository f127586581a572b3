//! Which pods of ReplicaSets on marked nodes have no MigrationRequest yet, and the requests for them. Pure.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use fedrs_api::{MigrationCause, MigrationPhase, MigrationRequest, MigrationRequestSpec};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use replica_set_controller::{Eviction, LEAST_AGE};
use serde::Deserialize;

use super::facts::Owner;
use crate::{migration_object::RequestObject, migrations::node_asks};

/// How long a pod stays that has come back to a node which its ReplicaSet had left: by the toleration of a cordon, or as the node is not
/// cordoned. Nothing else would end its evictions: as often as M14 moves pods of a service by default.
const RETURNED_STAYS: Duration = Duration::from_hours(1);

/// A pod as a list of metadata has it.
#[derive(Debug, Deserialize)]
pub(super) struct ListedPod {
    metadata: ObjectMeta,
}

/// A pod of a ReplicaSet on a node that asks its pods to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkedPod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) node: String,
    /// The name of its ReplicaSet.
    pub(super) set: String,
    /// The uid of its ReplicaSet.
    pub(super) set_uid: String,
    created: Timestamp,
    eviction: Eviction,
}

impl MarkedPod {
    /// The pod on `node`, if a ReplicaSet has it and it is not being removed.
    pub(super) fn of(pod: ListedPod, (node, eviction): (&str, Eviction)) -> Option<Self> {
        let Owner::ReplicaSet { name, uid } = Owner::of(&pod.metadata) else {
            return None;
        };
        let (set, set_uid) = (name.to_owned(), uid.to_owned());
        let metadata = pod.metadata;
        if metadata.deletion_timestamp.is_some() {
            return None;
        }
        Some(Self {
            namespace: metadata.namespace?,
            name: metadata.name?,
            uid: metadata.uid?,
            node: node.to_owned(),
            set,
            set_uid,
            created: metadata.creation_timestamp?.0,
            eviction,
        })
    }

    fn place(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// The request for it. What `owner` is about it goes with it.
    pub(super) fn request(&self, owner: OwnerReference) -> MigrationRequest {
        let cause = match self.eviction {
            Eviction::Involuntary => MigrationCause::Node,
            Eviction::Voluntary => MigrationCause::Maintenance,
        };
        let spec = MigrationRequestSpec {
            pod_name: self.name.clone(),
            pod_uid: Some(self.uid.clone()),
            cause,
            reason: node_asks(&self.node),
            ..MigrationRequestSpec::default()
        };
        let mut request = MigrationRequest::new("", spec);
        request.metadata.namespace = Some(self.namespace.clone());
        request.metadata.owner_references = Some(vec![owner]);
        request
    }
}

/// What all MigrationRequests say about pods.
#[derive(Debug, Default)]
pub(super) struct Requested<'a> {
    /// The pods with a request that is open, by uid.
    uids: HashSet<&'a str>,
    /// Those that open requests name by namespace and name only.
    names: HashSet<(&'a str, &'a str)>,
    /// When pods first left a node, by namespace, ReplicaSet and node.
    left: HashMap<(&'a str, &'a str, &'a str), Timestamp>,
}

impl<'a> Requested<'a> {
    pub(super) fn by(requests: &'a [Arc<RequestObject>]) -> Self {
        let mut this = Self::default();
        for request in requests {
            let (namespace, _) = request.id();
            if request.ended().is_none() {
                match request.pod_uid() {
                    Some(uid) => _ = this.uids.insert(uid),
                    None => _ = this.names.insert((namespace, request.pod_name())),
                }
            }
            let status = request.status().filter(|of| of.native.is_some());
            let Some(status) = status else { continue };
            let began = status.history.iter();
            let began = began.filter(|step| step.phase == MigrationPhase::Evicting);
            if let Some(began) = began.map(|step| step.at.0).min() {
                let place = (namespace, &*status.replica_set, &*status.node);
                let first = this.left.entry(place).or_insert(began);
                *first = began.min(*first);
            }
        }
        this
    }

    /// Whether the pod gets a request now.
    fn lacks(&self, pod: &MarkedPod, now: Timestamp) -> bool {
        let left = self.left.get(&(&*pod.namespace, &*pod.set, &*pod.node));
        // Objects have their times of creation without fractions of seconds.
        let is_back = left.is_some_and(|left| left.as_second() <= pod.created.as_second());
        let stays = if is_back { RETURNED_STAYS } else { LEAST_AGE };
        let until = pod.created.checked_add(stays).unwrap_or(Timestamp::MAX);
        // One that was created later than now is of another clock.
        let is_young = pod.created <= now && now < until;
        let is_known = self.uids.contains(&*pod.uid) || self.names.contains(&pod.place());
        !is_known && !is_young
    }
}

/// Those of `pods` that get a request now, in the order of their namespaces and names, and beginning with the first one after `last`: so
/// each has its turn, whatever becomes of the requests for others.
pub(super) fn missing(
    mut pods: Vec<MarkedPod>,
    requested: &Requested<'_>,
    last: Option<(&str, &str)>,
    now: Timestamp,
) -> Vec<MarkedPod> {
    pods.retain(|pod| requested.lacks(pod, now));
    pods.sort_by(|a, b| a.place().cmp(&b.place()));
    let before = pods.partition_point(|pod| Some(pod.place()) <= last);
    pods.rotate_left(before);
    pods
}

#[cfg(test)]
mod property_tests;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(super) fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn listed(name: &str, changes: &Value) -> Option<MarkedPod> {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "set", "controller": true });
        let mut metadata = json!({
            "namespace": "shop", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": at(0), "ownerReferences": [owner],
        });
        for (field, value) in changes.as_object().unwrap() {
            metadata[field] = value.clone();
        }
        let pod = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        MarkedPod::of(pod, ("n1", Eviction::Voluntary))
    }

    pub(super) fn pod(name: &str) -> MarkedPod {
        listed(name, &json!({})).unwrap()
    }

    pub(super) fn request(spec: &Value, status: &Value, is_own: bool) -> Arc<RequestObject> {
        let owner = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true }]);
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
            "metadata": { "name": "one", "namespace": "shop", "uid": "r", "ownerReferences": if is_own { owner } else { Value::Null } },
            "spec": spec, "status": status,
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn names(pods: &[MarkedPod]) -> Vec<&str> {
        pods.iter().map(|pod| &*pod.name).collect()
    }

    #[test]
    fn m1_only_pods_of_replica_sets_that_are_not_removed_are_asked() {
        let owner = |api: &str, kind: &str, controller: bool| json!({ "ownerReferences": [{ "apiVersion": api, "kind": kind, "name": "x", "uid": "1", "controller": controller }] });
        for (changes, expected) in [
            (json!({}), true),
            (json!({ "deletionTimestamp": at(0) }), false),
            (json!({ "ownerReferences": null }), false),
            (owner("apps/v1", "ReplicaSet", false), false),
            (owner("apps/v1", "StatefulSet", true), false),
            (owner("apps/v1", "DaemonSet", true), false),
            (owner("batch/v1", "Job", true), false),
            (owner("fedrs.dev/v1alpha1", "LocalReplicaSet", true), false),
        ] {
            assert_eq!(listed("web", &changes).is_some(), expected, "{changes}");
        }
    }

    #[test]
    fn m1_a_pod_has_one_request() {
        let (by_uid, by_name) = (
            json!({ "podName": "web", "podUid": "uid-web" }),
            json!({ "podName": "web" }),
        );
        let earlier = json!({ "podName": "web", "podUid": "another" });
        let cancelled = json!({ "podName": "web", "podUid": "uid-web", "cancel": true });
        let (open, own, foreign) = (json!({}), true, false);
        let ended = json!({ "phase": "Cancelled", "podUid": "uid-web", "history": [{ "phase": "Cancelled", "at": at(5) }] });
        for (spec, status, is_own, expected) in [
            (&by_uid, &open, own, false),
            (&by_uid, &open, foreign, false),
            (&by_name, &open, foreign, false),
            (&earlier, &open, own, true),
            // The mark was gone for a while.
            (&by_uid, &ended, own, true),
            (&cancelled, &open, own, false),
            // It was about what that person had asked for.
            (&cancelled, &ended, foreign, true),
        ] {
            let requests = [request(spec, status, is_own)];
            let requested = Requested::by(&requests);
            let lacks = requested.lacks(&pod("web"), at(100));
            assert_eq!(lacks, expected, "{spec} {status} {is_own}");
        }
    }

    #[test]
    fn l18_m14_young_pods_and_those_that_come_back_stay_for_a_while() {
        let left = |node: &str, set: &str, began: i64| {
            let history = json!([{ "phase": "Evicting", "at": at(began) }, { "phase": "Done", "at": at(began + 9) }]);
            let status = json!({ "phase": "Done", "podUid": "other", "node": node, "replicaSet": set, "native": {}, "history": history });
            vec![request(&json!({ "podName": "other" }), &status, true)]
        };
        for (requests, now, expected) in [
            (vec![], 29, false),
            (vec![], 30, true),
            // Of another clock.
            (vec![], -5, true),
            (left("n1", "web-5d", -10), 3599, false),
            (left("n1", "web-5d", -10), 3600, true),
            (left("n1", "web-5d", 0), 3599, false),
            // It was there before.
            (left("n1", "web-5d", 10), 30, true),
            (left("n2", "web-5d", -10), 30, true),
            (left("n1", "web-6f", -10), 30, true),
        ] {
            let lacks = Requested::by(&requests).lacks(&pod("web"), at(now));
            assert_eq!(lacks, expected, "{now} {requests:?}");
        }
    }

    #[test]
    fn m5_each_pod_has_its_turn() {
        let pods = || ["c", "a", "b"].map(pod).to_vec();
        let none = Requested::default();
        for (last, expected) in [
            (None, ["a", "b", "c"]),
            (Some(("shop", "a")), ["b", "c", "a"]),
            (Some(("shop", "aa")), ["b", "c", "a"]),
            (Some(("shop", "c")), ["a", "b", "c"]),
            (Some(("a", "z")), ["a", "b", "c"]),
        ] {
            let missing = missing(pods(), &none, last, at(100));
            assert_eq!(names(&missing), expected, "{last:?}");
        }
    }

    #[test]
    fn m1_the_request_says_which_pod_and_why_and_follows_the_mark() {
        let owner = OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            uid: "d".to_owned(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        let involuntary = MarkedPod {
            eviction: Eviction::Involuntary,
            ..pod("web")
        };
        for (pod, cause) in [(pod("web"), "Maintenance"), (involuntary, "Node")] {
            let request = json!(pod.request(owner.clone()));
            let expected = json!({
                "podName": "web", "podUid": "uid-web", "cause": cause,
                "reason": "node n1 has the label fedrs.dev/evict",
            });
            assert_eq!(request["spec"], expected);
            let request: RequestObject = serde_json::from_value(request).unwrap();
            assert!(request.follows_its_cause());
        }
    }
}
