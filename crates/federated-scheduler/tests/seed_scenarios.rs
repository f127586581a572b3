//! F15: the seven scenarios of the document, from the case file that `fedrs plan` reads too.

use std::collections::BTreeMap;

use federated_scheduler::{Cluster, Preference, Request, plan};
use serde::Deserialize;

#[derive(Deserialize)]
struct CaseFile {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    replicas: u64,
    preferences: Preferences,
    clusters: Vec<String>,
    current: BTreeMap<String, u64>,
    capacity: BTreeMap<String, u64>,
    layout: BTreeMap<String, u64>,
    #[serde(default)]
    unplaced: u64,
    ties: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Preferences {
    #[serde(default)]
    rebalance: bool,
    clusters: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Entry {
    min_replicas: u64,
    max_replicas: Option<u64>,
    weight: u64,
}

/// The layout of a case, by cluster, with what is unplaced.
fn layout_of(case: &Case, key: &str) -> (BTreeMap<String, u64>, u64) {
    let entries = &case.preferences.clusters;
    let cluster = |name: &'_ str| {
        let entry = entries.get(name).or_else(|| entries.get("*"));
        entry.map(|entry| Preference {
            min: entry.min_replicas,
            max: entry.max_replicas,
            weight: entry.weight,
        })
    };
    let clusters: Vec<_> = case
        .clusters
        .iter()
        .map(|name| Cluster {
            name,
            preference: cluster(name),
            current: case.current.get(name).copied().unwrap_or(0),
            capacity: case.capacity.get(name).copied(),
        })
        .collect();
    let rebalance = case.preferences.rebalance;
    let layout = plan(&Request {
        key,
        replicas: case.replicas,
        rebalance,
        clusters: &clusters,
    });
    let replicas = layout.shares.iter().map(|share| share.replicas);
    (
        case.clusters.iter().cloned().zip(replicas).collect(),
        layout.unplaced,
    )
}

/// Sorts the numbers within each group of tied clusters: which of them a tie favours is left open.
fn without_ties(mut layout: BTreeMap<String, u64>, ties: &[Vec<String>]) -> BTreeMap<String, u64> {
    for group in ties {
        let mut numbers: Vec<u64> = group.iter().map(|name| layout[name]).collect();
        numbers.sort_unstable();
        layout.extend(group.iter().cloned().zip(numbers));
    }
    layout
}

#[test]
fn f15_all_scenarios_hold_for_any_key() {
    let file = include_str!("../../../cases/seed-scenarios.json");
    let file: CaseFile = serde_json::from_str(file).expect("the case file is valid");
    assert_eq!(file.cases.len(), 17);
    for case in &file.cases {
        for key in ["default/web", "default/api", "x"] {
            let (layout, unplaced) = layout_of(case, key);
            let expected = without_ties(case.layout.clone(), &case.ties);
            assert_eq!(
                without_ties(layout, &case.ties),
                expected,
                "{} with key {key}",
                case.name
            );
            assert_eq!(unplaced, case.unplaced, "{} with key {key}", case.name);
        }
    }
}
