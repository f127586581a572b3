//! `fedrs controller`: the product itself.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use clap::Args;
use federation_controller::{
    Controller,
    clock::Clock,
    config::Config,
    members::{MemberEvent, MemberSecrets, directory},
    metrics::Metrics,
};
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{host, server};

/// Members that may be told at once; more wait in the folder's watcher.
const MEMBER_EVENTS: usize = 64;

/// Run the federated controller: lay replicas out over the member clusters, and keep them there.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs controller --kubeconfig host.yaml --members members/
  fedrs controller --kubeconfig host.yaml --members members/ --config controller.yaml

The members folder holds one kubeconfig per member cluster, named after it: members/eu-1.yaml is member eu-1.
Files that are added or changed take effect at once; a removed one is a member lost, with its grace period.
A MemberCluster with spec.secretRef is a member as well: its kubeconfig is in that Secret of the controller's namespace.")]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    host: host::HostArgs,
    /// Folder of kubeconfigs, one per member cluster, named after it; beside those of MemberClusters that name a Secret
    #[arg(long, value_name = "DIR")]
    members: Option<PathBuf>,
    /// Configuration file; every default is stated in config/controller.yaml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The federation to handle: FederatedReplicaSets that name it in spec.federation (overrides the file)
    #[arg(long, value_name = "NAME")]
    federation: Option<String>,
    /// Address of /metrics, /healthz and /readyz
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    listen: String,
}

/// Runs the controller until a signal ends it.
pub(crate) async fn run(args: ControllerArgs) -> anyhow::Result<()> {
    let config = read_config(&args)?;
    let host = args.host.client().await?;
    let mut registry = Registry::with_prefix("fedrs");
    let metrics = Metrics::register(&mut registry);
    let cancel = CancellationToken::new();
    let server = server::Server::bind(&args.listen, Arc::new(registry)).await?;
    tracing::info!(address = %server.address(), "serving /metrics, /healthz and /readyz");
    let readiness = server.readiness();
    let serving = tokio::spawn(server.run(cancel.clone()));
    tokio::spawn(cancel_on_signal(cancel.clone()));

    let (events, members) = mpsc::channel(MEMBER_EVENTS);
    let watching = tokio::spawn(watch_members(args.members, events, cancel.clone()));
    let controller = Controller {
        host,
        members,
        secrets: MemberSecrets::default(),
        config,
        clock: Clock::system(),
        seed: seed(),
        metrics,
    };
    if let Some(running) = controller.start(cancel.clone()).await {
        tracing::info!("controller started");
        readiness.set(running.readiness());
        running.joined().await;
    }
    watching.await?;
    serving.await??;
    tracing::info!("controller ended");
    Ok(())
}

/// Tells of the folder's members; of none without a folder.
async fn watch_members(
    folder: Option<PathBuf>,
    events: mpsc::Sender<MemberEvent>,
    cancel: CancellationToken,
) {
    let Some(folder) = folder else {
        // Without a receiver there is nobody to be told.
        let _ = events.send(MemberEvent::Complete).await;
        return cancel.cancelled().await;
    };
    directory::watch(folder, events, cancel).await;
}

fn read_config(args: &ControllerArgs) -> anyhow::Result<Config> {
    let mut config = match &args.config {
        Some(path) => {
            let file = path.display();
            let text = std::fs::read_to_string(path).with_context(|| format!("{file}"))?;
            Config::parse(&text).with_context(|| format!("{file}"))?
        }
        None => Config::default(),
    };
    if let Some(federation) = &args.federation {
        config.federation.clone_from(federation);
    }
    Ok(config)
}

/// Spreads probes and pauses of controllers that start at the same time.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Ctrl-C and SIGTERM end everything in order.
pub(crate) async fn cancel_on_signal(cancel: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).expect("a handler can be installed");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler can be installed");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    cancel.cancel();
}

/// A client of a member or the host must not repeat writes by itself.
pub(crate) fn client(mut config: kube::Config) -> anyhow::Result<Client> {
    directory::harden(&mut config);
    Ok(Client::try_from(config)?)
}
