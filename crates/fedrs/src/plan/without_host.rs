//! Plans without a host: layouts of cases, or of a manifest with options that describe the clusters.

use std::path::Path;

use anyhow::Error;
use clap::Args;
use fedrs_api::{FieldErrors, ObjectKey};

use super::{
    case::{Case, Cases},
    fields::{self, invalid},
    input::read_text,
    manifest,
    result::CaseResult,
    table,
};
use crate::output::{self, Format};

/// The options that describe the clusters.
#[derive(Args)]
#[command(next_help_heading = "Without a host")]
pub(super) struct ClusterArgs {
    /// With --filename: names of the clusters. The command prints the layout without connecting to a host
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "filename"
    )]
    pub(super) clusters: Vec<String>,
    /// With --clusters: existing replicas in a cluster
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "clusters", value_parser = parse_count)]
    current: Vec<(String, u64)>,
    /// With --clusters: the most replicas that a cluster can run
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "clusters", value_parser = parse_count)]
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

/// The layouts of the cases in a file, as text.
pub(super) fn layouts_of_cases(path: &Path, format: Option<Format>) -> Result<String, Vec<Error>> {
    Ok(layouts(&Cases::parse(&read_text(path)?)?, format))
}

/// The layout of the set in a file over the clusters of `args`, as text.
pub(super) fn layout_of_manifest(
    path: &Path,
    args: &ClusterArgs,
    format: Option<Format>,
) -> Result<String, Vec<Error>> {
    let frs = manifest::read(path)?.frs;
    let mut errors = FieldErrors::default();
    fields::check_names(&args.clusters, "--clusters", &mut errors);
    errors.or(()).map_err(invalid)?;
    let namespace = if frs.key.namespace.is_empty() {
        "default"
    } else {
        &frs.key.namespace
    };
    let case = Case {
        name: Some(frs.key.name.to_string()),
        key: ObjectKey::of_kind(frs.key.kind, namespace, frs.key.name).to_string(),
        replicas: u64::from(frs.replicas),
        placement: frs.placement,
        clusters: args.clusters.clone(),
        current: args.current.iter().cloned().collect(),
        capacity: args.capacity.iter().cloned().collect(),
    };
    let cases = Cases {
        list: vec![case],
        is_list: false,
    };
    Ok(layouts(&cases, format))
}

/// The layouts as text, with a newline at the end. Prints warnings to standard error.
fn layouts(cases: &Cases, format: Option<Format>) -> String {
    for warning in cases.list.iter().flat_map(Case::warnings) {
        output::print_error(format_args!("warning: {warning}"));
    }
    let results: Vec<_> = cases.list.iter().map(CaseResult::new).collect();
    let outputs = || results.iter().map(CaseResult::output).collect::<Vec<_>>();
    match (format, &results[..]) {
        (None, results) => table::format(results),
        (Some(format), [result]) if !cases.is_list => format.serialize(&result.output()),
        (Some(format), _) => format.serialize(&outputs()),
    }
}
