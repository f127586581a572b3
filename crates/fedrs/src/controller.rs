//! `fedrs controller`: the product itself.
//!
//! ```text
//! standby --Lease won--> term: watchers of members, controller --lost, or signal--> joined --> standby, or the end
//! ```
//!
//! A standby watches nothing but the Lease: informers of its own would double the load on all clusters, and a
//! controller that starts anew has listed everything in about a second, where a takeover takes up to 15 s anyway.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use federation_controller::{
    Controller,
    clock::Clock,
    config::Config,
    election::{Candidacy, Elector, Fence, Term},
    members::{MemberEvent, MemberSecrets, directory},
    metrics::{ElectionMetrics, Metrics},
};
use fedrs_api::names;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{host, server, signals::cancel_on_signal};

/// Members that may be told at once; more wait in the folder's watcher.
const MEMBER_EVENTS: usize = 64;
/// What the names of all metrics begin with.
const METRICS_PREFIX: &str = "fedrs";
/// Where a pod finds the namespace of its ServiceAccount.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Run the federated controller: lay replicas out over the member clusters, and keep them there.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs controller --kubeconfig host.yaml --members members/
  fedrs controller --kubeconfig host.yaml --members members/ --config controller.yaml

The members folder holds one kubeconfig per member cluster, named after it: members/eu-1.yaml is member eu-1.
Files that are added or changed take effect at once; a removed one is a member lost, with its grace period.
A MemberCluster with spec.secretRef is a member as well: its kubeconfig is in that Secret of the controller's namespace.

Of several controllers of a federation one leads, by the Lease fedrs-controller on the host; the others stand by.")]
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
    /// The controller's namespace on the host, the same for all of a federation: its Lease and the members' Secrets are there. Made if it is missing.
    /// Without it the pod's own, or fedrs-system
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Whether to wait for the Lease before working (overrides the file, where it is on). Without it, nothing may keep
    /// a second controller from working at the same time
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// Address of /metrics, /healthz and /readyz
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    listen: String,
}

/// Runs the controller until a signal ends it.
pub(crate) async fn run(args: ControllerArgs) -> anyhow::Result<()> {
    let config = read_config(&args)?;
    let host = args.host.client().await?;
    let mut registry = Registry::with_prefix(METRICS_PREFIX);
    let metrics = ElectionMetrics::register(&mut registry);
    let cancel = CancellationToken::new();
    let server = server::Server::bind(&args.listen, registry).await?;
    tracing::info!(address = %server.address(), "serving /metrics, /healthz and /readyz");
    let process = Process {
        host,
        members: args.members,
        namespace: args.namespace.unwrap_or_else(own_namespace),
        config,
        shown: server.shown(),
    };
    let serving = tokio::spawn(server.run(cancel.clone()));
    tokio::spawn(cancel_on_signal(cancel.clone()));

    if process.config.leader_election.enabled {
        let elector = Elector::new(process.candidacy(metrics));
        process.shown.follow(elector.standing());
        elector.run(cancel, |term| process.lead(term)).await;
    } else {
        metrics.leader.set(1);
        let fence = Fence::open();
        process.lead(Term { fence, end: cancel }).await;
    }
    serving.await??;
    tracing::info!("controller ended");
    Ok(())
}

/// What stays the same from term to term.
struct Process {
    host: Client,
    members: Option<PathBuf>,
    /// Where the Lease and the members' Secrets are.
    namespace: String,
    config: Config,
    shown: server::Shown,
}

impl Process {
    /// One term. All is made anew: what was known in an earlier one is old.
    async fn lead(&self, term: Term) {
        let (events, members) = mpsc::channel(MEMBER_EVENTS);
        // Whatever tells of members. One that writes has its clients guarded by the term's fence.
        let sources = TaskTracker::new();
        sources.spawn(watch_members(
            self.members.clone(),
            events,
            term.end.clone(),
        ));
        sources.close();

        let mut registry = Registry::with_prefix(METRICS_PREFIX);
        let controller = Controller {
            host: self.host.clone(),
            members,
            secrets: MemberSecrets::of(&self.namespace),
            config: self.config.clone(),
            clock: Clock::system(),
            seed: seed(),
            metrics: Metrics::register(&mut registry),
            fence: term.fence,
        };
        if let Some(running) = controller.start(term.end).await {
            tracing::info!("controller started");
            self.shown.works(running.readiness(), registry);
            running.joined().await;
            self.shown.rests();
        }
        sources.wait().await;
    }

    fn candidacy(&self, metrics: ElectionMetrics) -> Candidacy {
        Candidacy {
            host: self.host.clone(),
            namespace: self.namespace.clone(),
            lease: lease_name(&self.config.federation),
            identity: identity(),
            timing: self.config.leader_election,
            clock: Clock::system(),
            seed: seed(),
            metrics,
        }
    }
}

/// The name of a federation's Lease, and of its Deployment: two federations on one host have their own.
pub(crate) fn lease_name(federation: &str) -> String {
    match federation {
        "" => names::CONTROLLER.to_owned(),
        name => format!("{}-{name}", names::CONTROLLER),
    }
}

/// The pod's namespace, or the usual one where this is no pod.
fn own_namespace() -> String {
    match std::fs::read_to_string(POD_NAMESPACE) {
        Ok(namespace) => namespace.trim().to_owned(),
        Err(_) => names::SYSTEM_NAMESPACE.to_owned(),
    }
}

/// The host's name, in a pod the pod's, for people; and a part that no other process has.
fn identity() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{host}_{}", uuid::Uuid::new_v4())
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
    if let Some(enabled) = args.leader_elect {
        config.leader_election.enabled = enabled;
    }
    config.validate()?;
    Ok(config)
}

/// Spreads probes and pauses of controllers that start at the same time.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn federations_have_a_lease_each_and_processes_an_identity() {
        assert_eq!(lease_name(""), "fedrs-controller");
        assert_eq!(lease_name("blue"), "fedrs-controller-blue");
        assert_ne!(identity(), identity());
    }
}
