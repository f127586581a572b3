//! What is gone, and what may come back.

use super::*;

#[test]
fn our_deletion_is_final_but_finalizers_may_delay_it() {
    let mut table = table([state("a", 10)]);
    table.observe_deletion(&key(), Uid::of("a"));
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
        table.delete(&key(), Uid::of("a"), ResourceVersion::parse("14")),
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
    table.delete(&key(), Uid::of("a"), ResourceVersion::parse("12"));
    assert_eq!(table.get(&key()), None);
    assert_eq!(table.apply(state("a", 11)), None, "an event from before");
    assert_eq!(
        table.delete(&key(), Uid::of("a"), ResourceVersion::parse("12")),
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
    table.observe_absence(&key(), Uid::of("b"));
    assert!(table.get(&key()).is_some(), "another object");
    table.observe_absence(&key(), Uid::of("a"));
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
    table.observe_deletion(&key(), Uid::of("a"));
    assert_eq!(
        table.delete(&key(), Uid::of("a"), ResourceVersion::parse("99")),
        None
    );
    assert_eq!(table.get(&key()).map(|state| &*state.uid), Some("b"));
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
