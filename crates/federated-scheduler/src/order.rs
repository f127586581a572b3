//! The order in which clusters are served (F11): by weight, descending, then by hash, then by name.
//!
//! The hash is XXH3-64 of the cluster's name with XXH3-64 of the set's key as seed. It is part of the
//! interface: a change would move replicas of every set whose numbers don't divide evenly, so it never
//! changes (the test below pins it). It replaces the FNV-1-32 of Federation v1, whose low entropy on
//! short names sends the first replica to one of ten clusters three times as often as to another.

use std::cmp::Reverse;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::request::Request;

/// The positions of the request's clusters, that of the cluster served first at the front.
pub(crate) fn of(request: &Request<'_>) -> Vec<usize> {
    let clusters = request.clusters;
    let seed = xxh3_64(request.key.as_bytes());
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by_cached_key(|&index| {
        let cluster = &clusters[index];
        let hash = xxh3_64_with_seed(cluster.name.as_bytes(), seed);
        (Reverse(cluster.weight()), hash, cluster.name)
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Cluster, Preference};

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
            .into_iter()
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
