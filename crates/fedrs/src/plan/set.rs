//! A case made of a FederatedReplicaSet and the clusters it would meet.

use fedrs_api::{FederatedReplicaSet, FieldError, ValidFrs, crd};

use super::{
    case::Case,
    fields::{self, Fields},
};

/// What the flags say about the clusters.
pub(super) struct Circumstances<'a> {
    pub(super) clusters: &'a [String],
    pub(super) current: &'a [(String, u64)],
    pub(super) capacity: &'a [(String, u64)],
}

/// The case of the set in `text` under `circumstances`. Checks the set as the host's API server and the controller
/// would: against the CRD's schema, then as a whole.
pub(super) fn case(text: &str, circumstances: &Circumstances<'_>) -> Result<Case, Vec<FieldError>> {
    let whole = |message: String| {
        vec![FieldError {
            field: "the object".to_owned(),
            message,
        }]
    };
    let mut object = fields::parse(text).map_err(whole)?;
    let kind = (object["apiVersion"].as_str(), object["kind"].as_str());
    if kind != (Some("fedrs.dev/v1alpha1"), Some("FederatedReplicaSet")) {
        return Err(whole(
            "is not a FederatedReplicaSet of fedrs.dev/v1alpha1".to_owned(),
        ));
    }
    let errors = crd::schema_errors(&object);
    if !errors.is_empty() {
        return Err(errors);
    }
    // Only what was written by a user is of interest here, and a status of an older version might not be read.
    object.as_object_mut().map(|object| object.remove("status"));
    let frs: FederatedReplicaSet =
        serde_json::from_value(object).map_err(|error| whole(error.to_string()))?;
    let valid = ValidFrs::check(&frs)?;
    let mut fields = Fields::default();
    fields.check_names(circumstances.clusters, "--clusters");
    if !fields.errors.is_empty() {
        return Err(fields.errors);
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
        clusters: circumstances.clusters.to_vec(),
        current: circumstances.current.iter().cloned().collect(),
        capacity: circumstances.capacity.iter().cloned().collect(),
    })
}
