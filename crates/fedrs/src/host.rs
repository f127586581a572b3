//! How commands reach the host cluster.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use federation_controller::members::directory;
use kube::{Client, Config};
use membership::{
    cluster_client::{ClusterClient, Side},
    kubeconfig::Source,
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
        let source = Source {
            file: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        client(config(&source).await?)
    }

    /// The host, for one command.
    pub(crate) async fn cluster(&self) -> anyhow::Result<ClusterClient> {
        let source = Source {
            file: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        ClusterClient::new(Side::Host, config(&source).await?)
    }
}

/// Where the host cluster is, for commands that are about members, too.
#[derive(Args, Debug)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct HostOfMembers {
    /// Kubeconfig of the host cluster; without it $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE", visible_alias = "kubeconfig")]
    host_kubeconfig: Option<PathBuf>,
    /// Context of the host's kubeconfig
    #[arg(long, value_name = "NAME", visible_alias = "context")]
    host_context: Option<String>,
}

impl HostOfMembers {
    /// The host.
    pub(crate) async fn cluster(&self) -> anyhow::Result<ClusterClient> {
        let source = Source {
            file: self.host_kubeconfig.clone(),
            context: self.host_context.clone(),
        };
        ClusterClient::new(Side::Host, config(&source).await.context("host")?)
    }
}

/// The host of `source`; where nothing is said, in a pod, the cluster that it runs in.
async fn config(source: &Source) -> anyhow::Result<Config> {
    match source.read() {
        Ok(kubeconfig) => source.config(kubeconfig).await,
        Err(error) if source.file.is_some() || source.context.is_some() => Err(error),
        Err(error) => Config::incluster()
            .map_err(|_| anyhow!("no host cluster: give its kubeconfig ({error})")),
    }
}

/// A client of a member or the host must not repeat writes by itself.
fn client(mut config: kube::Config) -> anyhow::Result<Client> {
    directory::harden(&mut config);
    Ok(Client::try_from(config)?)
}
