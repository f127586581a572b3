//! Plans with the state of the host as text: one set in detail, several in a line each.

use std::{collections::BTreeSet, fmt::Write};

use fedrs_api::{ObjectKey, pluralize};
use membership::plan::{ClusterPlan, Plan, PlanRequest, SetPlan, Sets};

use crate::output::{self, Format};

/// The columns of the moves of a set.
const MOVE_HEADER: &[&str] = &["FROM", "TO", "REPLICAS"];
/// The columns of the clusters of a set.
const CLUSTER_HEADER: &[&str] = &[
    "CLUSTER", "DESIRED", "PLANNED", "CAPACITY", "STATE", "MESSAGE",
];
/// The columns of several sets.
const SET_HEADER: &[&str] = &[
    "NAMESPACE",
    "KIND",
    "NAME",
    "REPLICAS",
    "MOVED",
    "UNPLACED",
    "STEPS",
    "CLUSTERS",
];

/// Warnings that are shown at most.
const MAX_WARNINGS: usize = 10;

/// The plan as text, with a newline at the end.
pub(super) fn format(plan: &Plan, request: &PlanRequest, format: Option<Format>) -> String {
    let mut text = match (format, &request.sets, &plan.sets[..]) {
        (Some(format), _, _) => return format.serialize(plan),
        (None, Sets::One(_) | Sets::Manifest(_), [set]) => one(set, request),
        (None, _, sets) => several(sets, plan),
    };
    if let Some(assumption) = assumption(plan) {
        write!(text, "\n{assumption}\n").expect("writing to a string never fails");
    }
    let warnings = warnings(plan);
    let (shown, more) = warnings.split_at(warnings.len().min(MAX_WARNINGS));
    for (index, warning) in shown.iter().enumerate() {
        let separator = if index == 0 { "\n" } else { "" };
        writeln!(text, "{separator}Warning: {warning}").expect("writing to a string never fails");
    }
    if !more.is_empty() {
        let more = pluralize(more.len() as u64, "more warning");
        writeln!(text, "{more}: use -o yaml").expect("writing to a string never fails");
    }
    text
}

/// What the plan assumes about clusters that get more replicas.
fn assumption(plan: &Plan) -> Option<String> {
    let clusters = plan.sets.iter().flat_map(|set| &set.clusters);
    let growing = clusters.filter(|cluster| cluster.grows_without_limit());
    let names: BTreeSet<_> = growing.map(|cluster| cluster.name.as_str()).collect();
    let names: Vec<_> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("Assumes that these clusters, which have shown no limit, run all replicas that they get: {names}")
    })
}

/// The warnings about members, sets, and sets that are not planned.
fn warnings(plan: &Plan) -> Vec<String> {
    let of_sets = plan.sets.iter().flat_map(|set| {
        let key = set.key();
        let warnings = set.warnings.iter();
        warnings.map(move |warning| format!("{key}: {warning}"))
    });
    let skipped = plan.skipped.iter().map(|set| {
        let key = ObjectKey::of_kind(set.kind, &*set.namespace, &*set.name);
        format!("{key}: not planned: {}", set.reason)
    });
    plan.warnings
        .iter()
        .cloned()
        .chain(skipped)
        .chain(of_sets)
        .collect()
}

/// One set: a summary, its moves, its clusters, and how the moves go on.
fn one(set: &SetPlan, request: &PlanRequest) -> String {
    let end = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
    let moves = set.moves.iter();
    let moves = moves.map(|step| vec![end(&step.from), end(&step.to), step.replicas.to_string()]);
    let clusters = set.clusters.iter().map(|cluster| {
        let capacity = cluster.capacity;
        let state = cluster.state;
        vec![
            cluster.name.clone(),
            cluster.desired_replicas.to_string(),
            cluster.planned_replicas.to_string(),
            capacity.map_or("-".to_owned(), |capacity| capacity.to_string()),
            state.map_or("-".to_owned(), |state| state.to_string()),
            cluster.message.clone(),
        ]
    });
    let mut text = format!("{set}\n");
    for (header, numbers, rows) in [
        (MOVE_HEADER, 2..3, moves.collect::<Vec<_>>()),
        (CLUSTER_HEADER, 1..4, clusters.collect()),
    ] {
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&output::table(header, numbers, rows));
        }
    }
    for line in [set.unplaced_message.clone(), pace(set, request)]
        .into_iter()
        .flatten()
    {
        write!(text, "\n{line}\n").expect("writing to a string never fails");
    }
    text
}

