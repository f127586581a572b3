//! The controller of LocalReplicaSets in a member: what `fedrs join --with-replica-sets` installs there, and its removal.
//!
//! ```text
//! ClusterRole of the membership --owns--> account, roles, Deployment       CRD: as long as there is a LocalReplicaSet
//! ```
//!
//! What somebody else has installed is neither changed nor removed: a cluster has one such controller, whoever it is a member of.

use std::time::Duration;

use controller_base::rbac::Manifest;
use fedrs_api::{crd, labels};
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use local_controller::{LEASE, deployment, rbac};
use serde_json::{Value, json};

use crate::{
    cleanup,
    cluster_client::{ClusterClient, RequestError},
    membership::{Membership, created_by_join},
    object::{ObjectRef, Write, none_if_not_found, required_write},
    polling::poll,
    progress::{KeepReason, Progress, Reporter},
};

/// The label with the version of fedrs that wrote an object. The API server adds defaults to the others.
const VERSION: (&str, &str) = ("app.kubernetes.io/version", env!("CARGO_PKG_VERSION"));
/// How long the pods of the controller may take to end.
const END: Duration = Duration::from_secs(60);
/// How often they are looked for.
const END_POLL_PERIOD: Duration = Duration::from_millis(500);
/// How many objects of a kind are named at most, and one more.
const LISTED_OBJECTS: usize = 4;

/// The permissions of the controller.
pub(crate) fn grants(membership: &Membership) -> Vec<Manifest> {
    rbac::manifests(Some(&membership.namespace), None)
}

/// The objects in the order of creation, the CRDs first. `owner` is the uid of the ClusterRole that owns all but the CRDs.
pub(crate) fn manifests(membership: &Membership, owner: &str, image: &str) -> Vec<Value> {
    let permissions = grants(membership);
    let mut objects: Vec<_> = crd::local().iter().map(|crd| json!(crd)).collect();
    objects.extend(permissions.iter().map(Manifest::to_value));
    objects.push(deployment(Some(&membership.namespace), image));
    objects.retain(|object| object["kind"] != "Namespace");
    for object in &mut objects {
        let labels = membership.member_labels();
        for (label, value) in labels
            .into_iter()
            .chain([(VERSION.0, VERSION.1.to_owned())])
        {
            object["metadata"]["labels"][label] = value.into();
        }
        if object["kind"] != "CustomResourceDefinition" {
            object["metadata"]["ownerReferences"] = membership.owner_references(owner);
        }
    }
    objects
}

/// The write that an object needs: none if somebody else has created it.
pub(crate) fn write(membership: &Membership, manifest: &Value, live: Option<&Value>) -> Write {
    match live {
        Some(live) if !is_ours(membership, live) || is_as_written(manifest, live) => Write::None,
        live => required_write(manifest, live),
    }
}

/// Whether the join of this member created it.
fn is_ours(membership: &Membership, live: &Value) -> bool {
    let member = &live["metadata"]["labels"][labels::MEMBER_CLUSTER];
    created_by_join(live) && *member == membership.name
}

/// Whether this version wrote it, with the same image and the same owner.
fn is_as_written(manifest: &Value, live: &Value) -> bool {
    let image = "/spec/template/spec/containers/0/image";
    let owner = "/metadata/ownerReferences/0/uid";
    live["metadata"]["labels"][VERSION.0] == VERSION.1
        && [image, owner].map(|field| manifest.pointer(field))
            == [image, owner].map(|field| live.pointer(field))
}

/// Deletes as the user what the join of this member created. A CRD stays while there are objects of it: the
/// pods of LocalReplicaSets would be deleted with them.
pub(crate) async fn delete(
    member: &ClusterClient,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let objects = manifests(membership, "", "");
    let objects: Vec<_> = objects.iter().map(ObjectRef::of).collect();
    for object in objects.into_iter().rev() {
        let live = member.get(&object).await?;
        if !live.is_some_and(|live| is_ours(membership, &live)) {
            continue;
        }
        if object.is::<CustomResourceDefinition>() {
            delete_crd(member, object, reporter).await?;
            continue;
        }
        let is_deployment = object.is::<Deployment>();
        cleanup::delete(member, object, reporter).await?;
        if is_deployment {
            until_ended(member, membership).await?;
            let lease = ObjectRef::namespaced::<Lease>(&membership.namespace, LEASE);
            cleanup::delete(member, lease, reporter).await?;
        }
    }
    Ok(())
}

