//! The rules by number, as tables.

use federated_scheduler::{Cluster, Layout, Preference, Reason, Request, plan};
use rstest::rstest;

/// A cluster by name with min, max, weight, present and capacity; `-1` means none.
type Row = (&'static str, u64, i64, u64, u64, i64);

fn layout_of(replicas: u64, rebalance: bool, rows: &[Row]) -> Layout {
    let clusters: Vec<_> = rows
        .iter()
        .map(|&(name, min, max, weight, current, capacity)| Cluster {
            name,
            preference: Some(Preference {
                min,
                max: u64::try_from(max).ok(),
                weight,
            }),
            current,
            capacity: u64::try_from(capacity).ok(),
        })
        .collect();
    plan(&Request {
        key: "default/web",
        replicas,
        rebalance,
        clusters: &clusters,
    })
}

fn numbers(layout: &Layout) -> Vec<u64> {
    layout.shares.iter().map(|share| share.replicas).collect()
}

fn even(name: &'static str, current: u64) -> Row {
    (name, 0, -1, 1, current, -1)
}

#[rstest]
#[case::f12_minimums_come_on_top_of_shares(50, true, &[("A", 20, -1, 1, 0, -1), even("B", 0), even("C", 0)], &[30, 10, 10])]
#[case::f12_a_minimum_above_the_capacity(50, true, &[("A", 20, -1, 0, 0, 6), ("B", 0, -1, 1, 0, -1)], &[6, 44])]
#[case::f13_weight_zero_keeps_what_is_present(10, false, &[("A", 0, -1, 0, 4, -1), even("B", 0)], &[4, 6])]
#[case::f13_weight_zero_keeps_nothing_when_rebalancing(10, true, &[("A", 0, -1, 0, 4, -1), even("B", 0)], &[0, 10])]
#[case::f13_a_maximum_binds_what_is_present(10, false, &[("A", 0, 2, 1, 4, -1), even("B", 0)], &[2, 8])]
#[case::f13_minimums_of_others_go_before_what_is_present(10, false, &[even("A", 10), ("B", 4, -1, 1, 0, -1)], &[6, 4])]
#[case::f14_what_is_present_is_set_off_against_the_share(50, false, &[even("A", 20), even("B", 0), even("C", 0)], &[20, 15, 15])]
#[case::f16_the_heavier_cluster_wins_a_tie(2, false, &[("A", 0, -1, 3, 1, -1), ("B", 0, -1, 1, 0, -1)], &[2, 0])]
#[case::f17_the_one_above_its_share_gives_up(50, false, &[even("A", 10), even("B", 70)], &[10, 40])]
#[case::f17_those_above_their_share_are_levelled(60, false, &[even("A", 50), even("B", 30), even("C", 4)], &[28, 28, 4])]
#[case::f17_weight_zero_gives_up_first(20, false, &[("A", 0, -1, 0, 30, -1), even("B", 20)], &[0, 20])]
#[case::f17_weights_zero_are_levelled(30, false, &[("A", 0, -1, 0, 30, -1), ("B", 0, -1, 0, 8, -1), even("C", 10)], &[12, 8, 10])]
#[case::f18_no_room(50, true, &[("A", 0, 2, 1, 0, -1), ("B", 0, -1, 1, 0, 3)], &[2, 3])]
fn the_rules_hold(
    #[case] replicas: u64,
    #[case] rebalance: bool,
    #[case] rows: &[Row],
    #[case] expected: &[u64],
) {
    let layout = layout_of(replicas, rebalance, rows);
    assert_eq!(numbers(&layout), expected);
    assert_eq!(layout.unplaced, replicas - expected.iter().sum::<u64>());
}

#[test]
fn f16_four_over_three_starves_nobody() {
    let rows = [even("A", 0), even("B", 0), even("C", 0)];
    for (replicas, expected) in [(3, [1, 1, 1]), (4, [1, 1, 2]), (5, [1, 2, 2])] {
        let mut numbers = numbers(&layout_of(replicas, true, &rows));
        numbers.sort_unstable();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn f16_eleven_over_ten_leave_nobody_empty() {
    let names = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
    let numbers = numbers(&layout_of(11, true, &names.map(|name| even(name, 0))));
    assert!(
        numbers.iter().all(|&number| number == 1 || number == 2),
        "{numbers:?}"
    );
}

#[test]
fn f3_a_cluster_without_preferences_gets_nothing() {
    let any = Cluster {
        name: "A",
        preference: None,
        current: 5,
        capacity: None,
    };
    let layout = plan(&Request {
        key: "x",
        replicas: 3,
        rebalance: false,
        clusters: &[any],
    });
    assert_eq!((numbers(&layout), layout.unplaced), (vec![0], 3));
}

#[rstest]
#[case::minimum_and_share(50, true, ("A", 20, -1, 1, 0, -1), even("B", 0), "minimum 20; 15 of 30 by weight (1 of 2)")]
#[case::maximum(50, true, ("A", 0, 10, 1, 0, 20), even("B", 0), "maximum 10")]
#[case::capacity(50, true, ("A", 0, 30, 1, 0, 20), even("B", 0), "cluster full: capacity 20")]
#[case::a_bound_that_does_not_bind(50, true, ("A", 0, 25, 1, 0, -1), even("B", 0), "25 of 50 by weight (1 of 2)")]
#[case::kept(
    50,
    false,
    even("A", 30),
    even("B", 0),
    "30 replicas kept in place (rebalance is off)"
)]
#[case::kept_as_far_as_the_maximum(50, false, ("A", 0, 28, 1, 30, -1), even("B", 0), "30 replicas kept in place (rebalance is off); maximum 28")]
#[case::others_keep(
    50,
    false,
    even("A", 0),
    even("B", 50),
    "no replicas left to distribute: other clusters keep the rest"
)]
#[case::minimum_beyond_capacity(50, true, ("A", 20, -1, 0, 0, 6), even("B", 0), "minimum 20; cluster full: capacity 6")]
#[case::weight_zero(50, true, ("A", 0, -1, 0, 9, -1), even("B", 0), "weight 0: no replicas by weight")]
#[case::weight_zero_kept(50, false, ("A", 0, -1, 0, 9, -1), even("B", 0), "9 replicas kept in place (rebalance is off); weight 0: no replicas by weight")]
#[case::kept_where_its_share_would_be_as_well(28, false, even("A", 22), ("B", 0, -1, 1, 6, 6), "22 of 22 by weight (1 of 1)")]
#[case::full_where_all_is_kept(28, false, ("B", 0, -1, 1, 6, 6), even("A", 22), "cluster full: capacity 6")]
fn f19_reasons_say_what_decided(
    #[case] replicas: u64,
    #[case] rebalance: bool,
    #[case] first: Row,
    #[case] second: Row,
    #[case] reasons: &str,
) {
    let layout = layout_of(replicas, rebalance, &[first, second]);
    assert_eq!(layout.shares[0].reasons.to_string(), reasons);
}

#[rstest]
#[case::one_reason(50, true, ("A", 0, 10, 1, 0, -1), even("B", 0), "AtMaximum")]
#[case::minimum_and_share(50, true, ("A", 20, -1, 1, 0, -1), even("B", 0), "ByWeight")]
#[case::kept_as_far_as_the_maximum(50, false, ("A", 0, 28, 1, 30, -1), even("B", 0), "AtMaximum")]
#[case::weight_zero_kept(50, false, ("A", 0, -1, 0, 9, -1), even("B", 0), "KeptInPlace")]
#[case::weight_zero(50, true, ("A", 0, -1, 0, 9, -1), even("B", 0), "ZeroWeight")]
fn f19_one_reason_is_decisive(
    #[case] replicas: u64,
    #[case] rebalance: bool,
    #[case] first: Row,
    #[case] second: Row,
    #[case] name: &str,
) {
    let layout = layout_of(replicas, rebalance, &[first, second]);
    let decisive = layout.shares[0].reasons.decisive().map(Reason::name);
    assert_eq!(decisive, Some(name));
}
