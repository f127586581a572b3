//! The objects of a completed join, for tests.

use std::collections::BTreeMap;

use serde_json::Value;

use super::plan::ExistingObjects;
use crate::membership::Membership;

pub(super) fn membership() -> Membership {
    Membership {
        federation: String::new(),
        name: "eu".to_owned(),
        namespace: "system".to_owned(),
        host_id: "1a2b3c4d-host".to_owned(),
        cluster_id: "eu-uid".to_owned(),
        namespaces: None,
        discovery: false,
    }
}

/// All objects of a completed join.
pub(super) fn complete() -> ExistingObjects {
    let membership = membership();
    let stored = |mut object: Value| {
        object["metadata"]["uid"] = format!("uid of {}", object["kind"]).into();
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        object
    };
    let role = stored(membership.member_manifests("")[0].clone());
    let owner = role["metadata"]["uid"].as_str().unwrap().to_owned();
    let member_objects = membership.member_manifests(&owner).into_iter();
    let member = stored(membership.member_cluster_manifest(&BTreeMap::new()));
    ExistingObjects {
        member_namespace: Some(stored(Membership::namespace_manifest("system"))),
        member_objects: member_objects.map(|object| Some(stored(object))).collect(),
        host_namespace: Some(stored(Membership::namespace_manifest("system"))),
        namespaces: Vec::new(),
        replica_sets: Vec::new(),
        discovery_in_member: Vec::new(),
        discovery_on_host: Vec::new(),
        secret: Some(stored(membership.secret_manifest(Some("kubeconfig")))),
        members: vec![serde_json::from_value(member).unwrap()],
    }
}
