//! Builds a case from the manifest of a FederatedReplicaSet and the flags that describe the clusters.

use fedrs_api::{FederatedReplicaSet, FieldError, ValidFrs, crd};

use super::{
    case::Case,
    fields::{self, Fields, SyntaxError},
};

/// The clusters, as the flags describe them.
pub(super) struct ClusterFlags<'a> {
    pub(super) clusters: &'a [String],
    pub(super) current: &'a [(String, u64)],
    pub(super) capacity: &'a [(String, u64)],
}

/// Why a manifest can't be planned.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    /// It is neither JSON nor YAML.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// It is another kind of object.
    #[error("not a FederatedReplicaSet of fedrs.dev/v1alpha1")]
    Kind,
    /// A field is invalid.
    #[error("{0}")]
    Field(FieldError),
}

/// The case of the set in `text` with the clusters in `flags`. Validates the set as the host's API server and the controller
/// do: against the CRD's schema, then as a whole.
pub(super) fn case(text: &str, flags: &ClusterFlags<'_>) -> Result<Case, Vec<ManifestError>> {
    let invalid = |errors: Vec<FieldError>| errors.into_iter().map(ManifestError::Field).collect();
    let mut object = fields::parse(text).map_err(|error| vec![error.into()])?;
    let kind = (object["apiVersion"].as_str(), object["kind"].as_str());
    if kind != (Some("fedrs.dev/v1alpha1"), Some("FederatedReplicaSet")) {
        return Err(vec![ManifestError::Kind]);
    }
    let errors = crd::schema_errors(&object);
    if !errors.is_empty() {
        return Err(invalid(errors));
    }
    // The layout does not depend on the status, and this version may not be able to read an older one.
    object.as_object_mut().map(|object| object.remove("status"));
    let frs: FederatedReplicaSet = serde_json::from_value(object).map_err(|error| {
        invalid(vec![FieldError {
            field: "spec".to_owned(),
            message: error.to_string(),
        }])
    })?;
    let valid = ValidFrs::check(&frs).map_err(invalid)?;
    let mut fields = Fields::default();
    fields.check_names(flags.clusters, "--clusters");
    if !fields.errors.is_empty() {
        return Err(invalid(fields.errors));
    }
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
