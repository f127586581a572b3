//! Kubeconfigs as users give them: a file or the usual places, and one context of it. Everything kube supports.

use std::path::PathBuf;

use anyhow::anyhow;
use federation_controller::members::kubeconfig::{Kubeconfig, KubeconfigError};
use kube::Config;

/// Which context of which kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file; without one $KUBECONFIG, or ~/.kube/config.
    pub file: Option<PathBuf>,
    /// The context; without one the current context.
    pub context: Option<String>,
}

impl Source {
    /// Reads it.
    pub fn read(&self) -> anyhow::Result<Kubeconfig> {
        let read = Kubeconfig::read_from(self.file.as_deref(), self.context.as_deref());
        read.map_err(|error| match error {
            // It names the file itself, which of several it may be.
            KubeconfigError::Unreadable { .. } => error.into(),
            error => self.cannot_be_used(&error.to_string()),
        })
    }

    /// How to reach the cluster of `kubeconfig`, which was read from here.
    pub async fn config(&self, kubeconfig: Kubeconfig) -> anyhow::Result<Config> {
        let config = kubeconfig.config().await;
        config.map_err(|why| self.cannot_be_used(&why))
    }

    fn cannot_be_used(&self, why: &str) -> anyhow::Error {
        match &self.file {
            Some(path) => anyhow!("{} can't be used: {why}", path.display()),
            None => anyhow!("the kubeconfig can't be used: {why}"),
        }
    }
}
