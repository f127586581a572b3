//! Reads the manifest of a FederatedReplicaSet.

use std::path::Path;

use anyhow::{Context, Error, anyhow};
use fedrs_api::{ValidFrs, crd};

use super::{
    fields::{self, invalid},
    input::read_text,
};

/// The set in the file `path`. Validates it as the host's API server and the controller do: against the CRD's schema, then as a whole.
pub(super) fn read(path: &Path) -> Result<ValidFrs, Vec<Error>> {
    parse(&read_text(path)?).map_err(|errors| {
        let in_file = |error: Error| error.context(path.display().to_string());
        errors.into_iter().map(in_file).collect()
    })
}

fn parse(text: &str) -> Result<ValidFrs, Vec<Error>> {
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
    // The plan does not depend on the status of a manifest, and this version may not be able to read an older one.
    object.as_object_mut().map(|object| object.remove("status"));
    let frs = serde_json::from_value(object)
        .context("spec")
        .map_err(|error| vec![error])?;
    ValidFrs::check(&frs).map_err(invalid)
}
