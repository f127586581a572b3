//! What a list changes, also that of a member that was restored from a backup.

use super::*;

#[test]
fn a_relist_removes_what_is_gone_but_not_what_was_written_since() {
    let mut table = table([state("a", 10)]);
    table.begin_list();
    let written_later = WorkloadState {
        key: WorkloadKey::new("default", "new"),
        ..state("n", 25)
    };
    let gone_before = WorkloadState {
        key: WorkloadKey::new("default", "old"),
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
    table.observe_deletion(&WorkloadKey::new("default", "x"), Uid::of("x"));
    table.begin_list();
    // The member was restored from an older snapshot: its versions went back.
    assert_eq!(
        table.apply(with(50, |state| state.replicas = 3)),
        Some(WorkloadChange::Drift)
    );
    let back = WorkloadState {
        key: WorkloadKey::new("default", "x"),
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
    table.keep(Uid::of("a"));
    assert_eq!(table.end_list(ResourceVersion::parse("20")), []);
    assert_eq!(table.get(&key()), Some(&state("a", 10)));
}
