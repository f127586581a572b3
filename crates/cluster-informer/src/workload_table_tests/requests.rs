//! Which replicas count while it is not known what was carried out (F20).

use super::*;
use crate::scale_requests::ScaleRequest;

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
