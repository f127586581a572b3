//! Plans without a host: layouts of cases, or of a manifest with options that describe the clusters.

use std::{collections::BTreeMap, path::Path};

use anyhow::Error;
use clap::Args;
use fedrs_api::{FieldErrors, ObjectKey, ValidFrs};

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
pub(crate) struct ClusterArgs {
    /// With --filename: names of the clusters. The command prints the layout without connecting to a host
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "filename"
    )]
    clusters: Vec<String>,
    /// With --clusters: existing replicas in a cluster
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "clusters", value_parser = parse_count)]
    current: Vec<(String, u64)>,
    /// With --clusters: the most replicas that a cluster can run
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "clusters", value_parser = parse_count)]
    capacity: Vec<(String, u64)>,
}

impl ClusterArgs {
    /// Whether clusters are described, in place of a host.
    pub(crate) fn is_used(&self) -> bool {
        !self.clusters.is_empty()
    }
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
    let cases = Cases {
        list: vec![case(&frs, args)?],
        is_list: false,
    };
    Ok(layouts(&cases, format))
}

/// The replicas that each cluster of `args` gets, by its name.
pub(crate) fn replicas_of_clusters(
    frs: &ValidFrs,
    args: &ClusterArgs,
) -> Result<BTreeMap<String, u32>, Vec<Error>> {
    let case = case(frs, args)?;
    let shares = case.plan().shares.into_iter();
    let shares = shares.map(|share| u32::try_from(share.replicas).unwrap_or(u32::MAX));
    Ok(case.clusters.into_iter().zip(shares).collect())
}

/// The case of a set over the clusters of `args`.
fn case(frs: &ValidFrs, args: &ClusterArgs) -> Result<Case, Vec<Error>> {
    let mut errors = FieldErrors::default();
    fields::check_names(&args.clusters, "--clusters", &mut errors);
    errors.or(()).map_err(invalid)?;
    let namespace = if frs.key.namespace.is_empty() {
        "default"
    } else {
        &frs.key.namespace
    };
    Ok(Case {
        name: Some(frs.key.name.to_string()),
        key: ObjectKey::of_kind(frs.key.kind, namespace, frs.key.name.clone()).to_string(),
        replicas: u64::from(frs.replicas),
        placement: frs.placement.clone(),
        clusters: args.clusters.clone(),
        current: args.current.iter().cloned().collect(),
        capacity: args.capacity.iter().cloned().collect(),
    })
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
