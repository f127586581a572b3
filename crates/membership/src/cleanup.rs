//! Deletes what join created in a cluster.

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    names,
    namespace_contents::contents,
    object::{CLUSTER_ROLE, ObjectRef},
    progress::{KeepReason, Progress, Reporter},
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
        objects.retain(|object| object.kind == CLUSTER_ROLE);
    }
    // The owner last: while it exists, an interrupted cleanup can be repeated.
    for object in objects.into_iter().rev() {
        if member.delete(&object).await? {
            reporter.progress(Progress::Deleted {
                side: member.side,
                object,
            });
        }
    }
    Ok(())
}

/// Deletes the namespace if join created it and it is empty; reports why if not.
pub(crate) async fn delete_namespace(
    cluster: &ClusterClient,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let object = membership.namespace_ref();
    let Some(namespace) = cluster.get(&object).await? else {
        return Ok(());
    };
    let side = cluster.side;
    let reason = if names::created_by_join(&namespace) {
        match contents(cluster, &membership.namespace).await {
            Ok(objects) if objects.is_empty() => {
                cluster.delete(&object).await?;
                reporter.progress(Progress::Deleted { side, object });
                return Ok(());
            }
            Ok(objects) => KeepReason::NotEmpty(objects),
            // The user may lack a permission, or an API may be unavailable: the namespace may contain anything.
            Err(error) => KeepReason::UnknownContents(error.to_string()),
        }
    } else {
        KeepReason::NotCreatedByJoin
    };
    reporter.progress(Progress::Kept {
        side,
        object,
        reason,
    });
    Ok(())
}