/// Waits until no pod of the controller is left, which would renew its Lease.
async fn until_ended(member: &ClusterClient, membership: &Membership) -> Result<(), RequestError> {
    let uri = format!(
        "/api/v1/namespaces/{}/pods?labelSelector=app.kubernetes.io%2Finstance%3D{LEASE}",
        membership.namespace
    );
    let count = async || {
        let pods = member.send("list pods", "GET", &uri, None).await?;
        let count = pods["items"].as_array().map_or(0, Vec::len);
        Ok::<_, RequestError>(if count == 0 { Ok(()) } else { Err(count) })
    };
    // One on a node that does not answer is not waited for.
    let _ended = poll(END, END_POLL_PERIOD, count, |_| {}).await?;
    Ok(())
}

async fn delete_crd(
    member: &ClusterClient,
    object: ObjectRef,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let crds = crd::local().into_iter();
    let mut names = crds.map(|crd| crd.spec.names);
    let is_of = |plural: &str| object.name.strip_prefix(plural) == Some(".fedrs.dev");
    let names = names.find(|names| is_of(&names.plural)).unwrap_or_default();
    let (plural, kind) = (names.plural, names.kind.to_lowercase());
    let uri = format!("/apis/fedrs.dev/v1alpha1/{plural}?limit={LISTED_OBJECTS}");
    let listed = (member.send(&format!("list {plural}"), "GET", &uri, None)).await;
    let listed = none_if_not_found(listed)?.unwrap_or_default();
    let listed = listed["items"].as_array().into_iter().flatten();
    let name = |listed: &Value| {
        let text = |field: &str| listed["metadata"][field].as_str().unwrap_or_default();
        format!("{kind}/{}/{}", text("namespace"), text("name"))
    };
    let listed: Vec<_> = listed.map(name).collect();
    if listed.is_empty() {
        return cleanup::delete(member, object, reporter).await;
    }
    reporter.progress(Progress::Kept {
        cluster: member.cluster_type,
        object,
        reason: KeepReason::HasObjects(listed),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership() -> Membership {
        Membership {
            name: "eu".to_owned(),
            federation: String::new(),
            namespace: "system".to_owned(),
            host_id: "1a2b3c4d-5e6f".to_owned(),
            cluster_id: "c".to_owned(),
            namespaces: None,
            discovery: false,
        }
    }

    #[test]
    fn the_cluster_role_of_the_membership_owns_all_but_the_crd() {
        let objects = manifests(&membership(), "owner", "fedrs:1");
        let kinds: Vec<_> = objects.iter().map(|object| &object["kind"]).collect();
        assert_eq!(kinds.first().unwrap(), &"CustomResourceDefinition");
        assert_eq!(kinds.last().unwrap(), &"Deployment");
        assert_eq!(objects.len(), 9);
        for object in &objects {
            let owner = object.pointer("/metadata/ownerReferences/0");
            assert_eq!(
                owner.is_some(),
                object["kind"] != "CustomResourceDefinition"
            );
            let owner = owner.map_or("owner", |owner| owner["uid"].as_str().unwrap());
            assert_eq!(owner, "owner");
            let namespace = object["metadata"]["namespace"].as_str();
            assert_eq!(namespace.unwrap_or("system"), "system");
        }
    }

    #[test]
    fn an_object_is_written_again_for_another_version_image_or_owner_and_only_if_it_is_ours() {
        let membership = membership();
        let deployment =
            |owner: &str, image: &str| manifests(&membership, owner, image).pop().unwrap();
        let live = deployment("owner", "fedrs:1");
        let is_written =
            |desired: &Value, live: &Value| write(&membership, desired, Some(live)) != Write::None;
        assert!(!is_written(&live, &live));
        assert!(is_written(&deployment("owner", "fedrs:2"), &live));
        assert!(is_written(&deployment("other", "fedrs:1"), &live));
        for (label, value, expected) in [
            (VERSION.0, "0.0.1", true),
            (labels::MEMBER_CLUSTER, "us", false),
            ("app.kubernetes.io/managed-by", "Helm", false),
        ] {
            let mut live = live.clone();
            live["metadata"]["labels"][label] = value.into();
            let desired = deployment("owner", "fedrs:2");
            assert_eq!(is_written(&desired, &live), expected, "{label}");
        }
        assert!(matches!(write(&membership, &live, None), Write::Create(_)));
    }
}
