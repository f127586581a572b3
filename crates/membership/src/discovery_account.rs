//! The account of discovery in a member, and what discovery needs of it on the host: what `fedrs join --with-discovery` creates.
//!
//! ```text
//! member: ClusterRole of the membership --owns--> account, what it may read, who renews its token --token--.
//! host:   Secret with a kubeconfig of that account <-----------------------------------------------------'
//!         Role: discovery may read this Secret, and no other
//! ```

use controller_base::rbac::Manifest;
use discovery::rbac::{joined_manifests, secret_manifests};
use serde_json::Value;

use crate::{
    cleanup,
    cluster_client::{ClusterClient, RequestError},
    membership::{Membership, created_by_join, discovery_secret_name},
    object::ObjectRef,
    progress::Reporter,
};

/// The permissions in the member, and on the host; none without discovery.
pub(crate) fn grants(membership: &Membership) -> [Vec<Manifest>; 2] {
    if membership.discovery {
        [in_member(membership), on_host(membership)]
    } else {
        [Vec::new(), Vec::new()]
    }
}

fn in_member(membership: &Membership) -> Vec<Manifest> {
    joined_manifests(
        &membership.namespace,
        &membership.discovery_account(),
        &membership.account(),
    )
}

fn on_host(membership: &Membership) -> Vec<Manifest> {
    let secret = discovery_secret_name(&membership.name);
    secret_manifests(&membership.namespace, &secret).into()
}

/// The objects in the member, in the order of creation; none without discovery. `owner` is the uid of the ClusterRole that owns
/// them.
pub(crate) fn member_manifests(membership: &Membership, owner: &str) -> Vec<Value> {
    let [in_member, _] = grants(membership);
    let mut objects = membership.labelled(&in_member);
    for object in &mut objects {
        object["metadata"]["ownerReferences"] = membership.owner_references(owner);
    }
    objects
}

/// The objects on the host, in the order of creation, the Secret first; none without discovery.
pub(crate) fn host_manifests(membership: &Membership, kubeconfig: Option<&str>) -> Vec<Value> {
    if !membership.discovery {
        return Vec::new();
    }
    let secret = membership.secret_of(&discovery_secret_name(&membership.name), kubeconfig);
    let roles = membership.labelled(&on_host(membership));
    std::iter::once(secret).chain(roles).collect()
}

/// Deletes as the user what join created in the member.
pub(crate) async fn delete_in_member(
    member: &ClusterClient,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let objects = membership.labelled(&in_member(membership));
    delete_created(member, objects.iter().map(ObjectRef::of).rev(), reporter).await
}

/// Deletes what join created on the host: the Secret last, because without it nothing else is looked for.
pub(crate) async fn delete_on_host(
    host: &ClusterClient,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let secret = membership.discovery_secret_ref();
    let live = host.get(&secret).await?;
    if !live.as_ref().is_some_and(created_by_join) {
        return Ok(());
    }
    let roles = membership.labelled(&on_host(membership));
    let objects = roles.iter().map(ObjectRef::of).rev();
    delete_created(host, objects.chain([secret]), reporter).await
}

async fn delete_created(
    cluster: &ClusterClient,
    objects: impl Iterator<Item = ObjectRef>,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    for object in objects {
        let live = cluster.get(&object).await?;
        if live.as_ref().is_some_and(created_by_join) {
            cleanup::delete(cluster, object, reporter).await?;
        }
    }
    Ok(())
}
