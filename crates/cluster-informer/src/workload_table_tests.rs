//! Which of a list, an event and a response wins, and which change it reports.

use proptest::prelude::*;

use super::*;
use crate::deployment_state::{DeploymentState, OwningDeployment, Progressing};
use crate::scale_requests::ScaleRequest;
use crate::workload::Deletion;

fn key() -> ObjectKey {
    ObjectKey::new("default", "web")
}

fn state(uid: &str, version: u64) -> WorkloadState {
    WorkloadState {
        key: key(),
        uid: uid.into(),
        resource_version: version.to_string(),
        generation: 1,
        observed_generation: 1,
        replicas: 10,
        status_replicas: 10,
        ready_replicas: 5,
        available_replicas: 5,
        fully_labeled_replicas: 10,
        replica_failure: None,
        spec_hash: 1,
        lowest_replicas: 10,
        open_scale_up: None,
        federation: "fed".into(),
        member_cluster: "a".into(),
        deletion: None,
        behind_since: None,
        has_owners: false,
        has_controller: false,
        deployment: None,
        owned_by: None,
    }
}

fn deletion() -> Deletion {
    Deletion {
        since: Timestamp::UNIX_EPOCH,
        finalizers: Vec::new(),
    }
}

fn with(version: u64, change: impl FnOnce(&mut WorkloadState)) -> WorkloadState {
    let mut state = state("a", version);
    change(&mut state);
    state
}

fn table(states: impl IntoIterator<Item = WorkloadState>) -> WorkloadTable {
    let mut table = WorkloadTable::default();
    table.begin_list();
    for state in states {
        table.apply(state);
    }
    table.end_list(ResourceVersion::parse("10"));
    table
}

#[test]
fn s5_the_bytes_of_all_texts_are_counted() {
    let long = |version, finalizers: usize| {
        with(version, |state| {
            state.deletion = Some(Box::new(Deletion {
                finalizers: vec!["x".repeat(100); finalizers],
                ..deletion()
            }));
        })
    };
    let other = WorkloadState {
        key: ObjectKey::new("default", "other"),
        ..state("b", 10)
    };
    let owned = |version| {
        with(version, |state| {
            state.owned_by = Some(Box::new(OwningDeployment {
                key: key(),
                uid: Uid::of("d"),
                template_is_labeled: true,
            }));
        })
    };
    let mut table = table([state("a", 10), other.clone()]);
    let steps: [&dyn Fn(&mut WorkloadTable); 9] = [
        &|table| {
            table.apply(owned(10));
        },
        &|table| {
            table.apply(long(11, 2));
        },
        &|table| {
            table.observe_write(long(12, 1));
        },
        &|table| {
            table.apply(long(11, 4));
        },
        &|table| {
            table.delete(&key(), Uid::of("a"), ResourceVersion::parse("13"));
        },
        &|table| {
            table.observe_write(long(14, 3));
        },
        &|table| table.observe_deletion(&other.key, Uid::of("b")),
        &|table| {
            table.apply(state("c", 15));
        },
        &|table| {
            table.begin_list();
            table.end_list(ResourceVersion::parse("20"));
        },
    ];
    for step in steps {
        step(&mut table);
        let texts: usize = table.iter().map(|(_, state)| state.text_bytes()).sum();
        assert_eq!(table.text_bytes, texts);
    }
    assert_eq!(table.text_bytes, 0);
}

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

#[test]
fn our_deletion_is_final_but_finalizers_may_delay_it() {
    let mut table = table([state("a", 10)]);
    table.observe_deletion(&key(), "a".into_uid());
    assert_eq!(table.get(&key()), None);
    assert_eq!(
        table.apply(state("a", 12)),
        None,
        "a status from before the deletion"
    );
    table.observe_write(state("a", 12));
    assert_eq!(table.get(&key()), None);
    assert_eq!(
        table.apply(with(13, |state| state.deletion = Some(Box::new(deletion())))),
        Some(WorkloadChange::Status)
    );
    assert_eq!(
        table.delete(&key(), "a".into_uid(), ResourceVersion::parse("14")),
        Some(WorkloadChange::Drift)
    );
    assert_eq!(
        table.apply(state("b", 15)),
        Some(WorkloadChange::Status),
        "another object with the name"
    );
}

#[test]
fn a_released_workload_may_be_adopted_again() {
    let mut table = table([state("a", 10)]);
    // The response to our write.
    table.delete(&key(), "a".into_uid(), ResourceVersion::parse("12"));
    assert_eq!(table.get(&key()), None);
    assert_eq!(table.apply(state("a", 11)), None, "an event from before");
    assert_eq!(
        table.delete(&key(), "a".into_uid(), ResourceVersion::parse("12")),
        None
    );
    table.observe_write(state("a", 14));
    assert!(table.get(&key()).is_some(), "adopted again");
    table.apply(state("a", 14));
    assert!(table.get(&key()).is_some());
}

