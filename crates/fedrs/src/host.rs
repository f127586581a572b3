//! How commands reach the host cluster.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Where the host cluster is.
#[derive(Args, Debug)]
pub(crate) struct HostArgs {
    /// Kubeconfig of the host cluster; without it $KUBECONFIG, ~/.kube/config, or the pod's own account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl HostArgs {
    /// The host of a kubeconfig file.
    pub(crate) fn of(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig: Some(kubeconfig),
            context: None,
        }
    }

    /// A client of the host.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &self.kubeconfig {
            Some(path) => {
                let file = path.display();
                let kubeconfig = Kubeconfig::read_from(path)
                    .with_context(|| format!("{file} is not a kubeconfig that can be used"))?;
                Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .with_context(|| format!("{file}"))?
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer()
                .await
                .context("no host cluster: give --kubeconfig")?,
        };
        crate::controller::client(config)
    }
}
