//! The controllers of a cluster: Deployments get ReplicaSets, these get pods, pods get nodes, kubelets run them, and objects
//! without owners are collected.
//!
//! ```text
//! API --changes--> Index, then every controller's `observe` -> queues of keys, each with a time
//!  ^                                                               |
//!  '------ writes <- `work` on the key that is due first <---------'
//! ```
//!
//! One task drives all controllers. It observes every change before the next step, so that no controller decides on a stale
//! view. With the same seed and a paused clock the same things happen at the same simulated times. Controllers write through
//! the same API as all other clients and do not know HTTP.

mod claim;
mod context;
mod controller;
mod deployment;
mod disruption;
mod driver;
mod event_correlator;
mod event_expiry;
mod event_recorder;
mod garbage_collector;
mod index;
mod kubelet;
mod namespace;
mod node;
mod pod;
mod queue;
mod quota;
mod replicaset;
mod scheduler;
mod settings;
mod taints;

pub(crate) use driver::{Controllers, spawn};
pub use node::NodeSpec;
pub use settings::Settings;
