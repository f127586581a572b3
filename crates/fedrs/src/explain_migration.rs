//! `fedrs explain pod/NAME` and `node/NAME`: why pods of LocalReplicaSets and ReplicaSets move or stay (M1).

use std::{fmt::Write, process::ExitCode};

use fedrs_api::pluralize;
use jiff::Timestamp;
use membership::{
    cluster_client::ClusterClient,
    explain_migration::{self, NodeExplanation, PodExplanation, PodOnNode, RequestState},
};

use crate::output::{self, Format, in_one_line, shown_time};

/// Explains a pod.
pub(crate) async fn pod(
    cluster: &ClusterClient,
    of: (&str, &str),
    format: Option<Format>,
) -> anyhow::Result<ExitCode> {
    let explanation = explain_migration::pod(cluster, of).await?;
    let text = match format {
        Some(format) => format.serialize(&explanation),
        None => of_pod(&explanation, Timestamp::now()),
    };
    Ok(output::print(&text))
}

/// Explains a node.
pub(crate) async fn node(
    cluster: &ClusterClient,
    name: &str,
    format: Option<Format>,
) -> anyhow::Result<ExitCode> {
    let explanation = explain_migration::node(cluster, name).await?;
    let text = match format {
        Some(format) => format.serialize(&explanation),
        None => of_node(&explanation, Timestamp::now()),
    };
    Ok(output::print(&text))
}

fn of_pod(explanation: &PodExplanation, now: Timestamp) -> String {
    let PodExplanation { namespace, pod, .. } = explanation;
    let summary = in_one_line(explanation.summary());
    let mut text = format!(
        "Pod {} {summary}\n\n",
        in_one_line(format_args!("{namespace}/{pod}"))
    );
    let node = explanation.node.as_ref();
    let policy = explanation
        .policy
        .as_deref()
        .unwrap_or("none in the cluster");
    let facts = [
        (explanation.kind.as_str(), explanation.replica_set.clone()),
        ("MigrationPolicy", policy.to_owned()),
        (
            "Node",
            node.map_or_else(|| "none".to_owned(), |node| node.name.clone()),
        ),
        (
            "Node state",
            node.map_or_else(String::new, |node| node.marks.join("; ")),
        ),
        ("Asked by", explanation.marks.join("; ")),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{:17}{}", format!("{name}:"), in_one_line(value));
    }
    let header = [
        "REQUEST", "CAUSE", "REASON", "PHASE", "UNTIL", "DEADLINE", "MESSAGE",
    ];
    let requests = explanation.requests.iter().map(|request| {
        let [phase, until, deadline, message] = progress(request, now);
        let (name, cause) = (request.name.clone(), request.cause.clone());
        vec![
            name,
            cause,
            request.reason.clone(),
            phase,
            until,
            deadline,
            message,
        ]
    });
    add_table(&mut text, &header, requests.collect());
    let conditions = explanation.conditions.iter();
    let conditions = conditions.map(|condition| {
        vec![
            condition.r#type.clone(),
            condition.reason.clone(),
            condition.message.clone(),
        ]
    });
    add_table(
        &mut text,
        &["CONDITION", "REASON", "MESSAGE"],
        conditions.collect(),
    );
    text
}

fn of_node(explanation: &NodeExplanation, now: Timestamp) -> String {
    let node = &explanation.node;
    let pods = pluralize(explanation.pods.len() as u64, "pod");
    let verb = if explanation.pods.len() == 1 {
        "is"
    } else {
        "are"
    };
    let mut text = format!(
        "{pods} of LocalReplicaSets and ReplicaSets {verb} on node {}\n",
        in_one_line(&node.name)
    );
    let marks = match &*node.marks {
        [] => "nothing asks pods to leave it".to_owned(),
        marks => marks.join("; "),
    };
    let _ = writeln!(text, "\nNode state: {}", in_one_line(marks));
    let header = [
        "NAMESPACE",
        "POD",
        "SET",
        "REQUEST",
        "PHASE",
        "UNTIL",
        "DEADLINE",
        "MESSAGE",
    ];
    let rows = explanation.pods.iter().map(|pod| {
        let request = pod.request.clone().unwrap_or_default();
        let [phase, until, deadline, message] = progress(&request, now);
        let (namespace, set) = (pod.namespace.clone(), set_of(pod));
        vec![
            namespace,
            pod.pod.clone(),
            set,
            request.name,
            phase,
            until,
            deadline,
            message,
        ]
    });
    add_table(&mut text, &header, rows.collect());
    text
}

/// The set of a pod, as `kubectl get` takes it.
fn set_of(pod: &PodOnNode) -> String {
    format!("{}/{}", pod.kind.as_str().to_lowercase(), pod.replica_set)
}

