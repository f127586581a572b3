//! `fedrs explain`: shows how many replicas of a set each cluster has, and why; of a pod or a node, what moves and what does not.

use std::process::ExitCode;

use clap::Args;
use fedrs_api::{ClusterStatus, SetKind};
use jiff::Timestamp;
use membership::explain::{Explanation, explain};

use crate::{
    availability, explain_migration,
    host::HostArgs,
    output::{self, Format},
    set_name::{self, SET_NAME},
};

/// How pods and nodes are named.
const PODS: [&str; 3] = ["po", "pod", "pods"];
const NODES: [&str; 3] = ["no", "node", "nodes"];
/// The columns of the clusters.
const CLUSTER_HEADER: [&str; 6] = [
    "CLUSTER",
    "DESIRED",
    "READY",
    "AVAILABLE",
    "PENDING",
    "CAPACITY",
];
/// Further ones, of a FederatedDeployment.
const REVISION_HEADER: &[&str] = &["UP-TO-DATE", "REVISION"];
/// The last columns.
const STATE_HEADER: [&str; 2] = ["STATE", "MESSAGE"];
/// The columns of the waits.
const WAIT_HEADER: &[&str] = &["CLUSTER", "WAITING FOR", "UNTIL"];
/// The columns of the conditions.
const CONDITION_HEADER: &[&str] = &["CONDITION", "STATUS", "REASON", "MESSAGE"];

/// Show how many replicas of a FederatedReplicaSet or FederatedDeployment each cluster has, and why; or why a pod moves or stays
///
/// Of a FederatedDeployment, the command also shows which revision each cluster has, what the rollout waits for, and how much
/// of its budget is in use. Of an AvailabilitySet, it shows what is lent to each cluster, which failures would break the set, and which layout
/// would bear them.
///
/// For pod/NAME and node/NAME, with the kubeconfig of the cluster that they are in: who asks a pod of a LocalReplicaSet or ReplicaSet to leave its node,
/// how far that is, what holds it up, until when, and by which deadline it moves; of a node, which pods have not left it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Explain the FederatedReplicaSet or FederatedDeployment web in the namespace of the current context
  fedrs explain web

  # Explain the FederatedDeployment web, if there is a FederatedReplicaSet of this name, too
  fedrs explain fdeploy/web

  # Which failures would break the AvailabilitySet web, and which layout would bear them?
  fedrs explain avset/web

  # Explain a set in another namespace, as JSON
  fedrs explain web -n shop -o json

  # Why does this pod not leave its node, and what is left on the node?
  fedrs explain pod/web-0a1b2 -n shop --kubeconfig member.yaml
  fedrs explain node/n1 --kubeconfig member.yaml")]
pub(crate) struct ExplainArgs {
    /// The set, pod or node. The kind is frs, fdeploy, avset, pod or node. It is needed if several have the name; without it, it is frs or fdeploy
    #[arg(value_name = SET_NAME)]
    set: String,
    /// Namespace of the set. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Output format. By default a table
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    host: HostArgs,
}

/// Reads the set and prints the explanation.
pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let option = args.namespace.as_deref();
    let of_pod = set_name::after_kind(&args.set, &PODS);
    if of_pod.is_some() {
        let (namespace, name) = set_name::parse_of_kind(&args.set, option, &PODS)?;
        let cluster = args.host.member_client().await?;
        let namespace = namespace.unwrap_or(cluster.namespace());
        return explain_migration::pod(&cluster, (namespace, name), args.output).await;
    }
    if let Some(name) = set_name::after_kind(&args.set, &NODES) {
        let cluster = args.host.member_client().await?;
        return explain_migration::node(&cluster, name, args.output).await;
    }
    if set_name::after_kind(&args.set, availability::KIND).is_some() {
        let name = set_name::parse_of_kind(&args.set, option, availability::KIND)?;
        let host = args.host.client().await?;
        return availability::explain(&host, name, args.output).await;
    }
    let set = set_name::parse(&args.set, option)?;
    let host = args.host.client().await?;
    let explanation = explain(&host, &set.on(&host)).await?;
    let text = match args.output {
        Some(format) => format.serialize(&explanation),
        None => table(&explanation, Timestamp::now()),
    };
    Ok(output::print(&text))
}

/// The explanation for people at `now`: a summary, and tables of the clusters, of what is waited for, and of the conditions.
fn table(explanation: &Explanation, now: Timestamp) -> String {
    let status = &explanation.status;
    let clusters = status.clusters.iter();
    let clusters = clusters.map(|cluster| cluster_row(explanation.kind, cluster));
    let (of_revision, counts) = match explanation.kind {
        SetKind::FederatedReplicaSet => (&[][..], 1..6),
        SetKind::FederatedDeployment => (REVISION_HEADER, 1..7),
    };
    let cluster_header = [&CLUSTER_HEADER, of_revision, &STATE_HEADER].concat();
    let waits = status.clusters.iter().flat_map(|cluster| {
        let waits = cluster.waits.iter();
        waits.map(|wait| {
            let until = wait.until.as_ref();
            vec![
                cluster.name.clone(),
                wait.message.clone(),
                until.map_or("-".to_owned(), |until| output::shown_time(until.0, now)),
            ]
        })
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
    for (header, numbers, rows) in [
        (&*cluster_header, counts, clusters.collect::<Vec<_>>()),
        (WAIT_HEADER, 0..0, waits.collect()),
        (CONDITION_HEADER, 0..0, conditions.collect()),
    ] {
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&output::table(header, numbers, rows));
        }
    }
    text
}

