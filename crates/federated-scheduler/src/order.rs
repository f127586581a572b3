//! The order in which clusters are served (F11): by weight, descending, then by hash, then by name.
//!
//! The hash is XXH3-64 of the cluster's name with XXH3-64 of the set's key as seed. It is part of the
//! interface: a change would move replicas of every set whose numbers don't divide evenly, so it stays as
//! it is for good (the test below pins it). It replaces FNV-1-32 of the predecessors, whose low entropy on
//! short names sends the first replica to one of ten clusters three times as often as to another.

use smallvec::SmallVec;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::{Cluster, INLINE_CLUSTERS, Request};

/// The request's clusters, the one served first at the front.
pub(crate) type Order = SmallVec<[Place; INLINE_CLUSTERS]>;

/// One cluster's place in the order: from the top, the inverted weight (64 bits), the upper half of the hash (32 bits)
/// and the cluster's position in the request (32 bits). One number, so that sorting compares and moves no more than that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u128);

impl Place {
    fn new(cluster: &Cluster<'_>, seed: u64, index: usize) -> Self {
        let index = u32::try_from(index).expect("fewer than 2^32 clusters fit into memory");
        let hash = hash(cluster, seed) >> 32 << 32;
        Self(u128::from(!weight(cluster)) << 64 | u128::from(hash | u64::from(index)))
    }

    /// The cluster's position in the request.
    pub(crate) fn index(self) -> usize {
        (self.0 & u128::from(u32::MAX)) as usize
    }

    /// Whether weight and upper half of the hash are the same.
    fn ties_with(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

/// The order of the request's clusters.
pub(crate) fn of(request: &Request<'_>) -> Order {
    let seed = xxh3_64(request.key.as_bytes());
    let mut order = Order::with_capacity(request.clusters.len());
    for (index, cluster) in request.clusters.iter().enumerate() {
        order.push(Place::new(cluster, seed, index));
    }
    order.sort_unstable();
    // The rest of the hash, and the name, are looked at only where they are needed: of a thousand clusters, once in ten
    // thousand sets.
    for tied in order.chunk_by_mut(|a, b| a.ties_with(*b)) {
        if tied.len() > 1 {
            let cluster = |place: &Place| &request.clusters[place.index()];
            tied.sort_unstable_by_key(|place| (hash(cluster(place), seed), cluster(place).name));
        }
    }
    order
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
        of(&request)
            .iter()
            .map(|place| clusters[place.index()].name.to_owned())
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
