//! The Maintenances of a federation that is removed: nobody would remove their marks, so that their deletion must not wait for that.

use fedrs_api::{Maintenance, finalizers};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

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
        let finalizers = maintenance.finalizers();
        maintenance.spec.federation == federation
            && finalizers.contains(&finalizers::MAINTENANCE.to_owned())
    });
    Ok(all)
}

/// Removes the finalizer of fedrs, and keeps others.
pub(super) async fn remove_finalizer(
    host: &ClusterClient,
    maintenance: &Maintenance,
) -> Result<(), RequestError> {
    let mut others = maintenance.finalizers().to_vec();
    others.retain(|finalizer| finalizer != finalizers::MAINTENANCE);
    let patch = Patch::Merge(json!({
        "metadata": {
            "uid": maintenance.uid(),
            "resourceVersion": maintenance.resource_version(),
            "finalizers": others,
        },
    }));
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
