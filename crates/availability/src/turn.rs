//! At most one cluster has loans at a time (M16). Pure.
//!
//! ```text
//! who has the turn     the cluster with loans, or with pods that can't be reached; else the one where most pods wait to be evicted or updated
//! it passes on         once no pod waits there, all are reachable, and pods wait elsewhere:
//!                      its loans are made 0; only once the member has observed that, and no write may arrive, another cluster gets some
//! ```
//!
//! Nobody can tell a pod that was evicted from one that has failed by itself: while some can't be reached, no other cluster gets the turn.

use std::cmp::Reverse;

use crate::loans::{self, Part};

/// As [`loans::writes`], with loans in one cluster only. `clusters` has the cluster of each part.
pub(crate) fn writes(budget: u64, parts: &[Part], clusters: &[usize]) -> Vec<Option<u64>> {
    let turn = turn(parts, clusters);
    let is_outside = |index: usize| Some(clusters[index]) != turn;
    let mut others = parts.iter().enumerate();
    let waits = others.any(|(index, part)| {
        let is_busy = part.exposure > 0 || part.unreachable > 0;
        is_outside(index) && is_busy
    });
    let inside = parts.iter().enumerate().map(|(index, part)| Part {
        limit: part.limit.filter(|_| !is_outside(index)),
        ..*part
    });
    let inside: Vec<_> = inside.collect();
    let of_turn = loans::writes(budget, &inside).into_iter().enumerate();
    let write = |(index, write): (usize, Option<u64>)| {
        let limit = parts[index].limit?;
        let most = match write {
            _ if is_outside(index) => 0,
            Some(most) if waits => most.min(limit.max_unavailable.unwrap_or_default()),
            write => return write,
        };
        let is_new = limit.max_unavailable != Some(most) || !limit.is_last;
        is_new.then_some(most)
    };
    of_turn.map(write).collect()
}

/// A cluster, of the sums over its parts.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    exposure: u64,
    unreachable: u64,
    wanted: u64,
    pods: u64,
}

/// The cluster that has the turn; `None` if there is none.
fn turn(parts: &[Part], clusters: &[usize]) -> Option<usize> {
    let count = clusters.iter().max().map_or(0, |last| last + 1);
    let mut all = vec![Cluster::default(); count];
    for (part, index) in parts.iter().zip(clusters) {
        let cluster = &mut all[*index];
        cluster.exposure += part.exposure;
        cluster.unreachable += part.unreachable;
        cluster.wanted += part.wanted;
        cluster.pods += part.pods;
    }
    let is_waiting = all.iter().any(|cluster| cluster.wanted > 0);
    let rank = |index: &usize| {
        let cluster = &all[*index];
        let is_holding = cluster.exposure > 0;
        // Something may be under way there.
        let is_busy = cluster.unreachable > 0;
        let keeps = is_holding && (cluster.wanted > 0 || !is_waiting);
        let holds = (is_busy && is_holding, is_busy, keeps);
        (holds, cluster.wanted, cluster.pods, Reverse(*index))
    };
    (0..count).max_by_key(rank)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::loans::Limit;

    /// A part of 3 pods.
    fn part(unreachable: u64, written: u64) -> Part {
        let limit = Limit {
            max_unavailable: Some(written),
            is_last: true,
        };
        Part {
            pods: 3,
            unreachable,
            exposure: written,
            held: 0,
            repairs: 0,
            wanted: 0,
            limit: Some(limit),
        }
    }

    fn wants(wanted: u64, part: Part) -> Part {
        Part { wanted, ..part }
    }

    fn unlimited() -> Part {
        let limit = Limit {
            max_unavailable: None,
            is_last: true,
        };
        Part {
            exposure: 3,
            limit: Some(limit),
            ..part(0, 0)
        }
    }

    fn away(exposure: u64) -> Part {
        Part {
            exposure,
            limit: None,
            ..part(3, 0)
        }
    }

    #[rstest]
    #[case::what_is_not_limited_is_limited_first(vec![unlimited(), unlimited()], vec![Some(0), Some(0)])]
    #[case::the_first(vec![part(0, 0), part(0, 0)], vec![Some(2), None])]
    #[case::where_pods_wait(vec![part(0, 0), wants(1, part(0, 0))], vec![None, Some(2)])]
    #[case::where_most_wait(vec![wants(1, part(0, 0)), wants(2, part(0, 0))], vec![None, Some(2)])]
    #[case::it_stays_while_pods_wait(vec![wants(1, part(0, 2)), wants(2, part(0, 0))], vec![None, None])]
    #[case::and_while_nobody_else_waits(vec![part(0, 2), part(0, 0)], vec![None, None])]
    #[case::and_while_a_pod_moves(vec![part(1, 2), wants(2, part(0, 0))], vec![None, None])]
    #[case::or_has_failed(vec![part(1, 0), wants(2, part(0, 0))], vec![Some(1), None])]
    #[case::in_two_clusters(vec![part(1, 1), part(1, 0)], vec![None, None])]
    #[case::then_it_is_given_back(vec![part(0, 2), wants(2, part(0, 0))], vec![Some(0), None])]
    #[case::and_passes_on(vec![part(0, 0), wants(2, part(0, 0))], vec![None, Some(2)])]
    #[case::not_before_that_is_seen(vec![Part { exposure: 2, ..part(0, 0) }, wants(2, part(0, 0))], vec![None, None])]
    #[case::of_two_one_gives_back(vec![part(0, 1), wants(1, part(0, 1))], vec![Some(0), None])]
    #[case::a_cluster_that_is_away_may_use_it(vec![away(1), wants(1, part(0, 0))], vec![None, None])]
    #[case::or_not(vec![away(0), wants(1, part(0, 0))], vec![None, None])]
    fn m16_one_cluster_at_a_time(#[case] parts: Vec<Part>, #[case] expected: Vec<Option<u64>>) {
        let clusters: Vec<_> = (0..parts.len()).collect();
        assert_eq!(writes(2, &parts, &clusters), expected);
    }

    /// Its parts share the budget as those of all clusters do otherwise.
    #[test]
    fn m16_all_parts_of_the_cluster_have_the_turn() {
        let parts = [part(0, 0), part(0, 0), wants(1, part(0, 0))];
        assert_eq!(writes(2, &parts, &[0, 0, 0]), [Some(1), None, Some(1)]);
        assert_eq!(writes(2, &parts, &[0, 1, 1]), [None, Some(1), Some(1)]);
        assert_eq!(writes(2, &[], &[]), []);
    }
}
