//! Which clusters are members of a federation: join, unjoin, cordon, drain and uninstall; and explain, which says what
//! became of a FederatedReplicaSet there. All without a terminal.
//!
//! ```text
//! member: namespace, cluster role --owns--> account, bindings, role --token--.
//! host:   namespace, Secret with a kubeconfig of that account <--------------'  <-- MemberCluster
//! ```

pub mod cluster_client;
pub mod cordon;
pub mod drain;
pub mod explain;
pub mod join;
pub mod kubeconfig;
pub mod say;
pub mod uninstall;
pub mod unjoin;

mod cleanup;
mod leader;
mod local_sets;
mod member_cluster;
mod member_kubeconfig;
mod membership;
mod names;
mod namespace_contents;
mod object;
