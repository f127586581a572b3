//! Explain: how many replicas are where, and why, in sentences.

use std::fmt::Write as _;

use anyhow::Context;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use fedrs_api::{FederatedReplicaSet, FederatedReplicaSetStatus, pluralize};
use kube::Api;

use crate::cluster_client::ClusterClient;

/// Reads the set `namespace`/`name`.
pub async fn read(
    host: &ClusterClient,
    namespace: &str,
    name: &str,
) -> anyhow::Result<FederatedReplicaSet> {
    let sets: Api<FederatedReplicaSet> = Api::namespaced(host.client(), namespace);
    let doing = format!("read federatedreplicaset {namespace}/{name}");
    let set = host.call(doing, sets.get_opt(name)).await?;
    set.with_context(|| format!("there is no FederatedReplicaSet {namespace}/{name}"))
}

/// What is known of `set`, as text.
pub fn explain(set: &FederatedReplicaSet) -> String {
    let metadata = &set.metadata;
    let mut text = format!(
        "{}/{}: {} wanted",
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
        pluralize(set.spec.replicas, "replica")
    );
    let Some(status) = &set.status else {
        text.push_str("; no controller has looked at it yet\n");
        return text;
    };
    let _ = writeln!(
        text,
        ", {} placed, {} available, {} without a place",
        status.placed_replicas, status.available_replicas, status.unplaced_replicas
    );
    if status.observed_generation < metadata.generation {
        text.push_str("The controller has not yet seen the latest change of the spec.\n");
    }
    let _ = write!(text, "\n{}\n\n", clusters(status).trim_fmt());
    let types = status.conditions.iter().map(|it| it.type_.len());
    let width = types.max().unwrap_or(0);
    for condition in &status.conditions {
        let _ = writeln!(
            text,
            "{:<width$}  {:<5}  {} ({})",
            condition.type_, condition.status, condition.message, condition.reason
        );
    }
    text
}

fn clusters(status: &FederatedReplicaSetStatus) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["CLUSTER", "DESIRED", "READY", "WAITING", "CAPACITY", "WHY"]);
    for cluster in &status.clusters {
        let capacity = cluster.capacity.map_or("-".to_owned(), |it| it.to_string());
        table.add_row([
            cluster.name.clone(),
            cluster.desired_replicas.to_string(),
            cluster.available_replicas.to_string(),
            cluster.unscheduled_replicas.to_string(),
            capacity,
            cluster.message.clone(),
        ]);
    }
    for column in 1..=4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn f6_what_is_where_and_why_in_lines_without_trailing_spaces() {
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "default", "generation": 1 },
            "spec": { "replicas": 8, "selector": {}, "template": { "spec": {} } },
            "status": {
                "observedGeneration": 1, "placedReplicas": 8, "availableReplicas": 6,
                "clusters": [
                    { "name": "eu-west", "desiredReplicas": 6, "availableReplicas": 6, "message": "weight" },
                    { "name": "asia", "desiredReplicas": 2, "unscheduledReplicas": 2, "capacity": 2, "message": "it is full" },
                ],
                "conditions": [
                    { "type": "Ready", "status": "False", "reason": "NotAllReady", "message": "6 of 8", "lastTransitionTime": "2026-11-01T00:00:00Z" },
                    { "type": "NotBecomingReady", "status": "True", "reason": "NoProgress", "message": "in asia", "lastTransitionTime": "2026-11-01T00:00:00Z" },
                ],
            },
        });
        let set = serde_json::from_value(set).expect("is a set");
        let expected = "default/web: 8 replicas wanted, 8 placed, 6 available, 0 without a place

 CLUSTER  DESIRED  READY  WAITING  CAPACITY  WHY
 eu-west        6      6        0         -  weight
 asia           2      0        2         2  it is full

Ready             False  6 of 8 (NotAllReady)
NotBecomingReady  True   in asia (NoProgress)
";
        assert_eq!(explain(&set), expected);
    }
}
