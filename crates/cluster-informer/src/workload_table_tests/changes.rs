//! Which change each write, event and deletion reports.

use super::*;
use crate::deployment_state::{DeploymentState, Progressing};

#[test]
fn f22_each_change_is_reported_as_what_it_is() {
    let cases: [(&str, WorkloadState, Option<WorkloadChange>); 10] = [
        ("only the version", state("a", 11), None),
        ("the same again", state("a", 10), None),
        (
            "ready",
            with(11, |state| state.ready_replicas = 6),
            Some(WorkloadChange::Status),
        ),
        (
            "available",
            with(11, |state| state.available_replicas = 6),
            Some(WorkloadChange::MoreAvailable),
        ),
        (
            "fewer available",
            with(11, |state| state.available_replicas = 4),
            Some(WorkloadChange::Status),
        ),
        (
            "replicas",
            with(11, |state| state.replicas = 9),
            Some(WorkloadChange::Drift),
        ),
        (
            "template",
            with(11, |state| state.spec_hash = 2),
            Some(WorkloadChange::Drift),
        ),
        (
            "being deleted",
            with(11, |state| state.deletion = Some(Box::new(deletion()))),
            Some(WorkloadChange::Status),
        ),
        (
            "adopted by a controller",
            with(11, |state| state.has_controller = true),
            Some(WorkloadChange::Drift),
        ),
        (
            "deleted and created again",
            state("b", 11),
            Some(WorkloadChange::Drift),
        ),
    ];
    for (name, event, expected) in cases {
        assert_eq!(table([state("a", 10)]).apply(event), expected, "{name}");
    }
}

#[test]
fn f22_changes_of_a_rollout_are_reported_as_what_they_are() {
    type Change = fn(&mut DeploymentState);
    let with = |version, change: fn(&mut DeploymentState)| {
        with(version, |state| {
            let mut deployment = DeploymentState::default();
            change(&mut deployment);
            state.deployment = Some(Box::new(deployment));
        })
    };
    let cases: [(&str, Change, Option<WorkloadChange>); 5] = [
        ("only the version", |_| {}, None),
        (
            "strategy",
            |state| state.strategy.max_unavailable = 2,
            Some(WorkloadChange::Drift),
        ),
        (
            "paused",
            |state| state.paused = true,
            Some(WorkloadChange::Drift),
        ),
        (
            "updated",
            |state| state.updated_replicas = 1,
            Some(WorkloadChange::Status),
        ),
        (
            "progressing",
            |state| {
                state.progressing = Some(Progressing {
                    reason: "ProgressDeadlineExceeded".into(),
                    message: "timed out".into(),
                });
            },
            Some(WorkloadChange::Status),
        ),
    ];
    for (name, change, expected) in cases {
        let mut table = table([with(10, |_| {})]);
        assert_eq!(table.apply(with(11, change)), expected, "{name}");
    }
}

#[test]
fn our_own_writes_are_not_drift() {
    let mut table = table([state("a", 10)]);
    let written = with(12, |state| {
        (state.replicas, state.spec_hash, state.lowest_replicas) = (20, 7, 20);
    });
    table.observe_write(written.clone());
    assert_eq!(table.get(&key()), Some(&written));
    assert_eq!(
        table.apply(with(11, |state| state.available_replicas = 6)),
        None,
        "older than our write"
    );
    assert_eq!(table.get(&key()), Some(&written));
    assert_eq!(table.apply(written.clone()), None);
    assert_eq!(
        table.apply(with(13, |state| state.replicas = 19)),
        Some(WorkloadChange::Drift)
    );
}

#[test]
fn f20_available_replicas_in_a_response_are_reported_by_its_event() {
    let mut table = table([state("a", 10)]);
    let response = with(12, |state| {
        (state.replicas, state.available_replicas) = (20, 6);
    });
    table.observe_write(response.clone());
    assert_eq!(
        table.apply(with(11, |state| state.available_replicas = 6)),
        None
    );
    assert_eq!(table.apply(response), Some(WorkloadChange::MoreAvailable));
}

#[test]
fn f31_a_deleted_workload_is_drift_and_does_not_come_back() {
    let mut table = table([state("a", 10)]);
    assert_eq!(
        table.delete(&key(), Uid::of("a"), ResourceVersion::parse("12")),
        Some(WorkloadChange::Drift)
    );
    table.observe_write(with(11, |state| state.replicas = 3));
    assert_eq!(table.apply(state("a", 11)), None);
    assert_eq!(table.get(&key()), None);
    assert_eq!(
        table.apply(state("a", 13)),
        Some(WorkloadChange::Status),
        "our labels were added again"
    );
    assert_eq!(
        table.delete(&key(), Uid::of("a"), ResourceVersion::parse("12")),
        None,
        "an old event"
    );
}
