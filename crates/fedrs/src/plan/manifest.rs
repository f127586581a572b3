//! Reads the manifest of a FederatedReplicaSet or FederatedDeployment.

use std::path::Path;

use anyhow::{Context, Error, anyhow};
use fedrs_api::{SetKind, ValidFederatedDeployment, ValidFrs, crd};
use membership::ValidSet;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    fields::{self, invalid},
    input::read_text,
};

/// The set in the file `path`. Validates it as the host's API server and the controller do: against the CRD's schema, then as a whole.
pub(crate) fn read(path: &Path) -> Result<ValidSet, Vec<Error>> {
    parse(&read_text(path)?).map_err(|errors| {
        let in_file = |error: Error| error.context(path.display().to_string());
        errors.into_iter().map(in_file).collect()
    })
}

fn parse(text: &str) -> Result<ValidSet, Vec<Error>> {
    let mut object = fields::parse(text).map_err(|error| vec![error])?;
    let kinds = SetKind::ALL.into_iter();
    let mut kinds = kinds.filter(|kind| object["kind"] == kind.as_str());
    let is_of_fedrs = object["apiVersion"] == "fedrs.dev/v1alpha1";
    let Some(kind) = kinds.next().filter(|_| is_of_fedrs) else {
        return Err(vec![anyhow!(
            "neither a FederatedReplicaSet nor a FederatedDeployment of fedrs.dev/v1alpha1"
        )]);
    };
    let errors = crd::schema_errors(kind, &object);
    if !errors.is_empty() {
        return Err(invalid(errors));
    }
    // The plan does not depend on the status of a manifest, and this version may not be able to read an older one.
    object.as_object_mut().map(|object| object.remove("status"));
    match kind {
        SetKind::FederatedReplicaSet => {
            let valid = ValidFrs::check(&decode(object)?).map_err(invalid)?;
            Ok(valid.into())
        }
        SetKind::FederatedDeployment => {
            let valid = ValidFederatedDeployment::check(&decode(object)?).map_err(invalid)?;
            Ok(valid.into())
        }
    }
}

fn decode<T: DeserializeOwned>(object: Value) -> Result<T, Vec<Error>> {
    let decoded = serde_json::from_value(object).context("spec");
    decoded.map_err(|error| vec![error])
}
