//! Deletes what join created in a cluster.

use k8s_openapi::api::{core::v1::Namespace, rbac::v1::ClusterRole};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::{Membership, created_by_join},
    namespace_contents::contents,
    object::ObjectRef,
    progress::{KeepReason, Progress, Reporter, Warning},
};

/// Whose credentials delete the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// A user who may delete roles.
    User,
    /// The controller's ServiceAccount, which may delete its ClusterRole only. The garbage collector deletes the rest.
    ServiceAccount,
}

/// Deletes the controller's ServiceAccount, its roles and bindings from `member`.
pub(crate) async fn delete_account(
    member: &ClusterClient,
    membership: &Membership,
    actor: Actor,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let manifests = membership.member_manifests("");
    let mut objects: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect();
    if actor == Actor::ServiceAccount {
        objects.retain(ObjectRef::is::<ClusterRole>);
    }
    // The owner last: while it exists, an interrupted cleanup can be repeated.
    for object in objects.into_iter().rev() {
        delete(member, object, reporter).await?;
    }
    Ok(())
}

/// Deletes the namespace if join created it and it is empty; reports why if not.
pub(crate) async fn delete_namespace(
    cluster: &ClusterClient,
    name: &str,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let object = ObjectRef::cluster_scoped::<Namespace>(name);
    let Some(namespace) = cluster.get(&object).await? else {
        return Ok(());
    };
    let reason = if created_by_join(&namespace) {
        match contents(cluster, name).await {
            Ok(objects) if objects.is_empty() => return delete(cluster, object, reporter).await,
            Ok(objects) => KeepReason::NotEmpty(objects),
            // The user may lack a permission, or an API may be unavailable: the namespace may contain anything.
            Err(error) => KeepReason::UnknownContents(error.to_string()),
        }
    } else {
        KeepReason::NotCreatedByJoin
    };
    reporter.progress(Progress::Kept {
        cluster: cluster.cluster_type,
        object,
        reason,
    });
    Ok(())
}

/// Deletes `object` if it exists, and reports that.
pub(crate) async fn delete(
    cluster: &ClusterClient,
    object: ObjectRef,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    if cluster.delete(&object).await? {
        let cluster = cluster.cluster_type;
        reporter.progress(Progress::Deleted { cluster, object });
    }
    Ok(())
}

/// Reports what the user has to delete if the ServiceAccount could not delete its objects in a member. Returns whether it has
/// deleted them just now.
pub(crate) fn report_if_incomplete(
    cleaned: Result<(), RequestError>,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> bool {
    match cleaned {
        Ok(()) => return true,
        // The ServiceAccount was deleted before.
        Err(error) if error.code() == Some(401) => {}
        Err(error) => {
            reporter.warn(Warning::Request(error));
            reporter.progress(membership.manual_cleanup());
        }
    }
    false
}