/// Its phase, until when it waits, its deadline, and what it waits for.
fn progress(request: &RequestState, now: Timestamp) -> [String; 4] {
    let time =
        |time: Option<&Timestamp>| time.map_or_else(String::new, |time| shown_time(*time, now));
    let deadline = request.deadline.as_ref().filter(|_| !request.has_ended);
    [
        request.phase.clone(),
        time(request.until.as_ref().map(|until| &until.0)),
        time(deadline.map(|deadline| &deadline.0)),
        request.message.clone(),
    ]
}

fn add_table(text: &mut String, header: &[&str], rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&output::wide_table(header, 0..0, rows));
    }
}

#[cfg(test)]
mod tests {
    use fedrs_api::LocalKind;
    use membership::explain_migration::{NodeState, SetCondition};

    use super::*;

    fn now() -> Timestamp {
        "2027-01-15T08:00:00Z".parse().unwrap()
    }

    fn request(phase: &str, message: &str) -> RequestState {
        let time = |time: &str| {
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                time.parse().unwrap(),
            ))
        };
        RequestState {
            name: "web-0a1b2-x7k2p".to_owned(),
            cause: "Maintenance".to_owned(),
            reason: "node n1 has the label fedrs.dev/evict".to_owned(),
            phase: phase.to_owned(),
            message: message.to_owned(),
            until: time("2027-01-15T09:00:00Z"),
            deadline: time("2027-01-22T08:00:00Z"),
            ..RequestState::default()
        }
    }

    fn node_state() -> NodeState {
        let marks = [
            "label fedrs.dev/evict=Maintenance",
            "Maintenance rack-7",
            "cordoned",
        ];
        NodeState {
            name: "n1".to_owned(),
            marks: marks.map(str::to_owned).to_vec(),
        }
    }

    fn pod() -> PodExplanation {
        let waits = "minSecondsBetween of the policy: the last migration is too recent";
        PodExplanation {
            namespace: "shop".to_owned(),
            pod: "web-0a1b2".to_owned(),
            exists: true,
            kind: LocalKind::LocalReplicaSet,
            replica_set: "web".to_owned(),
            policy: Some("stateful".to_owned()),
            node: Some(node_state()),
            marks: Vec::new(),
            requests: vec![request("WaitingForBudget", waits)],
            conditions: vec![SetCondition {
                r#type: "Paused".to_owned(),
                reason: "Paused".to_owned(),
                message: "spec.paused stops updates".to_owned(),
            }],
        }
    }

    #[test]
    fn m1_a_pod_shows_who_asks_and_what_holds_it_up() {
        insta::assert_snapshot!(of_pod(&pod(), now()));
    }

    #[test]
    fn m1_a_node_shows_which_pods_have_not_left_it() {
        let explanation = NodeExplanation {
            node: node_state(),
            pods: [Some(request("HandsUp", "see after the machine")), None]
                .into_iter()
                .enumerate()
                .map(|(number, request)| PodOnNode {
                    namespace: "shop".to_owned(),
                    pod: format!("web-{number}"),
                    kind: [LocalKind::LocalReplicaSet, LocalKind::ReplicaSet][number],
                    replica_set: "web".to_owned(),
                    request,
                })
                .collect(),
        };
        insta::assert_snapshot!(of_node(&explanation, now()));
    }

    #[test]
    fn m1_one_sentence_says_whether_a_pod_moves() {
        let mut explanation = pod();
        let mut summaries = Vec::new();
        for phase in ["HandsUp", "", "WaitingForBudget"] {
            explanation.requests = vec![request(phase, "the message")];
            summaries.push(explanation.summary());
        }
        explanation.requests = vec![request("Evicting", "")];
        summaries.push(explanation.summary());
        explanation.requests.clear();
        summaries.push(explanation.summary());
        explanation.policy = None;
        summaries.push(explanation.summary());
        for mark in ["not ready since 2027-01-15T07:58:00Z", "cordoned"] {
            let state = explanation.node.as_mut().unwrap();
            state.marks = vec![mark.to_owned()];
            summaries.push(explanation.summary());
        }
        explanation.kind = LocalKind::ReplicaSet;
        for mark in [
            "cordoned",
            "not ready since 2027-01-15T07:58:00Z",
            "taint node.kubernetes.io/out-of-service",
            "label fedrs.dev/evict=Maintenance",
        ] {
            let state = explanation.node.as_mut().unwrap();
            state.marks = vec![mark.to_owned()];
            summaries.push(explanation.summary());
        }
        explanation.exists = false;
        summaries.push(explanation.summary());
        insta::assert_snapshot!(summaries.join("\n"));
    }

    #[test]
    fn s6_escape_sequences_of_a_cluster_stay_in_their_lines() {
        let mut explanation = pod();
        let lines = of_pod(&explanation, now()).lines().count();
        explanation.requests[0].message = "\u{1b}[2J\nPod shop/web moves".to_owned();
        explanation.replica_set = "web\nx".to_owned();
        assert_eq!(of_pod(&explanation, now()).lines().count(), lines);
    }
}
