//! One pod event of 6 KB: decoded, and taken into the facts and counts (aim: at most 8 µs together).

use std::{collections::HashMap, hint::black_box};

use cluster_informer::{counts::PodTable, pod_fact::PodObject};
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
    let waiting: Vec<_> = (0..1000)
        .map(|pod| pod_json::waiting(pod, pod % 100, u64::from(pod)))
        .collect();
    let mut table = PodTable::default();
    let mut turn = 0;
    bencher.bench_local(|| {
        // Each pod in turn loses its node and gets it back: every event changes the counts.
        let pods = if turn / 1000 % 2 == 0 {
            &pods
        } else {
            &waiting
        };
        let pod = serde_json::from_str(black_box(&pods[turn % 1000])).expect("a pod");
        turn += 1;
        table.restarted();
        table.applied(pod, Timestamp::UNIX_EPOCH)
    });
}

/// For comparison: all of the pod, as a tree of values.
#[divan::bench]
fn decode_into_a_tree(bencher: Bencher<'_, '_>) {
    let pod = pod_json::running(1, 1, 1);
    bencher.bench(|| {
        serde_json::from_str::<HashMap<String, serde_json::Value>>(black_box(&pod)).expect("a pod")
    });
}
