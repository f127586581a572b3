//! The order in which clusters are served (F11): by weight, descending, then by hash, then by name.
//!
//! The hash is XXH3-64 of the cluster's name with XXH3-64 of the set's key as seed. It is part of the
//! interface: a change would move replicas of every set whose numbers don't divide evenly, so it stays as
//! it is for good (the test below pins it). It replaces FNV-1-32 of the predecessors, whose low entropy on
//! short names sends the first replica to one of ten clusters three times as often as to another.

use std::cmp::Reverse;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::{Cluster, Request};

/// The request's clusters, the one served first at the front.
pub(crate) struct Order<'a> {
    /// One number for each cluster, so that sorting compares and moves no more than that. From the top: the bits in which
    /// weights differ from the greatest one, the bits of the hash for which there is room, the cluster's position in
    /// the request.
    places: &'a mut [u64],
    /// The bits of a place that are the position.
    position: u64,
}

impl<'a> Order<'a> {
    /// The order of the request's clusters, in the memory of `places`: one for each cluster.
    #[expect(
        clippy::inline_always,
        reason = "a call copies the answer: a plan over three clusters takes a tenth longer"
    )]
    #[inline(always)]
    pub(crate) fn of(request: &Request<'_>, places: &'a mut [u64]) -> Self {
        let clusters = request.clusters;
        let seed = xxh3_64(request.key.as_bytes());
        let greatest = clusters.iter().map(weight).max().unwrap_or(0);
        let position = u64::MAX
            .checked_shr((clusters.len() as u64).leading_zeros())
            .unwrap_or(0);
        // Never all 64 bits, so that the hash is shifted by less than its width, in two steps.
        let hash_bits = (greatest | 1).leading_zeros();
        for ((place, cluster), index) in places.iter_mut().zip(clusters).zip(0..) {
            let lighter = greatest - weight(cluster);
            let first = lighter << hash_bits | hash(cluster, seed) >> 1 >> (63 - hash_bits);
            *place = first & !position | index;
        }
        places.sort_unstable();
        let mut order = Self { places, position };
        if order.has_ties() {
            order.settle_ties(clusters, seed);
        }
        order
    }

    fn has_ties(&self) -> bool {
        let is_tie = |pair: &[u64]| pair[0] | self.position == pair[1] | self.position;
        self.places.windows(2).any(is_tie)
    }

    /// Orders the clusters whose places differ in the position alone by all that the rule looks at. Of a thousand clusters
    /// with usual weights there is a pair of them once in millions of sets.
    #[cold]
    fn settle_ties(&mut self, clusters: &[Cluster<'_>], seed: u64) {
        let position = self.position;
        for tied in self
            .places
            .chunk_by_mut(|a, b| a | position == b | position)
        {
            if tied.len() > 1 {
                tied.sort_unstable_by_key(|place| {
                    let cluster = &clusters[index(place & position)];
                    (Reverse(weight(cluster)), hash(cluster, seed), cluster.name)
                });
            }
        }
    }

    /// The clusters' positions in the request, the one served first at the front.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = usize> {
        let position = self.position;
        self.places.iter().map(move |place| index(place & position))
    }
}

/// A position as an index.
fn index(position: u64) -> usize {
    usize::try_from(position).expect("it was one before")
}

fn hash(cluster: &Cluster<'_>, seed: u64) -> u64 {
    xxh3_64_with_seed(cluster.name.as_bytes(), seed)
}

/// A cluster's weight; 0 without preferences.
pub(crate) fn weight(cluster: &Cluster<'_>) -> u64 {
    cluster.preference.map_or(0, |preference| preference.weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preference;

    fn order_of(key: &str, clusters: &[(&str, u64)]) -> Vec<String> {
        let clusters: Vec<_> = clusters
            .iter()
            .map(|&(name, weight)| Cluster {
                name,
                preference: Some(Preference {
                    weight,
                    ..Preference::default()
                }),
                current: 0,
                capacity: None,
            })
            .collect();
        let request = Request {
            key,
            replicas: 0,
            rebalance: false,
            clusters: &clusters,
        };
        Order::of(&request, &mut vec![0; clusters.len()])
            .iter()
            .map(|index| clusters[index].name.to_owned())
            .collect()
    }

    #[test]
    fn f11_the_hash_is_pinned_for_good() {
        let seed = xxh3_64(b"default/web");
        // The published value for no input: this is XXH3-64 and no other.
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(seed, 0xcdf5_453c_6b8e_2813);
        assert_eq!(xxh3_64_with_seed(b"eu-1", seed), 0xb509_44f6_c9bb_7099);
        let equal = ["A", "B", "C", "D", "E"].map(|name| (name, 1));
        assert_eq!(order_of("default/web", &equal), ["A", "E", "D", "B", "C"]);
        assert_eq!(order_of("default/api", &equal), ["B", "E", "D", "A", "C"]);
    }

    #[test]
    fn f11_heavier_clusters_come_first() {
        let order = order_of(
            "default/web",
            &[("A", 0), ("B", 1), ("C", u64::MAX), ("D", 2)],
        );
        assert_eq!(order, ["C", "D", "B", "A"]);
    }
}
