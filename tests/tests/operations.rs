//! docs/operations.md explains every condition, reason, event and metric.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use fedrs_api::{
    ClusterReason, ClusterState, ConditionReason, ConditionType, EventReason,
    MaintenanceConditionType, MaintenanceEventReason, MaintenanceReason, MemberConditionType,
    MemberEventReason, MemberReason, WaitReason,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Sources that name conditions, their reasons, and the reasons of events.
const REASON_SOURCES: [&str; 4] = [
    "crates/federation-controller/src/reconcile.rs",
    "crates/federation-controller/src/reconcile",
    "crates/federation-controller/src/members",
    "crates/controller-base/src/election/lease.rs",
];
/// Sources that name metrics.
const METRIC_SOURCES: [&str; 7] = [
    "crates/federation-controller/src/metrics.rs",
    "crates/check-queue/src/metrics.rs",
    "crates/cluster-informer/src/metrics.rs",
    "crates/local-controller/src/metrics.rs",
    "crates/local-controller/src/notify/metrics.rs",
    "crates/maintenance/src/metrics.rs",
    "crates/mcs-controller/src/metrics.rs",
];
/// CamelCase words that are kinds, values of fields, or parts of sentences.
const OTHER_WORDS: [&str; 4] = ["Lease", "MemberCluster", "MemberClusters", "TokenRequest"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The source files at `path`, without their tests.
fn sources(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap().to_string_lossy();
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        return entries
            .flat_map(|entry| sources(&entry.unwrap().path()))
            .collect();
    }
    if name.ends_with("_tests.rs") {
        return Vec::new();
    }
    let text = fs::read_to_string(path).unwrap();
    vec![text.split("#[cfg(test)]").next().unwrap().to_owned()]
}

/// The string literals of `text` that are one word.
fn words(text: &str) -> BTreeSet<&str> {
    let literals = text.split('"').skip(1).step_by(2);
    let is_word = |literal: &&str| literal.chars().all(|letter| letter.is_ascii_alphanumeric());
    literals.filter(is_word).collect()
}

/// The words that the API declares as closed sets.
fn closed_sets() -> impl Iterator<Item = String> {
    let types = ConditionType::ALL.iter().map(|word| word.as_str());
    let reasons = ConditionReason::ALL.iter().map(|word| word.as_str());
    let events = EventReason::ALL.iter().map(|word| word.as_str());
    let clusters = ClusterReason::ALL.iter().map(|word| word.as_str());
    let states = ClusterState::ALL.iter().map(|word| word.as_str());
    let waits = WaitReason::ALL.iter().map(|word| word.as_str());
    let all = types.chain(reasons).chain(events).chain(waits);
    all.chain(clusters).chain(states).map(str::to_owned)
}

#[test]
fn every_condition_reason_and_event_is_explained() {
    let documented = fs::read_to_string(repository().join("docs/operations.md")).unwrap();
    let mut found = BTreeSet::new();
    for source in REASON_SOURCES
        .iter()
        .flat_map(|path| sources(&repository().join(path)))
    {
        // Escaped quotes would break the split into literals.
        let source = source.replace("\\\"", "'").replace("'\"'", "' '");
        let names = words(&source)
            .into_iter()
            .filter(|word| word.starts_with(|letter: char| letter.is_ascii_uppercase()));
        found.extend(names.map(str::to_owned));
    }
    found.extend(closed_sets());
    let types = MemberConditionType::ALL.iter().map(|word| word.as_str());
    let reasons = MemberReason::ALL.iter().map(|word| word.as_str());
    let events = MemberEventReason::ALL.iter().map(|word| word.as_str());
    found.extend(types.chain(reasons).chain(events).map(str::to_owned));
    let types = MaintenanceConditionType::ALL.iter();
    let reasons = MaintenanceReason::ALL.iter().map(|word| word.as_str());
    let events = MaintenanceEventReason::ALL.iter().map(|word| word.as_str());
    let words = types.map(|word| word.as_str()).chain(reasons).chain(events);
    found.extend(words.map(str::to_owned));
    for known in [
        "ClusterLost",
        "TokenRenewed",
        "Unauthorized",
        "Placed",
        "LeaderElection",
    ] {
        assert!(
            found.contains(known),
            "{known} is not found in the sources: {found:?}"
        );
    }
    let gone: Vec<_> = OTHER_WORDS
        .iter()
        .filter(|word| !found.contains(**word))
        .collect();
    assert!(gone.is_empty(), "no longer in the sources: {gone:?}");
    let missing: Vec<_> = found
        .iter()
        .filter(|word| !OTHER_WORDS.contains(&word.as_str()))
        .filter(|word| !documented.contains(&format!("`{word}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/operations.md does not explain {missing:?}"
    );
}

#[test]
fn every_metric_is_explained() {
    let documented = fs::read_to_string(repository().join("docs/operations.md")).unwrap();
    let mut metrics = BTreeSet::new();
    for source in METRIC_SOURCES
        .iter()
        .flat_map(|path| sources(&repository().join(path)))
    {
        for registration in source.split("register(").skip(1) {
            let name = registration.trim_start().strip_prefix('"');
            metrics.extend(
                name.and_then(|name| name.split('"').next())
                    .map(str::to_owned),
            );
        }
    }
    assert!(metrics.len() > 20, "{metrics:?}");
    let missing: Vec<_> = metrics
        .iter()
        .filter(|metric| !documented.contains(&format!("_{metric}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/operations.md does not explain {missing:?}"
    );
}
