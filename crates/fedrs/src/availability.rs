//! `fedrs explain avset/NAME`: whether an AvailabilitySet is available, and which failures it would bear (A1, A2).

use std::process::ExitCode;

use fedrs_api::{
    AvailabilityConditionType, AvailabilitySet, AvailabilitySetStatus,
    conditions::{self, ConditionStatus},
};
use kube::ResourceExt;
use membership::{availability, cluster_client::ClusterClient};

use crate::output::{self, Format};

/// The names of the kind, without the API group, as `kubectl` takes them.
pub(crate) const KIND: &[&str] = &["avset", "availabilityset", "availabilitysets"];

/// Reads the set and prints the explanation.
pub(crate) async fn explain(
    host: &ClusterClient,
    (namespace, name): (Option<&str>, &str),
    format: Option<Format>,
) -> anyhow::Result<ExitCode> {
    let namespace = namespace.unwrap_or(host.namespace());
    let set = availability::get(host, namespace, name).await?;
    let text = match format {
        Some(format) => format.serialize(&set),
        None => table(&set),
    };
    Ok(output::print(&text))
}

/// The explanation for people: a summary, tables of the clusters and the failure domains, what would bear failures, and the conditions.
fn table(set: &AvailabilitySet) -> String {
    let none = AvailabilitySetStatus::default();
    let status = set.status.as_ref().unwrap_or(&none);
    let available = conditions::find(&status.conditions, AvailabilityConditionType::Available);
    let is_available = available.map_or(
        "not observed yet",
        |condition| match ConditionStatus::parse(&condition.status) {
            Some(ConditionStatus::True) => "available",
            Some(ConditionStatus::False) => "not available",
            _ => "not known",
        },
    );
    let mut text = output::in_one_line(format!(
        "AvailabilitySet {}/{}: {is_available}; {} of {} pods unreachable, budget {}, {} left",
        set.namespace().unwrap_or_default(),
        set.name_any(),
        status.unreachable,
        status.pods,
        status.budget,
        status.budget_left,
    )) + "\n";
    for table in [clusters(status), rollouts(status), domains(status)] {
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table);
        }
    }
    let advice = availability::advice(status);
    if !advice.is_empty() {
        text.push('\n');
    }
    for sentence in advice {
        text.push_str(&output::in_one_line(sentence));
        text.push('\n');
    }
    let rows = status.conditions.iter().map(|condition| {
        vec![
            condition.type_.clone(),
            condition.status.clone(),
            condition.reason.clone(),
            condition.message.clone(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        text.push('\n');
        let columns = ["CONDITION", "STATUS", "REASON", "MESSAGE"];
        text.push_str(&output::table(&columns, 0..0, rows));
    }
    text
}

fn clusters(status: &AvailabilitySetStatus) -> String {
    let rows = status.clusters.iter().map(|cluster| {
        let loans = cluster.loans.iter().map(|loan| {
            let name = &loan.name;
            format!("{} of {} {name}", loan.max_unavailable, loan.kind)
        });
        vec![
            cluster.name.clone(),
            cluster.pods.to_string(),
            cluster.unreachable.to_string(),
            loans.collect::<Vec<_>>().join(", "),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    output::table(&["CLUSTER", "PODS", "UNREACHABLE", "LENT"], 1..3, rows)
}

/// What is lent to rollouts, in all clusters together.
fn rollouts(status: &AvailabilitySetStatus) -> String {
    let rows = status.rollouts.iter().map(|loan| {
        vec![
            format!("{} {}", loan.kind, loan.name),
            loan.max_unavailable.to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    output::table(&["ROLLOUTS", "LENT"], 1..2, rows)
}

fn domains(status: &AvailabilitySetStatus) -> String {
    let rows = status.domains.iter().map(|domain| {
        vec![
            domain.type_.to_string(),
            domain.domains.to_string(),
            domain.needed.to_string(),
            domain.breaking_total.to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    output::table(&["DOMAIN", "EXIST", "NEEDED", "BREAKING"], 1..4, rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a1_a2_the_explanation_says_what_is_lent_and_which_failures_break_the_set() {
        let condition = |type_: &str, status: &str, reason: &str, message: &str| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            })
        };
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "AvailabilitySet",
            "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "budget": 1 },
            "status": {
                "pods": 6, "available": 5, "unreachable": 1, "budget": 1, "budgetLeft": 0,
                "clusters": [
                    { "name": "eu", "pods": 3, "unreachable": 1, "loans": [
                        { "kind": "PodDisruptionBudget", "name": "avset-web", "maxUnavailable": 1, "revision": 2 },
                    ] },
                    { "name": "us", "pods": 3, "unreachable": 0, "loans": [
                        { "kind": "LocalReplicaSet", "name": "web", "maxUnavailable": 0, "revision": 1 },
                    ] },
                ],
                "domains": [
                    { "type": "Node", "domains": 6, "breakingTotal": 0, "needed": 6 },
                    { "type": "Zone", "domains": 2, "breakingTotal": 2, "needed": 6, "breaking": [
                        { "name": "eu-a", "pods": 3 }, { "name": "us-a", "pods": 3 },
                    ] },
                ],
                "conditions": [
                    condition("Satisfiable", "True", "CanBeAvailable", "6 pods with a budget of 1"),
                    condition("Available", "True", "WithinBudget", "1 of 6 pods unreachable, with a budget of 1"),
                ],
            },
        });
        let set: AvailabilitySet = serde_json::from_value(set).unwrap();
        insta::assert_snapshot!(table(&set));
    }
}