#[test]
fn a_workload_that_a_write_did_not_find_is_gone_until_a_list_shows_it() {
    let mut table = table([state("a", 10)]);
    table.observe_absence(&key(), "b".into_uid());
    assert!(table.get(&key()).is_some(), "another object");
    table.observe_absence(&key(), "a".into_uid());
    assert_eq!(table.get(&key()), None);
    assert_eq!(table.apply(state("a", 10)), None, "an event from before");
    table.begin_list();
    table.apply(state("a", 10));
    table.end_list(ResourceVersion::parse("12"));
    assert!(table.get(&key()).is_some(), "the response was wrong");
}

#[test]
fn a_deletion_of_another_uid_changes_nothing() {
    let mut table = table([state("b", 10)]);
    table.observe_deletion(&key(), "a".into_uid());
    assert_eq!(
        table.delete(&key(), "a".into_uid(), ResourceVersion::parse("99")),
        None
    );
    assert_eq!(table.get(&key()).map(|state| &*state.uid), Some("b"));
}

trait IntoUid {
    fn into_uid(self) -> Uid;
}

impl IntoUid for &str {
    fn into_uid(self) -> Uid {
        Uid::of(self)
    }
}

#[test]
fn a_relist_removes_what_is_gone_but_not_what_was_written_since() {
    let mut table = table([state("a", 10)]);
    table.begin_list();
    let written_later = WorkloadState {
        key: ObjectKey::new("default", "new"),
        ..state("n", 25)
    };
    let gone_before = WorkloadState {
        key: ObjectKey::new("default", "old"),
        ..state("o", 19)
    };
    table.observe_write(written_later.clone());
    table.observe_write(gone_before);
    let lost: Vec<_> = table
        .end_list(ResourceVersion::parse("20"))
        .into_iter()
        .map(|(key, _)| key.to_string())
        .collect();
    assert_eq!(lost, ["default/old", "default/web"]);
    assert!(table.iter().eq([(&written_later.key, &written_later)]));
    assert_eq!(table.len(), 1);
}

#[test]
fn a_list_overrides_what_was_known_before() {
    let mut table = table([state("a", 100)]);
    table.observe_deletion(&ObjectKey::new("default", "x"), "x".into_uid());
    table.begin_list();
    // The member was restored from an older snapshot: its versions went back.
    assert_eq!(
        table.apply(with(50, |state| state.replicas = 3)),
        Some(WorkloadChange::Drift)
    );
    let back = WorkloadState {
        key: ObjectKey::new("default", "x"),
        ..state("x", 49)
    };
    assert_eq!(table.apply(back), Some(WorkloadChange::Status));
    assert_eq!(table.end_list(ResourceVersion::parse("51")), []);
}

#[test]
fn f39_an_object_that_a_list_shows_is_not_deleted_whatever_was_reported_before() {
    let deletions: [&dyn Fn(&mut WorkloadTable); 2] = [
        &|table| {
            table.delete(&key(), Uid::of("a"), ResourceVersion::parse("90"));
        },
        &|table| table.observe_deletion(&key(), Uid::of("a")),
    ];
    for delete in deletions {
        let mut table = table([state("a", 10)]);
        delete(&mut table);
        assert!(table.get(&key()).is_none());
        table.begin_list();
        table.apply(state("a", 20));
        table.end_list(ResourceVersion::parse("20"));
        let changed = with(21, |state| state.ready_replicas = 9);
        assert_eq!(table.apply(changed), Some(WorkloadChange::Status));
        assert_eq!(table.get(&key()).unwrap().ready_replicas, 9);
    }
}

#[test]
fn f39_an_event_after_a_list_is_not_older_than_a_deletion_before_it() {
    let mut table = table([state("a", 10)]);
    table.observe_deletion(&key(), Uid::of("a"));
    assert!(table.apply(state("a", 11)).is_none(), "a late event");
    table.begin_list();
    table.end_list(ResourceVersion::parse("20"));
    // The member was restored, and gives the ReplicaSet its labels back.
    assert!(table.apply(state("a", 21)).is_some());
    assert!(table.get(&key()).is_some());
}

/// A ReplicaSet that a restored member shows no more, because it has not our labels yet, is adopted again.
#[test]
fn f39_what_was_deleted_before_the_member_was_restored_may_exist_again() {
    let versions = [(90, 51, true), (90, 95, false)];
    for (known, listed, exists) in versions {
        let deletions: [&dyn Fn(&mut WorkloadTable); 3] = [
            &|_| {},
            &|table| {
                let version = ResourceVersion::parse(&(known + 1).to_string());
                table.delete(&key(), Uid::of("a"), version);
            },
            &|table| table.observe_deletion(&key(), Uid::of("a")),
        ];
        for delete in deletions {
            let mut table = table([state("a", 10)]);
            table.observe_write(state("a", known));
            delete(&mut table);
            table.begin_list();
            table.end_list(ResourceVersion::parse(&listed.to_string()));
            table.observe_write(state("a", 52));
            assert_eq!(table.get(&key()).is_some(), exists, "{known} {listed}");
        }
    }
}

