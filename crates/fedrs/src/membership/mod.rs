//! What makes a cluster a member: the objects on both sides, their names, and the kubeconfig that connects them.
//!
//! ```text
//! member: namespace, cluster role --owns--> account, bindings, role --token--.
//! host:   namespace, Secret with a kubeconfig of that account <--------------'  <-- MemberCluster
//! ```

pub(crate) mod cluster;
mod contents;
pub(crate) mod leave;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod sets;
pub(crate) mod stored;
