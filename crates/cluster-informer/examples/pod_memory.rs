//! Resident bytes per pod: `cargo run --release -p cluster-informer --example pod_memory [PODS]`.
//! Needs `/proc`, so it runs on Linux alone.

use cluster_informer::pod_table::PodTable;
use jiff::Timestamp;

#[path = "../tests/pod_json/mod.rs"]
mod pod_json;

/// Pods per local ReplicaSet.
const PER_SET: u32 = 50;

fn main() {
    let pods: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(100_000), |pods| pods.parse())
        .expect("a number of pods");
    let before = resident_bytes();
    let mut table = PodTable::default();
    for pod in 0..pods {
        let json = if pod % 10 == 0 {
            pod_json::unscheduled(pod, pod / PER_SET, 1)
        } else {
            pod_json::running(pod, pod / PER_SET, 1)
        };
        table.apply(
            serde_json::from_str(&json).expect("a pod"),
            Timestamp::now(),
        );
    }
    let bytes = resident_bytes() - before;
    println!(
        "{} pods in {bytes} bytes: {} each",
        table.len(),
        bytes / u64::from(pods)
    );
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("the resident size is there");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("in kB");
    kilobytes * 1024
}
