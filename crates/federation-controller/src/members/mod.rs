//! The members of the federation: which there are, how to reach them, and what they show.
//!
//! ```text
//! kubeconfig directory --MemberEvent---.
//! MemberClusters, Secrets -----Inbox---+--> Sources --resolve--> Members --> registry (read by checks)
//!                                                                  |  |  \--> an informer per member
//!                         clients of kubeconfigs <--Connection-----'  '-----> MemberClusters: status, by a writer each
//! ```

pub mod clients;
mod connection;
mod contact;
mod context;
pub mod directory;
mod inbox;
pub mod joined;
pub mod kubeconfig;
mod member_handle;
mod namespaces;
mod node_access;
mod outage;
mod recorded_outage;
mod registry;
mod renewal;
mod secret;
pub(crate) mod source_error;
mod sources;
mod status;
mod status_writer;
mod task;
mod token;

use std::sync::Arc;

use fedrs_api::names;

use self::kubeconfig::{Connect, Kubeconfig, KubeconfigError, OverNetwork};
pub use self::token::token_request;
pub(crate) use self::{
    context::Context,
    inbox::{Inbox, MemberClusterHandler, SecretHandler},
    namespaces::namespace_state,
    registry::Registry,
    secret::collection as kubeconfig_secrets,
    status_writer::PATH,
    task::Members,
};

/// A change of the kubeconfigs in the directory; or in Secrets, for a process that is not the controller of a federation.
#[derive(Clone)]
pub enum MemberEvent {
    /// The kubeconfig of a member was added or changed.
    Kubeconfig {
        /// The member's name.
        name: String,
        /// The file or the Secret, for messages: `file members/eu.yaml`.
        place: String,
        /// The kubeconfig; if it can't be used, a client of an earlier one stays in use.
        kubeconfig: Result<Kubeconfig, KubeconfigError>,
    },
    /// The kubeconfig was removed: the member is lost after its grace period.
    Gone {
        /// The member's name.
        name: String,
    },
    /// All files are gone at once, which is more often a mistake than the loss of everything: members without a Secret keep
    /// their kubeconfig (F36). Files that come back are reported again.
    Emptied,
    /// All kubeconfigs have been reported once.
    Complete,
}

/// Where kubeconfigs in Secrets are, and how clients are made from kubeconfigs.
#[derive(Clone)]
pub struct MemberSecrets {
    /// The controller's namespace on the host. No Secret of another one is ever read.
    pub namespace: String,
    /// Makes clients.
    pub connect: Arc<dyn Connect>,
}

impl MemberSecrets {
    /// Secrets of `namespace`, and clients that go over the network.
    #[must_use]
    pub fn of(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            connect: Arc::new(OverNetwork),
        }
    }
}

impl Default for MemberSecrets {
    /// Those of the usual namespace.
    fn default() -> Self {
        Self::of(names::SYSTEM_NAMESPACE)
    }
}
