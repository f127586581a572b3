use std::fmt;

/// The two types of clusters in a federation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterType {
    /// The cluster with the FederatedReplicaSets.
    Host,
    /// A cluster that runs replicas.
    Member,
}

impl fmt::Display for ClusterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Host => "host",
            Self::Member => "member",
        })
    }
}
