//! `fedrs explain`: shows how many replicas of a FederatedReplicaSet each cluster has, and why.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use membership::explain::{Explanation, explain};

use crate::{
    host::HostArgs,
    output::{self, Format},
};

/// Show how many replicas of a FederatedReplicaSet each cluster has, and why
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Explain the FederatedReplicaSet web in the namespace of the current context
  fedrs explain web

  # Explain a FederatedReplicaSet in another namespace, as JSON
  fedrs explain web -n shop -o json")]
pub(crate) struct ExplainArgs {
    /// The FederatedReplicaSet
    #[arg(value_name = "[NAMESPACE/]NAME")]
    set: String,
    /// Namespace of the FederatedReplicaSet. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Output format. By default a table
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    host: HostArgs,
}

/// Reads the FederatedReplicaSet and prints the explanation.
pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let (prefix, name) = match args.set.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, &*args.set),
    };
    if name.is_empty() || name.contains('/') || prefix == Some("") {
        bail!("invalid name {:?}: must be [NAMESPACE/]NAME", args.set);
    }
    let namespace = match (prefix, args.namespace.as_deref()) {
        (Some(prefix), Some(option)) if prefix != option => {
            bail!("conflicting namespaces {prefix:?} and {option:?}")
        }
        (prefix, option) => prefix.or(option),
    };
    let host = args.host.client().await?;
    let namespace = namespace.unwrap_or(host.namespace());
    let explanation = explain(&host, namespace, name).await?;
    let text = match args.output {
        Some(format) => format.serialize(&explanation),
        None => table(&explanation),
    };
    Ok(output::print(&text))
}

/// The explanation for people: a summary, a table of the clusters, and a table of the conditions.
fn table(explanation: &Explanation) -> String {
    let status = &explanation.status;
    let clusters = status.clusters.iter().map(|cluster| {
        let capacity = cluster.capacity;
        vec![
            cluster.name.clone(),
            cluster.desired_replicas.to_string(),
            cluster.ready_replicas.to_string(),
            cluster.available_replicas.to_string(),
            cluster.unscheduled_replicas.to_string(),
            capacity.map_or("-".to_owned(), |capacity| capacity.to_string()),
            cluster
                .state
                .map_or("-".to_owned(), |state| state.to_string()),
            cluster.message.clone(),
        ]
    });
    let conditions = status.conditions.iter().map(|condition| {
        vec![
            condition.type_.clone(),
            condition.status.clone(),
            condition.reason.clone(),
            condition.message.clone(),
        ]
    });
    let mut text = format!("{explanation}\n");
    for table in [
        rows(
            &[
                "CLUSTER",
                "DESIRED",
                "READY",
                "AVAILABLE",
                "PENDING",
                "CAPACITY",
                "STATE",
                "MESSAGE",
            ],
            &[1, 2, 3, 4, 5],
            clusters.collect(),
        ),
        rows(
            &["CONDITION", "STATUS", "REASON", "MESSAGE"],
            &[],
            conditions.collect(),
        ),
    ] {
        text.push_str(&table);
    }
    text
}

/// A table with an empty line above; nothing without rows. `numbers` are the columns to align to the right.
fn rows(header: &[&str], numbers: &[usize], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header)
        .add_rows(rows);
    for &column in numbers {
        let column = table
            .column_mut(column)
            .expect("the header has this column");
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("\n{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use fedrs_api::FederatedReplicaSet;
    use serde_json::json;

    use super::*;

    fn explanation() -> Explanation {
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "default", "generation": 1 },
            "spec": { "replicas": 8, "selector": {}, "template": { "spec": {} } },
            "status": {
                "observedGeneration": 1, "observedPreferencesHash": "1a2b",
                "replicas": 8, "readyReplicas": 6, "availableReplicas": 6, "placedReplicas": 8,
                "clusters": [
                    {
                        "name": "eu-west", "desiredReplicas": 6, "replicas": 6, "readyReplicas": 6, "availableReplicas": 6,
                        "state": "Eligible", "reason": "ByWeight", "message": "6 of 8 by weight (1 of 1)",
                    },
                    {
                        "name": "asia", "desiredReplicas": 2, "replicas": 2, "unscheduledReplicas": 2, "capacity": 2,
                        "state": "Eligible", "reason": "AtCapacity", "message": "cluster full: capacity 2",
                        "internal": { "failures": 3 },
                    },
                ],
                "conditions": [
                    { "type": "Ready", "status": "False", "reason": "ReplicasUnavailable", "message": "6 of 8 replicas are available", "lastTransitionTime": "2026-11-01T00:00:00Z" },
                    { "type": "NotBecomingReady", "status": "True", "reason": "NoProgress", "message": "asia: no pod became ready for 10 minutes", "lastTransitionTime": "2026-11-01T00:00:00Z" },
                ],
            },
        });
        let set: FederatedReplicaSet = serde_json::from_value(set).unwrap();
        set.into()
    }

    #[test]
    fn f6_a_table_shows_replicas_and_reasons() {
        let text = table(&explanation());
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn f6_yaml_has_the_status_without_internal_state() {
        insta::assert_snapshot!(Format::Yaml.serialize(&explanation()));
    }
}
