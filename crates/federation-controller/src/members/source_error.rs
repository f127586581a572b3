//! Why the source of a member's kubeconfig can't be used.

use fedrs_api::{MemberReason, names};

use super::kubeconfig::KubeconfigError;

/// Why the source of a member's kubeconfig can't be used. The texts are messages of the condition Ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SourceError {
    /// The kubeconfig can't be used. A client of an earlier one stays in use.
    #[error("{place}: {error}")]
    Invalid {
        /// The file or the Secret.
        place: String,
        error: KubeconfigError,
    },
    /// The Secret does not exist: its credentials are not used any more.
    #[error(
        "{place} does not exist, or its type is not {}",
        names::KUBECONFIG_TYPE
    )]
    SecretMissing { place: String },
    /// The controller may not read Secrets.
    #[error("{place} can't be read: {error}")]
    SecretsForbidden {
        place: String,
        error: SecretsForbidden,
    },
    /// The member has two kubeconfigs. A client of an earlier one stays in use.
    #[error(
        "{file} and {secret}, which spec.secretRef names, both hold the kubeconfig: remove one of them"
    )]
    Duplicate { file: String, secret: String },
}

/// The controller may not read Secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller may not read Secrets of namespace {namespace}: {response}")]
pub(crate) struct SecretsForbidden {
    pub(crate) namespace: String,
    /// The response of the host.
    pub(crate) response: String,
}

impl SourceError {
    /// The reason of the condition Ready.
    pub(super) fn reason(&self) -> MemberReason {
        match self {
            Self::Invalid { .. } => MemberReason::InvalidKubeconfig,
            Self::SecretMissing { .. } | Self::SecretsForbidden { .. } => {
                MemberReason::SecretMissing
            }
            Self::Duplicate { .. } => MemberReason::DuplicateSource,
        }
    }

    /// Whether the credentials in use were withdrawn: the member is not watched any more.
    pub(super) fn withdraws_credentials(&self) -> bool {
        self.reason() == MemberReason::SecretMissing
    }
}
