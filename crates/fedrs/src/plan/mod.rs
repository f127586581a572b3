//! `fedrs plan`: computes layouts without any cluster.
//!
//! ```text
//! cases from a file or - (validated strictly) -.
//! FederatedReplicaSet and flags -> one case   -+-> federated-scheduler -> results -> table, JSON or YAML
//! ```
//!
//! The command prints nothing unless all input is valid.

mod case;
mod fields;
mod manifest;
mod result;
mod table;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Error};
pub(crate) use case::Case;
use case::Cases;
use clap::Args;
use manifest::ClusterFlags;
use result::CaseResult;

use crate::output::{self, Format};

/// The exit status for invalid input, the same as for invalid arguments.
const INVALID_INPUT: u8 = 2;

/// Show how replicas would be distributed across clusters, and why, without any cluster
///
/// The input is a file with cases (- for standard input), or the manifest of a FederatedReplicaSet with flags that describe
/// the clusters.
///
/// A file holds one case, a list of cases, or an object with a list under "cases". Without preferences, replicas spread
/// evenly. "key" decides ties between clusters, as the namespace and name of a FederatedReplicaSet do; the default is
/// default/NAME. The command ignores counts for clusters that are not listed, with a warning. It does not read "layout",
/// "unplaced" and "ties", which a file of expected layouts may contain.
///
/// If the input is invalid, the command prints an error for each invalid field, prints nothing to standard output, and
/// exits with status 2.
#[derive(Args)]
#[command(after_help = r#"Examples:
  # Plan a FederatedReplicaSet for three clusters
  fedrs plan -f web.yaml --clusters eu,us,asia --current eu=20 --capacity asia=6

  # Plan a case from standard input
  fedrs plan - <<EOF
  name: web
  replicas: 50
  preferences:
    rebalance: true
    clusters: {"*": {weight: 1}, C: {weight: 1, maxReplicas: 20}}
  clusters: [A, B, C]
  current: {A: 20}     # existing replicas; none by default
  capacity: {B: 6}     # the most replicas that the cluster can run; unlimited by default
  EOF"#)]
pub(crate) struct PlanArgs {
    /// File with cases in JSON or YAML; - for standard input
    #[arg(
        value_name = "CASES",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    cases: Option<PathBuf>,
    /// File with a FederatedReplicaSet in JSON or YAML; - for standard input
    #[arg(short, long, value_name = "FRS", requires = "clusters")]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: ClusterFlags,
    /// Output format. By default a table for each case
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

/// Reads the input, computes the layouts and prints them.
pub(crate) fn run(args: &PlanArgs) -> ExitCode {
    let cases = match read(args) {
        Ok(cases) => cases,
        Err(errors) => {
            for error in errors {
                output::print_error(format_args!("error: {error:#}"));
            }
            return ExitCode::from(INVALID_INPUT);
        }
    };
    for warning in cases.list.iter().flat_map(Case::warnings) {
        output::print_error(format_args!("warning: {warning}"));
    }
    let results: Vec<CaseResult<'_>> = cases.list.iter().map(CaseResult::new).collect();
    output::print(&format(&results, cases.is_list, args.output))
}

/// Reads the cases, or finds all errors of the input.
fn read(args: &PlanArgs) -> Result<Cases, Vec<Error>> {
    let Some(path) = &args.file else {
        let path = args.cases.as_deref().unwrap_or(Path::new("-"));
        return Cases::parse(&read_text(path)?);
    };
    let case = manifest::case(&read_text(path)?, &args.flags).map_err(|errors| {
        let errors = errors.into_iter();
        let errors = errors.map(|error| error.context(path.display().to_string()));
        errors.collect::<Vec<_>>()
    })?;
    Ok(Cases {
        list: vec![case],
        is_list: false,
    })
}

/// Reads a file, or standard input.
fn read_text(path: &Path) -> Result<String, Vec<Error>> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    };
    text.with_context(|| format!("failed to read {}", path.display()))
        .map_err(|error| vec![error])
}

/// The results as text, with a newline at the end.
fn format(results: &[CaseResult<'_>], is_list: bool, format: Option<Format>) -> String {
    let outputs = || results.iter().map(CaseResult::output).collect::<Vec<_>>();
    match (format, results) {
        (None, _) => table::format(results),
        (Some(format), [result]) if !is_list => format.serialize(&result.output()),
        (Some(format), _) => format.serialize(&outputs()),
    }
}
