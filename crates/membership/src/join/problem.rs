//! Problems that the preflight checks of a join find.

use fedrs_api::ClusterType;

use super::permissions::Permission;
use crate::cluster_client::RequestError;

/// The oldest supported Kubernetes, major and minor: it has all APIs that fedrs uses.
pub(super) const OLDEST_VERSION: (u32, u32) = (1, 32);

/// Why a join can't succeed.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A cluster does not answer.
    #[error(transparent)]
    Unreachable(RequestError),
    /// A cluster is too old.
    #[error(
        "{cluster}: unsupported version {version}: fedrs requires Kubernetes {}.{} or later",
        OLDEST_VERSION.0, OLDEST_VERSION.1
    )]
    UnsupportedVersion {
        /// Which cluster.
        cluster: ClusterType,
        /// Its version.
        version: String,
    },
    /// The version of a cluster is unknown.
    #[error("{cluster}: failed to parse the version {version:?}")]
    UnknownVersion {
        /// Which cluster.
        cluster: ClusterType,
        /// Its version.
        version: String,
    },
    /// The user lacks a permission.
    #[error("{0}")]
    Forbidden(Box<Permission>),
    /// The name belongs to a member of another federation.
    #[error("member {name} belongs to {}: use another name, or set --federation", federation_name(.federation))]
    OtherFederation {
        /// The name.
        name: String,
        /// The federation; empty for the one without a name.
        federation: String,
    },
    /// The cluster is a member under another name.
    #[error("the cluster is already a member with the name {0}: run `fedrs unjoin {0}` first")]
    AlreadyMember(String),
    /// The name belongs to another cluster.
    #[error("member {0} is another cluster: use another name, or run `fedrs unjoin {0}` first")]
    OtherCluster(String),
    /// The namespace is terminating.
    #[error("{cluster}: namespace/{namespace} is terminating: try again after its deletion")]
    NamespaceTerminating {
        /// Which cluster.
        cluster: ClusterType,
        /// The namespace.
        namespace: String,
    },
    /// The member has a kubeconfig in another Secret.
    #[error(
        "membercluster/{name} refers to secret/{secret}, which fedrs join did not create: remove spec.secretRef, or use \
         another name"
    )]
    OtherSecret {
        /// The member.
        name: String,
        /// The Secret.
        secret: String,
    },
    /// The member has a kubeconfig file.
    #[error(
        "member {0} has a kubeconfig in the --members directory of the controller: remove that file first"
    )]
    FileMember(String),
    /// Join did not create the Secret that it would use.
    #[error(
        "secret/{name} in namespace {namespace} was not created by fedrs join: delete it, or use another name"
    )]
    ForeignSecret {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
}

fn federation_name(name: &str) -> String {
    match name {
        "" => "the federation without a name".to_owned(),
        name => format!("the federation {name}"),
    }
}

/// All problems of a join as one text.
pub(crate) fn list(problems: &[Problem]) -> String {
    let listed = match problems {
        [problem] => problem.to_string(),
        problems => {
            let lines = problems.iter().map(|problem| format!("\n  {problem}"));
            format!("the cluster can't join:{}", lines.collect::<String>())
        }
    };
    format!("{listed}\nNo changes were made.")
}
