//! What one leader records, and the next one continues from.

use super::{Contact::*, *};

/// Found by the simulation: the next leader believed pods without power, as the outage was too short for a loss, or as the informer
/// had begun anew in between.
#[test]
fn f33_a_leader_knows_that_the_one_before_was_waiting_for_the_nodes() {
    for informer_begins_anew in [false, true] {
        let mut members = Members::new(2);
        members.show(&[Unreachable, Answers], 20);
        if informer_begins_anew {
            members.show(&[Unknown, Answers], 1);
        }
        members.show(&[Unconfirmed, Answers], 5);
        let mut next = members.next_leader();
        assert_eq!(next.lost(), [false, false]);
        let was_out = |leader: &Members| [0, 1].map(|member| leader.histories[member].was_out());
        assert_eq!(was_out(&next), [true, false], "{informer_begins_anew}");
        next.show(&[Answers, Answers], 1);
        assert_eq!(was_out(&next), [false, false]);
    }
}

/// Found by the simulation: the kubeconfig was removed and returned while the member had no power.
#[test]
fn f33_an_informer_that_begins_during_an_outage_waits_for_the_nodes() {
    let mut members = Members::new(2);
    members.show(&[Unreachable, Answers], 20);
    assert!(members.histories[0].was_out() && !members.histories[1].was_out());
}

#[test]
fn f33_a_new_leader_continues_the_outage_and_sees_it_for_itself() {
    let mut members = Members::new(2);
    members.show(&[Answers, Unreachable], 50);
    let mut next = members.next_leader();
    next.show(&[Answers, Unknown], 60)
        .show(&[Answers, Failing], 15);
    assert_eq!(next.lost(), [false, false], "below the failure threshold");
    next.show(&[Answers, Unreachable], 1);
    assert_eq!(next.lost(), [false, true]);
    let mut back = members.next_leader();
    back.show(&[Answers, Answers], 1)
        .show(&[Answers, Unreachable], 50);
    assert_eq!(back.lost(), [false, false], "an outage of its own");
    let mut rejected = members.next_leader();
    rejected.show(&[Answers, Unauthorized], 3580);
    assert_eq!(rejected.lost(), [false, false], "another outage");
    // A lost member that still does not answer is no sign that the controller is connected.
    let mut third = next.next_leader();
    third.show(&[Unreachable, Failing], 1);
    assert_eq!(
        (third.lost(), third.disconnected),
        (vec![false, false], true)
    );
}

#[test]
fn f33_a_new_leader_continues_the_stabilization() {
    let mut members = Members::new(1);
    members.histories.push(History::default());
    members
        .show(&[Unreachable, Answers], 70)
        .show(&[Answers, Answers], 31);
    let mut next = members.next_leader();
    next.show(&[Answers, Answers], 1);
    assert_eq!(next.stabilizes_in(), 29);
    let recorded = next.histories[0].record(&periods(), next.instant());
    assert_eq!((recorded.losses, recorded.healthy_seconds), (1, 30));
}

#[test]
fn f33_a_new_leader_knows_for_which_sets_a_member_was_lost() {
    let mut members = Members::new(2);
    members.show(&[Unreachable, Answers], 20);
    let mut next = members.next_leader();
    next.show(&[Answers, Answers], 30);
    assert_eq!(
        [10, 30].map(|grace| stabilizes_within(&next, grace)),
        [30, 30],
        "nobody has seen its nodes return"
    );
    let mut third = next.next_leader();
    third.show(&[Answers, Answers], 1);
    assert_eq!(
        [10, 30].map(|grace| stabilizes_within(&third, grace)),
        [29, 29]
    );
    // Fewer failed probes than the threshold are no outage for any of them.
    let mut failing = Members::new(2);
    failing.show(&[Failing, Answers], 20);
    let mut next = failing.next_leader();
    next.show(&[Answers, Answers], 1);
    assert_eq!(stabilizes_within(&next, 0), 0);
}

#[test]
fn f33_a_member_that_returned_between_two_leaders_has_to_be_healthy() {
    let mut members = Members::new(2);
    members.show(&[Unreachable, Answers], 45);
    let mut next = members.next_leader();
    next.show(&[Answers, Answers], 21);
    assert_eq!(
        next.stabilizes_in(),
        39,
        "it was not lost, and is not believed"
    );
    let mut third = next.next_leader();
    third.show(&[Answers, Answers], 1);
    assert!((39..60).contains(&third.stabilizes_in()));
    third.show(&[Answers, Answers], 60);
    let mut fourth = third.next_leader();
    fourth.show(&[Answers, Answers], 1);
    assert_eq!(fourth.stabilizes_in(), 0);
}

#[test]
fn f33_leaders_of_50_s_lose_a_member_for_sets_that_give_it_more_time_than_others() {
    for (of_member, of_set) in [(Some(GRACE), 500), (None, 300), (None, 30)] {
        let mut members = Members::new(2);
        members.grace = of_member;
        let mut seconds = 0;
        while !lost_within(&members, Some(of_set)) {
            members = members.next_leader();
            members.grace = of_member;
            members
                .show(&[Failing, Answers], 15)
                .show(&[Unreachable, Answers], 35);
            seconds += 50;
            assert!(seconds < 2 * of_set + 100, "{of_member:?} {of_set}");
        }
        assert!(seconds >= of_set, "{of_member:?} {of_set}");
    }
}
