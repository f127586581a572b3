//! `fedrs migrations`: shows how far migrations of pods of LocalReplicaSets are, and what they wait for (M1).

use std::{collections::HashSet, process::ExitCode};

use clap::Args;
use fedrs_api::MigrationRequest;
use kube::ResourceExt;
use membership::{
    migration,
    migration_watch::{self, Change},
};

use crate::{
    host::ClusterArgs,
    output::{self, print_error, print_line},
};

/// Show which pods of LocalReplicaSets leave their nodes, how far that is, and what it waits for
///
/// The MigrationRequests of the namespace in the cluster of the kubeconfig, the oldest first.
#[derive(Args)]
#[command(after_help = "Examples:
  # What is under way in the cluster?
  fedrs migrations -A --open

  # Follow it
  fedrs migrations -A --open --watch")]
pub(crate) struct MigrationsArgs {
    /// Show those of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Show only those that have not ended
    #[arg(long)]
    open: bool,
    /// After that, show each change, until you interrupt the command
    #[arg(long, short)]
    watch: bool,
    /// Namespace. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs `fedrs migrations`.
pub(crate) async fn run(args: MigrationsArgs) -> anyhow::Result<ExitCode> {
    let cluster = args.cluster.client().await?;
    let namespace = args.namespace.as_deref().unwrap_or(cluster.namespace());
    let namespace = (!args.all_namespaces).then_some(namespace);
    let requests = migration::list(&cluster, namespace).await?;
    let is_shown = |request: &&MigrationRequest| !args.open || is_open(request);
    let rows = requests.iter().filter(is_shown);
    let rows: Vec<_> = rows
        .map(|request| row(request, args.all_namespaces))
        .collect();
    let columns = columns(args.all_namespaces);
    if rows.is_empty() {
        let of = namespace.map_or_else(String::new, |namespace| format!(" in {namespace}"));
        print_error(format_args!("no MigrationRequests{of}"));
    }
    if !args.watch {
        if rows.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        return Ok(output::print(&output::wide_table(columns, 0..0, rows)));
    }
    let header = columns.iter().map(|column| (*column).to_owned()).collect();
    let table = FixedTable::new(std::iter::once(header).chain(rows).collect());
    table
        .rows
        .iter()
        .for_each(|row| print_line(table.line(row)));
    // With --open, the end of one that was shown is shown, too.
    let mut open: HashSet<_> = requests.iter().filter(|of| is_open(of)).map(key).collect();
    let changed = |change| match change {
        Change::Request(request) => {
            let is_open = is_open(&request);
            let was_open = if is_open {
                !open.insert(key(&request))
            } else {
                open.remove(&key(&request))
            };
            if is_open || was_open || !args.open {
                print_line(table.line(&row(&request, args.all_namespaces)));
            }
        }
        Change::Failure(failure) => print_error(format_args!("warning: {failure}; trying again")),
    };
    migration_watch::watch(&cluster, namespace, &requests, changed).await;
    Ok(ExitCode::SUCCESS)
}

fn key(request: &MigrationRequest) -> (Option<String>, String) {
    (request.namespace(), request.name_any())
}

fn is_open(request: &MigrationRequest) -> bool {
    let status = request.status.as_ref();
    status.is_none_or(|status| status.ended().is_none())
}

const COLUMNS: [&str; 10] = [
    "NAMESPACE",
    "NAME",
    "POD",
    "NODE",
    "TO",
    "CAUSE",
    "PHASE",
    "UNTIL",
    "DEADLINE",
    "MESSAGE",
];

fn columns(has_namespaces: bool) -> &'static [&'static str] {
    &COLUMNS[usize::from(!has_namespaces)..]
}

fn row(request: &MigrationRequest, has_namespaces: bool) -> Vec<String> {
    let status = request.status.clone().unwrap_or_default();
    let phase = status.phase;
    let row = [
        request.namespace().unwrap_or_default(),
        request.name_any(),
        request.spec.pod_name.clone(),
        status.node,
        status.new_node,
        request.spec.cause.to_string(),
        phase.map_or_else(String::new, |phase| phase.to_string()),
        output::time(status.until.map(|until| until.0)),
        output::time(status.deadline.map(|deadline| deadline.0)),
        status.message,
    ];
    let skipped = usize::from(!has_namespaces);
    row.into_iter().skip(skipped).collect()
}

/// A table whose later rows have the widths of the first ones, as they are not known before.
struct FixedTable {
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl FixedTable {
    /// The first row is the header.
    fn new(rows: Vec<Vec<String>>) -> Self {
        let columns = rows.first().map_or(0, Vec::len);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths = (0..columns).map(|column| width(column).unwrap_or_default());
        let widths = widths.collect();
        Self { rows, widths }
    }

    fn line(&self, row: &[String]) -> String {
        let cells = row.iter().zip(&self.widths);
        let cells = cells.map(|(cell, width)| format!("{:width$}", output::in_one_line(cell)));
        let line: Vec<_> = cells.collect();
        line.join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m1_rows_that_are_followed_have_the_columns_of_the_first_ones() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = FixedTable::new(vec![
            row(["NAME", "NODE", "PHASE"]),
            row(["web-0a1b2", "n1", ""]),
        ]);
        for (cells, expected) in [
            (["NAME", "NODE", "PHASE"], "NAME       NODE  PHASE"),
            (["web-0a1b2", "n1", ""], "web-0a1b2  n1"),
            (["a", "node-17", "Done"], "a          node-17  Done"),
        ] {
            assert_eq!(table.line(&row(cells)), expected);
        }
    }
}
