//! Kubeconfigs as users pass them: a file or the default locations, and one context. Supports everything that kube does.

use std::path::PathBuf;

use federation_controller::members::kubeconfig as controller;
use kube::Config;

/// Which context of which kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigSource {
    /// The file; `None` for $KUBECONFIG or ~/.kube/config.
    pub file: Option<PathBuf>,
    /// The context; `None` for the current context.
    pub context: Option<String>,
}

/// A kubeconfig can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// A file can't be read.
    #[error("{0}")]
    Read(controller::KubeconfigError),
    /// The content of the file that the user named, or of the kubeconfig in the default locations, is invalid.
    #[error("invalid kubeconfig{file}: {reason}")]
    Invalid {
        /// The path of the file after a space; empty for the default locations.
        file: String,
        /// What is wrong.
        reason: controller::KubeconfigError,
    },
}

impl KubeconfigSource {
    /// Whether it names neither a file nor a context.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.file.is_none() && self.context.is_none()
    }

    /// Reads the kubeconfig.
    pub fn read(&self) -> Result<controller::Kubeconfig, KubeconfigError> {
        let kubeconfig =
            controller::Kubeconfig::read_from(self.file.as_deref(), self.context.as_deref());
        kubeconfig.map_err(|error| match error {
            // It names the file: the kubeconfig may consist of several.
            controller::KubeconfigError::Unreadable { .. } => KubeconfigError::Read(error),
            reason => self.invalid(reason),
        })
    }

    /// The client configuration for the cluster of `kubeconfig`, which was read from this source.
    pub async fn config(
        &self,
        kubeconfig: controller::Kubeconfig,
    ) -> Result<Config, KubeconfigError> {
        let config = kubeconfig.config().await;
        config.map_err(|reason| self.invalid(reason))
    }

    fn invalid(&self, reason: controller::KubeconfigError) -> KubeconfigError {
        let file = self.file.as_ref();
        let file = file.map_or_else(String::new, |file| format!(" {}", file.display()));
        KubeconfigError::Invalid { file, reason }
    }
}