#[test]
fn a_workload_that_cannot_be_read_survives_a_relist() {
    let mut table = table([state("a", 10)]);
    table.begin_list();
    table.keep("a".into_uid());
    assert_eq!(table.end_list(ResourceVersion::parse("20")), []);
    assert_eq!(table.get(&key()), Some(&state("a", 10)));
}

#[test]
fn f20_the_lowest_replicas_count_until_the_member_caught_up() {
    let write = |version, generation, replicas| {
        with(version, |state| {
            (state.generation, state.replicas, state.lowest_replicas) =
                (generation, replicas, replicas);
        })
    };
    let lowest = |table: &WorkloadTable| table.get(&key()).unwrap().lowest_replicas;
    let mut table = table([state("a", 10)]);
    table.observe_write(write(12, 2, 4));
    assert_eq!(lowest(&table), 4);
    table.observe_write(write(14, 4, 8));
    assert_eq!(lowest(&table), 4, "the member may still act on the 4");
    table.apply(write(13, 3, 2));
    assert_eq!(
        lowest(&table),
        2,
        "the event of another write in between arrives late"
    );
    table.apply(with(15, |state| {
        (state.generation, state.observed_generation, state.replicas) = (4, 3, 8);
    }));
    assert_eq!(lowest(&table), 2);
    table.apply(with(16, |state| {
        (state.generation, state.observed_generation, state.replicas) = (4, 4, 8);
    }));
    assert_eq!(lowest(&table), 8);
    table.observe_write(WorkloadState {
        uid: "b".into(),
        replicas: 3,
        lowest_replicas: 3,
        generation: 2,
        ..state("b", 20)
    });
    assert_eq!(lowest(&table), 3, "another object");
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A request to scale the object `a` to `replicas`, which may be carried out until then.
fn request(replicas: u32, until: i64) -> ScaleRequest {
    ScaleRequest {
        uid: Uid::of("a"),
        generation: 1,
        lowest: replicas,
        highest: replicas,
        until: at(until),
    }
}

#[test]
fn f20_a_scale_down_whose_response_is_lost_counts_while_it_may_be_carried_out() {
    let request = |replicas| request(replicas, 100);
    let lowest =
        |table: &WorkloadTable, second| table.at(&key(), at(second)).unwrap().lowest_replicas;
    let mut table = table([state("a", 10)]);
    table.scale_requests.send(&key(), request(4), at(0));
    assert_eq!(lowest(&table, 0), 4);
    table.apply(state("a", 11));
    assert_eq!(lowest(&table, 99), 4, "a status without the request");
    assert_eq!(lowest(&table, 100), 10, "no server works on it any more");
    table.apply(with(12, |state| {
        (state.generation, state.observed_generation, state.replicas) = (3, 1, 9);
    }));
    assert_eq!(lowest(&table, 0), 4, "carried out, and scaled up since");
    table.apply(with(13, |state| {
        (state.generation, state.observed_generation, state.replicas) = (3, 3, 9);
    }));
    assert_eq!(lowest(&table, 0), 9, "the member has caught up");
    table.scale_requests.send(&key(), request(2), at(0));
    assert_eq!(lowest(&table, 0), 9, "it requires an earlier generation");
    table.apply(state("b", 20));
    assert_eq!(lowest(&table, 0), 10, "another object");
}

#[test]
fn f39_a_scale_down_that_was_carried_out_counts_no_more_when_the_member_is_restored() {
    let mut table = table([state("a", 10)]);
    let request = request(4, 100);
    table.scale_requests.send(&key(), request, at(0));
    table.observe_write(with(20, |state| {
        (state.generation, state.observed_generation, state.replicas) = (2, 2, 4);
    }));
    table.begin_list();
    table.apply(state("a", 10));
    table.end_list(ResourceVersion::parse("10"));
    let restored = table.at(&key(), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(restored.lowest_replicas, 10);
}

#[test]
fn f20_a_scale_down_that_is_rejected_counts_no_more_and_an_earlier_one_does() {
    let lowest =
        |table: &WorkloadTable, second| table.at(&key(), at(second)).unwrap().lowest_replicas;
    let reject = |table: &mut WorkloadTable| table.scale_requests.reject(&key(), Uid::of("a"), 1);
    let mut table = table([state("a", 10)]);
    table.scale_requests.send(&key(), request(4, 100), at(0));
    reject(&mut table);
    assert_eq!(lowest(&table, 0), 10);
    table.scale_requests.send(&key(), request(6, 100), at(0));
    table.scale_requests.send(&key(), request(8, 150), at(0));
    reject(&mut table);
    assert_eq!(lowest(&table, 0), 6, "the response to it was lost");
    reject(&mut table);
    assert_eq!(lowest(&table, 0), 6);
    table.scale_requests.send(&key(), request(9, 200), at(0));
    assert_eq!((lowest(&table, 99), lowest(&table, 100)), (6, 9));
}

#[test]
fn f39_a_response_that_shows_a_deleted_workload_is_not_believed() {
    let mut table = table([state("a", 10)]);
    assert_eq!(table.observe_write(state("a", 11)), Believed(true));
    table.observe_deletion(&key(), Uid::of("a"));
    assert_eq!(table.observe_write(state("a", 12)), Believed(false));
    assert!(table.get(&key()).is_none());
    table.begin_list();
    table.apply(state("a", 12));
    assert!(table.get(&key()).is_some(), "the member was restored");
    assert_eq!(table.observe_write(state("a", 13)), Believed(true));
}

#[test]
fn f20_a_scale_up_whose_response_is_lost_counts_while_it_may_be_carried_out() {
    let open = |table: &WorkloadTable, second| table.at(&key(), at(second)).unwrap().open_scale_up;
    let mut table = table([state("a", 10)]);
    table.scale_requests.send(&key(), request(14, 100), at(0));
    table.scale_requests.send(&key(), request(12, 150), at(0));
    table.scale_requests.send(&key(), request(4, 200), at(0));
    assert_eq!(open(&table, 99), Some(14));
    assert_eq!(open(&table, 150), None, "no server works on them any more");
    table.apply(with(12, |state| {
        (state.generation, state.replicas) = (2, 12);
    }));
    assert_eq!(open(&table, 0), None, "it requires an earlier generation");
}

/// Writes to the one workload of a member; versions count up from 1.
#[derive(Clone, Debug)]
enum Write {
    /// By somebody else: only the watch shows it.
    Theirs(u32),
    /// By us: the response arrives after so many events.
    Ours(u32, usize),
    /// Deleted by somebody and created again.
    Recreated(u32),
    /// A new list.
    Relist,
    /// An earlier event again.
    Repeat(usize),
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (0..5u32).prop_map(Write::Theirs),
        3 => ((0..5u32), 0..4usize).prop_map(|(replicas, late)| Write::Ours(replicas, late)),
        1 => (0..5u32).prop_map(Write::Recreated),
        1 => Just(Write::Relist),
        2 => (0..6usize).prop_map(Write::Repeat),
    ]
}

proptest! {
    /// However late responses arrive, and whichever events are repeated, the newest state wins.
    #[test]
    fn f39_the_newest_state_wins_over_late_responses_and_repeated_events(writes in prop::collection::vec(write(), 1..60)) {
        let mut table = WorkloadTable::default();
        let mut version = 1;
        let mut current = state("uid-1", version);
        let mut shown = vec![current.clone()];
        let mut responses: Vec<(usize, WorkloadState)> = Vec::new();
        table.begin_list();
        table.apply(current.clone());
        table.end_list(ResourceVersion::parse("1"));
        for write in writes {
            match write {
                Write::Theirs(replicas) | Write::Ours(replicas, _) => {
                    version += 1;
                    current = WorkloadState { replicas, lowest_replicas: replicas, resource_version: version.to_string(), ..current };
                    if let Write::Ours(_, late) = write {
                        responses.push((late, current.clone()));
                    }
                    table.apply(current.clone());
                    shown.push(current.clone());
                }
                Write::Recreated(replicas) => {
                    version += 1;
                    table.delete(&key(), current.id(), ResourceVersion::parse(&version.to_string()));
                    version += 1;
                    current = WorkloadState { replicas, lowest_replicas: replicas, ..state(&format!("uid-{version}"), version) };
                    table.apply(current.clone());
                    shown.push(current.clone());
                }
                Write::Relist => {
                    table.begin_list();
                    table.apply(current.clone());
                    table.end_list(ResourceVersion::parse(&version.to_string()));
                }
                Write::Repeat(back) => {
                    if let Some(old) = shown.iter().rev().nth(back) {
                        table.apply(old.clone());
                    }
                }
            }
            for (late, response) in &mut responses {
                if *late == 0 {
                    table.observe_write(response.clone());
                }
                *late = late.wrapping_sub(1);
            }
            responses.retain(|(late, _)| *late != usize::MAX);
            prop_assert_eq!(table.get(&key()), Some(&current));
        }
    }
}
