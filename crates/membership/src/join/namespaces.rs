//! The namespaces of a member that a join is for.

use crate::{
    cluster_client::{ClusterClient, RequestError},
    member_cluster,
};

/// In which namespaces of a member the controller gets permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JoinNamespaces {
    /// In those in which it has permissions; in all of a new member.
    #[default]
    Unchanged,
    /// In all.
    All,
    /// In these.
    Listed(Vec<String>),
}

impl JoinNamespaces {
    /// The list of namespaces for the member `name`; `None` for all.
    pub(super) async fn resolve(
        &self,
        host: &ClusterClient,
        name: &str,
    ) -> Result<Option<Vec<String>>, RequestError> {
        match self {
            Self::All => Ok(None),
            Self::Listed(names) => Ok(Some(names.clone())),
            Self::Unchanged => match member_cluster::find(host, name).await {
                // The preflight checks report both.
                Err(error) if matches!(error.code(), Some(403 | 404)) => Ok(None),
                member => Ok(member?.as_ref().and_then(member_cluster::listed_namespaces)),
            },
        }
    }
}
