//! One pod event of 6 KB: decoded and counted (aim: at most 8 µs together).

use std::{collections::HashMap, hint::black_box};

use cluster_informer::{pod::PodObject, pod_table::PodTable};
use divan::{Bencher, counter::BytesCount};
use jiff::Timestamp;

#[path = "../tests/pod_json/mod.rs"]
mod pod_json;

fn main() {
    divan::main();
}

#[divan::bench]
fn decode(bencher: Bencher<'_, '_>) {
    let pod = pod_json::running(1, 1, 1);
    bencher
        .counter(BytesCount::of_str(&pod))
        .bench(|| serde_json::from_str::<PodObject>(black_box(&pod)).expect("a pod"));
}

#[divan::bench]
fn decode_and_count(bencher: Bencher<'_, '_>) {
    let pods: Vec<_> = (0..1000)
        .map(|pod| pod_json::running(pod, pod % 100, u64::from(pod)))
        .collect();
    let unscheduled: Vec<_> = (0..1000)
        .map(|pod| pod_json::unscheduled(pod, pod % 100, u64::from(pod)))
        .collect();
    let mut table = PodTable::default();
    let mut turn = 0;
    bencher.bench_local(|| {
        // Each pod loses its node and gets it back in turn, so that every event changes the counts.
        let pods = if turn / 1000 % 2 == 0 {
            &pods
        } else {
            &unscheduled
        };
        let pod = serde_json::from_str(black_box(&pods[turn % 1000])).expect("a pod");
        turn += 1;
        table.begin_list();
        table.apply(pod, Timestamp::UNIX_EPOCH)
    });
}

/// For comparison: the whole pod, as a tree of values.
#[divan::bench]
fn decode_into_a_tree(bencher: Bencher<'_, '_>) {
    let pod = pod_json::running(1, 1, 1);
    bencher.bench(|| {
        serde_json::from_str::<HashMap<String, serde_json::Value>>(black_box(&pod)).expect("a pod")
    });
}
