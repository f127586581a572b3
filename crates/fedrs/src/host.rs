//! How commands connect to the host cluster.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use federation_controller::members::directory;
use kube::{Client, Config};
use membership::{
    cluster_client::{ClusterClient, Side},
    kubeconfig::Source,
};

/// The options for the host cluster.
#[derive(Args, Debug)]
pub(crate) struct HostArgs {
    /// Kubeconfig of the host cluster. By default $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig. By default the current context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl HostArgs {
    /// The host cluster of a kubeconfig file.
    #[cfg(feature = "demo")]
    pub(crate) fn of(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig: Some(kubeconfig),
            context: None,
        }
    }

    /// A client for the controller.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let source = Source {
            file: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        client(config(&source).await?)
    }

    /// A client for a command.
    pub(crate) async fn cluster(&self) -> anyhow::Result<ClusterClient> {
        let source = Source {
            file: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        ClusterClient::new(Side::Host, config(&source).await?)
    }
}

/// The options for the host cluster, in commands that have options for a member as well.
#[derive(Args, Debug)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct HostOfMembers {
    /// Kubeconfig of the host cluster. By default $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", visible_alias = "kubeconfig")]
    host_kubeconfig: Option<PathBuf>,
    /// Context in the host's kubeconfig. By default the current context
    #[arg(long, value_name = "NAME", visible_alias = "context")]
    host_context: Option<String>,
}

impl HostOfMembers {
    /// A client for a command.
    pub(crate) async fn cluster(&self) -> anyhow::Result<ClusterClient> {
        let source = Source {
            file: self.host_kubeconfig.clone(),
            context: self.host_context.clone(),
        };
        ClusterClient::new(Side::Host, config(&source).await.context("host")?)
    }
}

/// The configuration of `source`; if that is empty and this is a pod, of the cluster that runs the pod.
async fn config(source: &Source) -> anyhow::Result<Config> {
    match source.read() {
        Ok(kubeconfig) => source.config(kubeconfig).await,
        Err(error) if source.file.is_some() || source.context.is_some() => Err(error),
        Err(error) => {
            Config::incluster().map_err(|_| anyhow!("no host cluster: set --kubeconfig ({error})"))
        }
    }
}

/// A client that does not retry writes: the controller decides what to repeat.
fn client(mut config: kube::Config) -> anyhow::Result<Client> {
    directory::harden(&mut config);
    Ok(Client::try_from(config)?)
}
