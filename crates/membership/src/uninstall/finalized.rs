//! Objects of a federation that is removed, which have a finalizer of fedrs: nobody would do what they wait for, so that their deletion must
//! not wait for that.

use controller_base::finalizer;
use fedrs_api::{AvailabilitySet, Maintenance, finalizers};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::{ObjectRef, Write, WriteMode, none_if_not_found},
};

/// A kind of object on the host, with a finalizer of fedrs.
pub(super) trait Finalized:
    Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug
{
    /// The finalizer.
    const FINALIZER: &'static str;

    /// The federation that handles the object.
    fn federation(&self) -> &str;
}

impl Finalized for Maintenance {
    const FINALIZER: &'static str = finalizers::MAINTENANCE;

    fn federation(&self) -> &str {
        &self.spec.federation
    }
}

impl Finalized for AvailabilitySet {
    const FINALIZER: &'static str = finalizers::AVAILABILITY_SET;

    fn federation(&self) -> &str {
        &self.spec.federation
    }
}

/// Those of `federation` with the finalizer. None without their CRD.
pub(super) async fn list<K: Finalized>(
    host: &ClusterClient,
    federation: &str,
) -> Result<Vec<K>, RequestError> {
    let listed = none_if_not_found(host.list::<K>("").await)?;
    let mut all = listed.unwrap_or_default();
    all.retain(|object| {
        object.federation() == federation && finalizer::is_present(object.meta(), K::FINALIZER)
    });
    Ok(all)
}

/// Removes the finalizer, and keeps others.
pub(super) async fn release<K: Finalized>(
    host: &ClusterClient,
    object: &K,
) -> Result<(), RequestError> {
    let name = object.name_any();
    let reference = match object.namespace() {
        Some(namespace) => ObjectRef::namespaced::<K>(&namespace, &name),
        None => ObjectRef::cluster_scoped::<K>(&name),
    };
    let patch = Write::Patch(finalizer::removal(object.meta(), K::FINALIZER));
    let written = host.write(&reference, &patch, WriteMode::Persist).await;
    none_if_not_found(written).map(drop)
}
