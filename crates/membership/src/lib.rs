//! The member clusters of a federation: join, unjoin, cordon, uncordon, drain and uninstall. Also explain, which shows where
//! the replicas of a FederatedReplicaSet run and why.
//!
//! ```text
//! request --> operation --requests--> host and member clusters
//!                 |
//!                 '--> Progress and Warning, to a Reporter --> result, or a typed error
//! ```
//!
//! The operations use no terminal: the caller parses arguments, asks for confirmation, and prints the progress.

pub mod cluster_client;
pub mod controller_lease;
pub mod cordon;
pub mod drain;
pub mod explain;
pub mod join;
pub mod kubeconfig;
pub mod progress;
pub mod uninstall;
pub mod unjoin;

mod cleanup;
mod member_cluster;
mod membership;
mod messages;
mod names;
mod namespace_contents;
mod object;
mod replica_sets;
mod stored_kubeconfig;

pub use member_cluster::MemberClusterError;
pub use object::{ObjectRef, WriteMode};
pub use stored_kubeconfig::{ConnectionError, StoredKubeconfigError};