/// In how many steps replicas start, and how many there are meanwhile.
fn pace(set: &SetPlan, request: &PlanRequest) -> Option<String> {
    let start = match set.steps {
        0 => return None,
        1 => "New replicas start in 1 step".to_owned(),
        steps => format!(
            "New replicas start in {steps} steps, each when those of the one before are available"
        ),
    };
    let surge = pluralize(set.max_surge, "replica");
    let of_config = request.settings.max_move_surge;
    let source = if of_config.of(set.replicas.into()) != set.max_surge {
        "spec.rescheduling.maxMoveSurge".to_owned()
    } else if request.has_default_settings() {
        format!(
            "maxMoveSurge {of_config}, the default: --config FILE reads the controller's configuration"
        )
    } else {
        format!("maxMoveSurge {of_config}")
    };
    let replicas = set.replicas;
    Some(format!(
        "{start}, with at most {surge} above the {replicas} ({source})."
    ))
}

/// Several sets: those that change, or that have unplaced replicas, and the sums.
fn several(sets: &[SetPlan], plan: &Plan) -> String {
    let shown = sets
        .iter()
        .filter(|set| set.changes() || set.unplaced_replicas > 0);
    let rows: Vec<_> = shown
        .map(|set| {
            vec![
                set.namespace.clone(),
                set.kind.as_str().to_owned(),
                set.name.clone(),
                set.replicas.to_string(),
                set.moved_replicas.to_string(),
                set.unplaced_replicas.to_string(),
                set.steps.to_string(),
                changes(&set.clusters),
            ]
        })
        .collect();
    if rows.is_empty() {
        return format!("{}\n", plan.summary);
    }
    format!(
        "{}\n{}\n",
        output::table(SET_HEADER, 3..7, rows),
        plan.summary
    )
}

/// The clusters whose replicas change: `eu 10->0, us 10->20`.
fn changes(clusters: &[ClusterPlan]) -> String {
    let changed = |cluster: &&ClusterPlan| cluster.desired_replicas != cluster.planned_replicas;
    let changed = clusters.iter().filter(changed);
    let texts = changed.map(|cluster| {
        let (now, planned) = (cluster.desired_replicas, cluster.planned_replicas);
        format!("{} {now}->{planned}", cluster.name)
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use federation_controller::{config::Config, forecast::WhatIf};
    use fedrs_api::{ClusterState, SetKind};
    use membership::{
        SetRef,
        plan::{Move, SkippedSet, Summary},
    };

    use super::*;

    fn cluster(name: &str, now: i32, planned: i32, capacity: Option<i32>) -> ClusterPlan {
        ClusterPlan {
            name: name.to_owned(),
            desired_replicas: now,
            planned_replicas: planned,
            capacity,
            state: Some(if planned == 0 {
                ClusterState::Lost
            } else {
                ClusterState::Eligible
            }),
            reason: None,
            message: "by weight".to_owned(),
        }
    }

    fn request(sets: Sets) -> PlanRequest {
        PlanRequest {
            sets,
            replicas: None,
            what_if: WhatIf {
                lost: BTreeSet::from(["eu".to_owned()]),
                ..WhatIf::default()
            },
            settings: Config::default(),
        }
    }

    fn plan() -> Plan {
        let step = |from: &str, to: &str, replicas| Move {
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            replicas,
        };
        let web = SetPlan {
            kind: SetKind::FederatedReplicaSet,
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            replicas: 30,
            moved_replicas: 8,
            unplaced_replicas: 2,
            unplaced_message: Some("2 of 30 replicas have no cluster: full".to_owned()),
            steps: 2,
            max_surge: 7,
            moves: vec![
                step("eu", "asia", 3),
                step("eu", "us", 5),
                Move {
                    from: Some("eu".to_owned()),
                    to: None,
                    replicas: 2,
                },
            ],
            clusters: vec![
                cluster("asia", 10, 13, Some(13)),
                cluster("eu", 10, 0, None),
                cluster("us", 10, 15, None),
            ],
            warnings: vec!["3 replicas not available now".to_owned()],
        };
        Plan {
            summary: Summary {
                sets: 200,
                changed_sets: 1,
                moved_replicas: 8,
                unplaced_replicas: 2,
            },
            sets: vec![web],
            skipped: vec![SkippedSet {
                kind: SetKind::FederatedDeployment,
                namespace: "shop".to_owned(),
                name: "old".to_owned(),
                reason: "it is being deleted".to_owned(),
            }],
            warnings: vec!["asia: the state of the member is unknown".to_owned()],
        }
    }

    #[test]
    fn f19_a_plan_of_one_set_shows_moves_and_reasons() {
        let one = Sets::One(SetRef {
            kind: None,
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        });
        insta::assert_snapshot!(format(&plan(), &request(one), None));
    }

    #[test]
    fn f19_a_plan_of_all_sets_has_a_line_for_each_that_changes() {
        insta::assert_snapshot!(format(&plan(), &request(Sets::All), None));
    }

    #[test]
    fn f19_a_plan_is_printed_for_programs() {
        insta::assert_snapshot!(format(&plan(), &request(Sets::All), Some(Format::Yaml)));
    }
}
