//! The reflector beside kube-runtime's watcher, on the same recorded API server: time and memory of a list of 10,000 pods
//! and 100,000 events, then what each does when the server is silent, or sends what it should not.
//!
//! ```console
//! $ cargo bench -p reflector --bench kube_runtime
//! ```

mod behavior;
#[path = "../../../cluster-informer/tests/pod_json/mod.rs"]
mod pod_json;
mod server;
mod throughput;
mod types;

#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

fn main() {
    behavior::run();
    throughput::run();
}
