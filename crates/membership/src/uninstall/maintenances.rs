//! The Maintenances of a federation that is removed: nobody would remove their marks, so that their deletion must not wait for that.

use controller_base::finalizer;
use fedrs_api::{Maintenance, finalizers};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::{FIELD_MANAGER, none_if_not_found},
};

/// Those of `federation` with the finalizer of fedrs. None without their CRD.
pub(super) async fn with_finalizer(
    host: &ClusterClient,
    federation: &str,
) -> Result<Vec<Maintenance>, RequestError> {
    let listed = none_if_not_found(host.list::<Maintenance>("").await)?;
    let mut all = listed.unwrap_or_default();
    all.retain(|maintenance| {
        maintenance.spec.federation == federation
            && finalizer::is_present(&maintenance.metadata, finalizers::MAINTENANCE)
    });
    Ok(all)
}

/// Removes the finalizer of fedrs, and keeps others.
pub(super) async fn remove_finalizer(
    host: &ClusterClient,
    maintenance: &Maintenance,
) -> Result<(), RequestError> {
    let patch = Patch::Merge(finalizer::removal(
        &maintenance.metadata,
        finalizers::MAINTENANCE,
    ));
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let name = maintenance.name_any();
    let all: Api<Maintenance> = Api::all(host.client());
    let request = all.patch_metadata(&name, &parameters, &patch);
    let operation = format!("patch maintenance/{name}");
    none_if_not_found(host.call(operation, request).await).map(drop)
}
