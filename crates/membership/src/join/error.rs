//! Why a join fails.

use std::{io, time::Duration};

use super::{
    problem::{Problem, Problems},
    readiness::{Hint, Readiness},
};
use crate::{
    cluster_client::{ClientError, RequestError},
    kubeconfig::KubeconfigError,
    member_cluster::MemberClusterError,
    stored_kubeconfig::ConnectionError,
};

/// A join failed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The user's kubeconfig of the member can't be used.
    #[error("member: {0}")]
    MemberKubeconfig(KubeconfigError),
    /// The file with the member's certificate authority can't be read.
    #[error("member: failed to read {path}: {source}")]
    Authority {
        /// Its path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The controller can't connect to the member.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A client can't be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The preflight checks found problems. Nothing was changed.
    #[error("{}", Problems(.0))]
    Preflight(Vec<Problem>),
    /// The CRDs are not installed.
    #[error(
        "host: the CRDs of fedrs are not installed: run `fedrs crds | kubectl apply --server-side -f -`"
    )]
    CrdsMissing,
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The kubeconfig for the Secret can't be written.
    #[error("member: invalid kubeconfig for the member's Secret: {0}")]
    StoredKubeconfig(String),
    /// The MemberCluster can't be read.
    #[error(transparent)]
    MemberCluster(#[from] MemberClusterError),
    /// The controller does not use the member in time. All objects are in place.
    #[error(
        "{name} is not ready after {timeout:?}: {readiness}\n{hint}\n\
         All objects are in place: the member becomes ready when the problem is solved. Run the command again to wait."
    )]
    NotReady {
        /// The member.
        name: String,
        /// How long the operation waited.
        timeout: Duration,
        /// The state of the member.
        readiness: Box<Readiness>,
        /// What the user can do.
        hint: Hint,
    },
}
