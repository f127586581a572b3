//! How commands connect to their cluster, which is the host for most.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use federation_controller::members::directory;
use fedrs_api::ClusterType;
use kube::{Client, Config};
use membership::{cluster_client::ClusterClient, kubeconfig::KubeconfigSource};

/// The options for the host cluster. Commands with subcommands take them before and after these.
#[derive(Args, Debug)]
pub(crate) struct HostArgs {
    /// Kubeconfig of the host cluster. By default $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig. By default the current context
    #[arg(long, value_name = "NAME", global = true)]
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

    /// Whether an option names the cluster.
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// A client for the controller. It does not retry writes: the controller decides what to repeat.
    pub(crate) async fn controller_client(self) -> anyhow::Result<Client> {
        controller_client(self.source()).await
    }

    /// A client for a command.
    pub(crate) async fn client(self) -> anyhow::Result<ClusterClient> {
        client(self.source()).await
    }

    /// A client for a command about a cluster of LocalReplicaSets, with the same options.
    pub(crate) async fn member_client(self) -> anyhow::Result<ClusterClient> {
        member_client(self.source()).await
    }

    fn source(self) -> KubeconfigSource {
        KubeconfigSource {
            file: self.kubeconfig,
            context: self.context,
        }
    }
}

/// A client for a controller of a cluster. It does not retry writes: the controller decides what to repeat.
async fn controller_client(source: KubeconfigSource) -> anyhow::Result<Client> {
    let mut config = config(source).await?;
    directory::harden(&mut config);
    Ok(Client::try_from(config)?)
}

/// The options for the cluster of LocalReplicaSets. Commands with subcommands take them before and after these.
#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig of the cluster. By default $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig. By default the current context
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

impl ClusterArgs {
    /// A client for the controller, as [`HostArgs::controller_client`].
    pub(crate) async fn controller_client(self) -> anyhow::Result<Client> {
        controller_client(self.source()).await
    }

    /// A client for a command.
    pub(crate) async fn client(self) -> anyhow::Result<ClusterClient> {
        member_client(self.source()).await
    }

    fn source(self) -> KubeconfigSource {
        KubeconfigSource {
            file: self.kubeconfig,
            context: self.context,
        }
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
    pub(crate) async fn client(self) -> anyhow::Result<ClusterClient> {
        client(KubeconfigSource {
            file: self.host_kubeconfig,
            context: self.host_context,
        })
        .await
    }
}

async fn member_client(source: KubeconfigSource) -> anyhow::Result<ClusterClient> {
    let config = config(source).await?;
    Ok(ClusterClient::new(ClusterType::Member, config)?)
}

async fn client(source: KubeconfigSource) -> anyhow::Result<ClusterClient> {
    let config = config(source).await.context("host")?;
    Ok(ClusterClient::new(ClusterType::Host, config)?)
}

/// The configuration of `source`; if that is the default and has no kubeconfig, of the cluster that runs this pod.
async fn config(source: KubeconfigSource) -> anyhow::Result<Config> {
    match source.read() {
        Ok(kubeconfig) => Ok(source.config(kubeconfig).await?),
        Err(error) if !source.is_default() => Err(error.into()),
        Err(error) => {
            Config::incluster().map_err(|_| anyhow!("no kubeconfig: set --kubeconfig ({error})"))
        }
    }
}
