//! Builds a case from the manifest of a FederatedReplicaSet and the flags that describe the clusters.

use anyhow::{Context, Error, anyhow};
use fedrs_api::{FieldError, ValidFrs, crd};

use super::{
    case::Case,
    fields::{self, Fields},
};

/// The clusters, as the flags describe them.
pub(super) struct ClusterFlags<'a> {
    pub(super) clusters: &'a [String],
    pub(super) current: &'a [(String, u64)],
    pub(super) capacity: &'a [(String, u64)],
}

/// The case of the set in `text` with the clusters in `flags`. Validates the set as the host's API server and the controller
/// do: against the CRD's schema, then as a whole.
pub(super) fn case(text: &str, flags: &ClusterFlags<'_>) -> Result<Case, Vec<Error>> {
    let invalid = |errors: Vec<FieldError>| errors.into_iter().map(Error::new).collect();
    let mut object = fields::parse(text).map_err(|error| vec![error])?;
    let kind = (object["apiVersion"].as_str(), object["kind"].as_str());
    if kind != (Some("fedrs.dev/v1alpha1"), Some("FederatedReplicaSet")) {
        return Err(vec![anyhow!(
            "not a FederatedReplicaSet of fedrs.dev/v1alpha1"
        )]);
    }
    let errors = crd::schema_errors(&object);
    if !errors.is_empty() {
        return Err(invalid(errors));
    }
    // The layout does not depend on the status, and this version may not be able to read an older one.
    object.as_object_mut().map(|object| object.remove("status"));
    let frs = serde_json::from_value(object)
        .context("spec")
        .map_err(|error| vec![error])?;
    let valid = ValidFrs::check(&frs).map_err(invalid)?;
    let mut fields = Fields::default();
    fields.check_names(flags.clusters, "--clusters");
    fields.or(())?;
    let namespace = if valid.key.namespace.is_empty() {
        "default"
    } else {
        &valid.key.namespace
    };
    Ok(Case {
        name: Some(valid.key.name.to_string()),
        key: format!("{namespace}/{}", valid.key.name),
        replicas: u64::from(valid.replicas),
        placement: valid.placement,
        clusters: flags.clusters.to_vec(),
        current: flags.current.iter().cloned().collect(),
        capacity: flags.capacity.iter().cloned().collect(),
    })
}