/// The cells of a cluster.
fn cluster_row(kind: SetKind, cluster: &ClusterStatus) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mut row = vec![
        cluster.name.clone(),
        cluster.desired_replicas.to_string(),
        cluster.ready_replicas.to_string(),
        cluster.available_replicas.to_string(),
        cluster.unscheduled_replicas.to_string(),
        or_none(cluster.capacity.map(|capacity| capacity.to_string())),
    ];
    if kind == SetKind::FederatedDeployment {
        row.push(cluster.updated_replicas.to_string());
        row.push(or_none(cluster.revision.clone()));
    }
    row.push(or_none(cluster.state.map(|state| state.to_string())));
    row.push(cluster.message.clone());
    row
}

#[cfg(test)]
mod tests {
    use federation_controller::printable_lines;
    use membership::FederatedSet;
    use serde_json::{Value, json};

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
                        "waits": [
                            { "reason": "UnscheduledTimeout", "message": "2 pods to be scheduled", "until": "2026-11-01T00:01:40Z" },
                            { "reason": "Backoff", "message": "the next write", "until": "2026-10-31T22:58:00Z" },
                            { "reason": "Surge", "message": "the surge to allow 2 more replicas" },
                            { "reason": "AnotherVersions", "message": "unknown" },
                        ],
                        "internal": "{\"failures\":3}",
                    },
                ],
                "conditions": [
                    { "type": "Ready", "status": "False", "reason": "ReplicasUnavailable", "message": "6 of 8 replicas are available", "lastTransitionTime": "2026-11-01T00:00:00Z" },
                    { "type": "NotBecomingReady", "status": "True", "reason": "NoProgress", "message": "asia: no pod became ready for 10 minutes", "lastTransitionTime": "2026-11-01T00:00:00Z" },
                ],
            },
        });
        let set = FederatedSet::of_frs(serde_json::from_value(set).unwrap());
        Explanation::of(set, &[], None)
    }

    /// A rollout whose first step is complete, and whose second one waits for its approval.
    fn of_deployment() -> Explanation {
        let cluster = |name: &str, revision: &str, updated: u32, waits: Value| {
            json!({
                "name": name, "desiredReplicas": 4, "replicas": 4, "readyReplicas": 4, "availableReplicas": 4,
                "updatedReplicas": updated, "revision": revision, "state": "Eligible", "reason": "ByWeight",
                "message": "4 of 8 by weight (1 of 2)", "waits": waits,
            })
        };
        let approval = json!([{ "reason": "Rollout", "message": "step world to be approved" }]);
        let condition = |type_: &str, reason: &str, message: &str| json!({ "type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-11-01T00:00:00Z" });
        let waiting = "rolling out revision web-2; us: waiting for step world to be approved";
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedDeployment",
            "metadata": { "name": "web", "namespace": "default", "generation": 2 },
            "spec": { "replicas": 8, "selector": {}, "template": { "spec": {} } },
            "status": {
                "observedGeneration": 2, "replicas": 8, "readyReplicas": 8, "availableReplicas": 8, "placedReplicas": 8,
                "updatedReplicas": 4, "currentRevision": "web-1", "updateRevision": "web-2",
                "rollout": { "step": "world", "maxUnavailable": 2, "maxSurge": 2, "record": "{\"revision\":\"web-2\"}" },
                "clusters": [cluster("eu", "web-2", 4, json!([])), cluster("us", "web-1", 0, approval)],
                "conditions": [
                    condition("Available", "MinimumReplicasAvailable", "8 replicas are available, of at least 6"),
                    condition("Progressing", "WaitingForApproval", waiting),
                ],
            },
        });
        let set = FederatedSet::of_deployment(serde_json::from_value(set).unwrap());
        Explanation::of(set, &[], None)
    }

    #[test]
    fn f6_a_table_shows_revisions_waits_and_the_budget_in_use() {
        insta::assert_snapshot!(table(&of_deployment(), now()));
    }

    #[test]
    fn f6_json_has_the_budget_and_not_what_is_lent() {
        let text = Format::Json.serialize(&of_deployment());
        let json: Value = serde_json::from_str(&text).unwrap();
        let rollout = json!({ "step": "world", "maxUnavailable": 2, "unavailable": 0, "maxSurge": 2, "surge": 0 });
        assert_eq!(json["rollout"], rollout);
        assert_eq!(json["clusters"][1]["revision"], "web-1");
    }

    fn now() -> Timestamp {
        "2026-11-01T00:01:00Z".parse().unwrap()
    }

    #[test]
    fn f6_a_table_shows_replicas_and_reasons() {
        let text = table(&explanation(), now());
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn s6_escape_sequences_of_a_status_reach_no_terminal() {
        let mut explanation = explanation();
        let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\neu-west 8 8\u{9b}31m\u{202e}".to_owned();
        let status = &mut explanation.status;
        status.clusters[0].message.clone_from(&hostile);
        status.clusters[0].name.clone_from(&hostile);
        status.conditions[0].message.clone_from(&hostile);
        status.conditions[0].reason = hostile;
        let rows = table(&explanation, now()).lines().count();
        assert_eq!(rows, table(&self::explanation(), now()).lines().count());
        for text in [
            table(&explanation, now()),
            Format::Json.serialize(&explanation),
            Format::Yaml.serialize(&explanation),
        ] {
            let shown = printable_lines(&text);
            assert!(
                !shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
                "{shown:?}"
            );
        }
    }

    #[test]
    fn f6_yaml_has_the_status_without_internal_state() {
        insta::assert_snapshot!(Format::Yaml.serialize(&explanation()));
    }
}
