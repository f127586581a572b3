//! Builds a case from the manifest of a FederatedReplicaSet and the flags that describe the clusters.

use anyhow::{Context, Error, anyhow};
use clap::Args;
use fedrs_api::{FieldErrors, ValidFrs, crd};

use super::{
    case::Case,
    fields::{self, invalid},
};

/// The flags that describe the clusters.
#[derive(Args)]
pub(crate) struct ClusterFlags {
    /// Names of the clusters, with --file
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "file"
    )]
    clusters: Vec<String>,
    /// Existing replicas in a cluster, with --file
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "file", value_parser = parse_count)]
    current: Vec<(String, u64)>,
    /// The most replicas that a cluster can run, with --file
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "file", value_parser = parse_count)]
    capacity: Vec<(String, u64)>,
}

/// Parses `NAME=N` of a flag.
fn parse_count(text: &str) -> Result<(String, u64), String> {
    let (name, count) = text.rsplit_once('=').ok_or("must be NAME=N")?;
    let count: i64 = count
        .parse()
        .map_err(|_| format!("{count:?} is not an integer"))?;
    let count = u64::try_from(count).map_err(|_| "must not be negative".to_owned())?;
    Ok((name.to_owned(), count))
}

/// The case of the set in `text` with the clusters in `flags`. Validates the set as the host's API server and the controller
/// do: against the CRD's schema, then as a whole.
pub(super) fn case(text: &str, flags: &ClusterFlags) -> Result<Case, Vec<Error>> {
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
    let mut errors = FieldErrors::default();
    fields::check_names(&flags.clusters, "--clusters", &mut errors);
    errors.or(()).map_err(invalid)?;
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
        clusters: flags.clusters.clone(),
        current: flags.current.iter().cloned().collect(),
        capacity: flags.capacity.iter().cloned().collect(),
    })
}
