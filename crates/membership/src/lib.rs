//! The member clusters of a federation: join, unjoin, cordon, uncordon, drain and uninstall. Also explain, which shows where
//! the replicas of a FederatedReplicaSet or FederatedDeployment run and why, plan, which shows where they would move, the rollouts of
//! FederatedDeployments and LocalReplicaSets, requests to evict or migrate pods of the latter, rolling updates from one of them to another, and planned work on nodes.
//!
//! ```text
//! request --> operation --requests--> host and member clusters
//!                 |
//!                 '--> Progress and Warning, to a Reporter --> result, or an Error
//! ```
//!
//! The operations use no terminal: the caller parses arguments, asks for confirmation, and prints the progress.

pub mod availability;
pub mod cluster_client;
pub mod controller_lease;
pub mod cordon;
pub mod drain;
pub mod eviction;
pub mod explain;
pub mod explain_migration;
pub mod join;
pub mod kubeconfig;
pub mod maintenance;
pub mod migration;
pub mod migration_watch;
pub mod plan;
pub mod progress;
pub mod rolling_update;
pub mod rollout;
pub mod uninstall;
pub mod unjoin;

mod cleanup;
mod discovery_account;
mod error;
mod federated_set;
mod local_kind;
mod local_workloads;
mod member_cluster;
mod membership;
mod namespace_contents;
mod object;
mod polling;
mod read_set;
mod replica_set_controller;
mod set_ref;
mod stored_kubeconfig;

pub use error::Error;
pub use object::{ObjectRef, WriteMode};
pub use read_set::{FederatedSet, ValidSet};
pub use set_ref::SetRef;
