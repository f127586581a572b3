//! Removes the permissions of the controller in namespaces that a join does not list any more.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::{
    apply::Join,
    plan::{self, ExistingObjects},
};
use crate::{
    Error,
    cleanup::{self, Actor},
    cluster_client::RequestError,
    local_workloads, member_cluster,
    object::ObjectRef,
    polling::poll,
    progress::{Progress, Reporter},
};

/// How often the workloads of the member are read.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// Removes the permissions in namespaces that the member does not take any more, once no replica is left in them.
pub(super) async fn remove_former_permissions(
    join: &Join<'_>,
    existing: &ExistingObjects,
    reporter: &mut dyn Reporter,
) -> Result<(), Error> {
    let membership = &join.membership;
    let member = existing.member_cluster(&membership.name);
    let was_listed =
        member.is_some_and(|member| member_cluster::listed_namespaces(member).is_some());
    if membership.namespaces.is_none() && !was_listed {
        return Ok(());
    }
    let mut outdated = outdated::<RoleBinding>(join).await?;
    outdated.extend(self::outdated::<Role>(join).await?);
    let narrows = plan::removes_permissions(membership, existing);
    if outdated.is_empty() && !narrows {
        return Ok(());
    }
    wait_until_empty(join, reporter).await?;
    delete_empty(join, reporter).await?;
    if narrows {
        let steps = plan::member_steps(membership, existing, None);
        join.apply_step(&steps[plan::OWNER], existing, None, reporter)
            .await?;
    }
    for object in outdated {
        cleanup::delete(join.clusters.member, object, reporter).await?;
    }
    Ok(())
}

/// The objects of a kind that grant permissions in namespaces that are not listed any more.
async fn outdated<K>(join: &Join<'_>) -> Result<Vec<ObjectRef>, RequestError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let membership = &join.membership;
    let (member, account) = (join.clusters.member, membership.account());
    let objects: Vec<K> = member.list(&membership.account_selector()).await?;
    let namespaces = objects
        .iter()
        .filter(|object| object.name_any() == account)
        .filter_map(ResourceExt::namespace);
    let outdated = namespaces.filter(|namespace| {
        *namespace != membership.namespace && !membership.listed_namespaces().contains(namespace)
    });
    Ok(outdated
        .map(|namespace| ObjectRef::namespaced::<K>(&namespace, &account))
        .collect())
}

/// Deletes the workloads without replicas that are left in namespaces that the controller loses permissions in.
async fn delete_empty(join: &Join<'_>, reporter: &mut dyn Reporter) -> Result<(), RequestError> {
    let (member, membership) = (join.clusters.member, &join.membership);
    let Some(listed) = &membership.namespaces else {
        return Ok(());
    };
    let mut left = local_workloads::namespaces(member, membership).await?;
    left.retain(|namespace| !listed.contains(namespace));
    let left = Vec::from_iter(left);
    let (left, actor) = (Some(&*left), Actor::User);
    local_workloads::delete_empty(member, membership, left, actor, reporter).await
}

/// Waits until no replica is left in namespaces that the controller loses permissions in.
async fn wait_until_empty(join: &Join<'_>, reporter: &mut dyn Reporter) -> Result<(), Error> {
    let (member, membership) = (join.clusters.member, &join.membership);
    let Some(listed) = &membership.namespaces else {
        return Ok(());
    };
    let read = async || {
        let mut left = local_workloads::namespaces_with_replicas(member, membership).await?;
        left.retain(|namespace| !listed.contains(namespace));
        let left = Vec::from_iter(left).join(", ");
        Ok::<_, RequestError>(if left.is_empty() { Ok(()) } else { Err(left) })
    };
    let timeout = join.request.timeout;
    let report = |left| reporter.progress(Progress::WaitingForNamespaces(left));
    match poll(timeout, POLL_PERIOD, read, report).await? {
        Ok(()) => Ok(()),
        Err(left) => Err(Error::ReplicasLeft {
            name: membership.name.clone(),
            timeout,
            namespaces: left,
        }),
    }
}
