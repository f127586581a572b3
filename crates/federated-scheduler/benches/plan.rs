//! One plan over 3, 100 and 1,000 clusters: `cargo bench -p federated-scheduler`.
//!
//! `prepared` measures [`plan`] alone. `from_maps` starts from maps by cluster name, as a case file or the
//! controller has them: it looks up preferences, present replicas and capacities first.

use std::collections::BTreeMap;

use divan::{Bencher, black_box};
use federated_scheduler::{Cluster, Preference, Request, plan};

const CLUSTERS: [usize; 3] = [3, 100, 1000];

fn main() {
    divan::main();
}

/// A request, as a user states it.
struct Case {
    replicas: u64,
    rebalance: bool,
    clusters: Vec<String>,
    preferences: BTreeMap<String, Preference>,
    current: BTreeMap<String, u64>,
    capacity: BTreeMap<String, u64>,
}

impl Case {
    /// The inputs of the table in `docs/performance.md`.
    fn new(kind: &str, count: usize) -> Self {
        let clusters: Vec<String> = (0..count).map(|i| format!("cluster-{i:04}")).collect();
        let bounded = matches!(kind, "bounded" | "keep");
        let mut case = Self {
            replicas: 10 * count as u64 + count as u64 / 3,
            rebalance: kind != "keep",
            clusters,
            preferences: BTreeMap::new(),
            current: BTreeMap::new(),
            capacity: BTreeMap::new(),
        };
        if kind == "bigN" {
            case.replicas = 1_000_000;
        }
        if kind == "even" {
            case.preferences.insert(
                "*".to_owned(),
                Preference {
                    weight: 1,
                    ..Preference::default()
                },
            );
            return case;
        }
        for (name, i) in case.clusters.iter().zip(0_u64..) {
            let mut preference = Preference {
                weight: 1 + i % 10,
                ..Preference::default()
            };
            if bounded {
                preference.min = i % 3;
                preference.max = Some(5 + i % 20);
                if i % 4 == 0 {
                    case.capacity.insert(name.clone(), 3 + i % 15);
                }
            }
            if kind == "keep" {
                case.current.insert(name.clone(), 7 * i % 16);
            }
            case.preferences.insert(name.clone(), preference);
        }
        case
    }

    fn prepare(&self) -> Vec<Cluster<'_>> {
        let any = self.preferences.get("*");
        let cluster = |name| Cluster {
            name,
            preference: self.preferences.get(name).or(any).copied(),
            current: self.current.get(name).copied().unwrap_or(0),
            capacity: self.capacity.get(name).copied(),
        };
        self.clusters
            .iter()
            .map(String::as_str)
            .map(cluster)
            .collect()
    }

    fn request<'a>(&self, clusters: &'a [Cluster<'a>]) -> Request<'a> {
        Request {
            key: "default/web",
            replicas: self.replicas,
            rebalance: self.rebalance,
            clusters,
        }
    }
}

fn prepared(bencher: Bencher<'_, '_>, kind: &str, count: usize) {
    let case = Case::new(kind, count);
    let clusters = case.prepare();
    let request = case.request(&clusters);
    bencher.bench_local(|| plan(black_box(&request)));
}

fn from_maps(bencher: Bencher<'_, '_>, kind: &str, count: usize) {
    let case = Case::new(kind, count);
    bencher.bench_local(|| {
        let clusters = black_box(&case).prepare();
        plan(&case.request(&clusters))
    });
}

macro_rules! kinds {
    ($run:ident: $($name:ident $kind:literal)*) => {
        mod $run {
            $(#[divan::bench(args = super::CLUSTERS)]
            fn $name(bencher: divan::Bencher<'_, '_>, count: usize) {
                super::$run(bencher, $kind, count);
            })*
        }
    };
}

kinds!(prepared: even "even" weighted "weighted" bounded "bounded" keep "keep" big_n "bigN");
kinds!(from_maps: even "even" weighted "weighted" bounded "bounded" keep "keep" big_n "bigN");
