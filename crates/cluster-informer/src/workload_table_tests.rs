//! Which of a list, an event and a response wins, and which change it reports.

#[path = "workload_table_tests/changes.rs"]
mod changes;
#[path = "workload_table_tests/deletions.rs"]
mod deletions;
#[path = "workload_table_tests/lists.rs"]
mod lists;
#[path = "workload_table_tests/requests.rs"]
mod requests;

use proptest::prelude::*;

use super::*;
use crate::{deployment_state::OwningDeployment, workload::Deletion};

fn key() -> WorkloadKey {
    WorkloadKey::new("default", "web")
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
        key: WorkloadKey::new("default", "other"),
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
