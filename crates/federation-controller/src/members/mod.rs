//! The members of the federation: which there are, how to reach them, and what they show.
//!
//! ```text
//! folder of kubeconfigs --MemberEvent--> Members --> registry (read by checks)
//! MemberCluster objects ---------------->   |   \--> an informer per member
//!                                           '------> MemberCluster objects and their status
//! ```

pub mod directory;
mod objects;
mod registry;

pub(crate) use registry::Registry;

use kube::Client;

/// What became of a member's kubeconfig.
#[derive(Clone)]
pub enum MemberEvent {
    /// It is there, or was changed.
    Present {
        /// The member's name.
        name: String,
        /// Reaches it; without a retry of its own.
        client: Client,
    },
    /// It is there and can't be used: what runs there is left as it is.
    Broken {
        /// The member's name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// It is gone: the member is lost, after its grace period.
    Gone {
        /// The member's name.
        name: String,
    },
    /// All that is there has been told once.
    Complete,
}
