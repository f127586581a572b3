//! Plans with the state of the host as text: one set in detail, several in a line each.

use std::fmt::Write;

use fedrs_api::pluralize;
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
        (None, Sets::One { .. } | Sets::Manifest(_), [set]) => one(set, request),
        (None, _, sets) => several(sets, plan),
    };
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

/// The warnings about members, sets, and sets that are not planned.
fn warnings(plan: &Plan) -> Vec<String> {
    let of_sets = plan.sets.iter().flat_map(|set| {
        let (namespace, name) = (&set.namespace, &set.name);
        let warnings = set.warnings.iter();
        warnings.map(move |warning| format!("{namespace}/{name}: {warning}"))
    });
    let skipped = plan.skipped.iter().map(|set| {
        let (namespace, name, reason) = (&set.namespace, &set.name, &set.reason);
        format!("{namespace}/{name}: not planned: {reason}")
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
    let percent = request.settings.max_move_surge_percent;
    Some(format!(
        "{start}, with at most {surge} above the {} (maxMoveSurgePercent {percent}{}).",
        set.replicas,
        if request.has_default_settings() {
            ", the default: --config FILE reads the controller's configuration"
        } else {
            ""
        },
    ))
}

/// Several sets: those that change, or that have replicas without a place, and the sums.
fn several(sets: &[SetPlan], plan: &Plan) -> String {
    let shown = sets
        .iter()
        .filter(|set| set.changes() || set.unplaced_replicas > 0);
    let rows: Vec<_> = shown
        .map(|set| {
            vec![
                set.namespace.clone(),
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
        output::table(SET_HEADER, 2..6, rows),
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
