//! What is known of one member cluster: local workloads and pods as counts, health, version and nodes.
//!
//! ```text
//! list + watch local ReplicaSets --.
//! list + watch pods -------------+--> one task owns the state --> ClusterStore (read by key) --> check
//! probe of /readyz --------------+                            \-> ChangeHandler: which workload to check, and why
//! list + watch nodes, version ---+
//! list + watch Deployments,    --+
//!      LocalReplicaSets ---------' once somebody asks for them
//! ```
//!
//! A local workload is a ReplicaSet, a Deployment or a LocalReplicaSet; all have the same state, and keys of different kinds. Each
//! kind has a watch, a table and a sync state of its own, so that one that a member does not show, or does not have, leaves the
//! others as they are.
//!
//! Knows workloads by a key and the labels of a federation; nothing of the spec of federated sets, or of layouts.

mod change;
mod cluster_info;
mod cluster_store;
mod cluster_version;
mod deployment;
mod deployment_state;
mod deployment_strategy;
#[cfg(test)]
mod fuzz_tests;
mod handlers;
mod health;
mod informer;
mod local_replica_set;
mod member_view;
mod metadata;
mod metrics;
mod node_leases;
mod nodes;
mod owned_sets;
mod owners;
pub mod pod;
pub mod pod_table;
mod pod_template;
pub mod probe;
mod replica_set;
mod rolling_spec;
mod scale_requests;
mod server_clock;
mod spec_hash;
mod store;
mod sync_state;
mod tombstones;
mod unix_seconds;
mod watch_state;
mod workload;
mod workload_conditions;
mod workload_metadata;
mod workload_status;
mod workload_table;

pub use change::{ChangeHandler, WorkloadChange};
pub use cluster_info::{ClusterInfo, NodeInfo, NodeTotals};
pub use cluster_store::{ClusterStore, WatchScope};
pub use cluster_version::ClusterVersionSettings;
pub use deployment::DeploymentObject;
pub use deployment_state::{
    DeploymentState, LocalSetState, LocalSettings, LocalSpeed, OwningDeployment, Progressing,
    RolloutStrategy,
};
pub use health::Health;
pub use informer::{InformerSettings, MemberInformer};
pub use local_replica_set::LocalReplicaSetObject;
pub use member_view::{MemberView, UnreadNamespace, WorkloadTotals};
pub use metrics::InformerMetrics;
pub use node_leases::NodeLeaseSettings;
pub use owners::PodOwner;
pub use probe::ProbeSettings;
pub use server_clock::ServerClock;
pub use spec_hash::spec_hash;
pub use store::Clock;
pub use sync_state::SyncState;
pub use workload::{Deletion, PodCounts, ReplicaFailure, WorkloadState, WorkloadView};
