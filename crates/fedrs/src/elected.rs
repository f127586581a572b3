//! A process that serves its state, and works while it leads.
//!
//! ```text
//! standby --Lease acquired--> term: a controller --Lease lost or signal--> stopped --> standby or exit
//! ```

use std::{net::TcpListener, sync::Arc, thread::JoinHandle};

use anyhow::Context;
use clap::Args;
use controller_base::{
    clock::Clock,
    election::{ElectionMetrics, Elector, Fence, LeaderElectionConfig, LeaderElectorConfig, Term},
    watchdog::Watchdog,
};
use fedrs_api::names;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::{
    seed::random_seed,
    server::{ServerState, heartbeat, serve},
    signals::cancel_on_signal,
    values,
};

/// The prefix of all metrics.
pub(crate) const METRICS_PREFIX: &str = "fedrs";
/// The file with the namespace of a pod's ServiceAccount.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The environment variable with the uid of the pod.
const POD_UID: &str = "POD_UID";

/// The options of such a process.
#[derive(Args, Debug)]
pub(crate) struct ElectedArgs {
    /// Acquire the Lease before doing anything (overrides the configuration file; enabled by default). If disabled, make sure that
    /// no second controller runs at the same time
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) leader_elect: Option<bool>,
    /// Name of this process in the leader election, for a supervisor that runs one process with this name at a time: a process that
    /// is started again does not wait for its own Lease. By default the uid of the pod (environment variable `POD_UID`), or a random
    /// name outside a pod
    #[arg(long, value_name = "NAME", value_parser = values::identity)]
    identity: Option<String>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
}

/// Where the process serves its state.
#[derive(Args, Debug)]
pub(crate) struct ListenArgs {
    /// Address to serve /metrics, /healthz and /readyz on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    listen: String,
}

/// A process of which one of several leads.
pub(crate) struct ElectedProcess {
    /// The cluster with the Lease. The client does not retry.
    pub(crate) client: Client,
    /// The namespace of the Lease.
    pub(crate) namespace: String,
    /// The name of the Lease.
    pub(crate) lease: String,
    /// Who reports events about the Lease.
    pub(crate) component: &'static str,
    /// The leader election.
    pub(crate) timing: LeaderElectionConfig,
}

/// A process that serves its state until a signal stops it.
pub(crate) struct Serving {
    /// What it serves.
    pub(crate) state: Arc<ServerState>,
    /// Cancelled by the signal.
    pub(crate) cancel: CancellationToken,
    server: JoinHandle<()>,
}

impl Serving {
    /// Serves `state` on the address of `args`. A port in use fails the process before anything starts.
    pub(crate) fn start(args: &ListenArgs, state: ServerState) -> anyhow::Result<Self> {
        let cancel = CancellationToken::new();
        let listener = TcpListener::bind(&args.listen);
        let listener = listener.with_context(|| format!("--listen={}", args.listen))?;
        tracing::info!(address = %listener.local_addr()?, "serving /metrics, /healthz and /readyz");
        let state = Arc::new(state);
        let server = serve(listener, Arc::clone(&state), cancel.clone())?;
        tokio::spawn(heartbeat(state.watchdog.watch("runtime")));
        tokio::spawn(cancel_on_signal(cancel.clone()));
        Ok(Self {
            state,
            cancel,
            server,
        })
    }

    /// Waits, after the signal, until nothing is served any more.
    pub(crate) fn end(self) {
        // It ends at once, and a panic was logged.
        let _ = self.server.join();
        tracing::info!("stopped");
    }
}

impl ElectedArgs {
    /// The name of this process in the leader election.
    pub(crate) fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(own_identity)
    }
}

impl ElectedProcess {
    /// Runs `lead` in each term, until a signal stops the process.
    pub(crate) async fn run<W: Future<Output = ()>>(
        self,
        args: ElectedArgs,
        lead: impl FnMut(Term, Arc<ServerState>) -> W,
    ) -> anyhow::Result<()> {
        let registry = Registry::with_prefix(METRICS_PREFIX);
        let state = ServerState::new(registry, self.timing.lease_duration);
        let serving = Serving::start(&args.listen, state)?;
        self.elect(
            args.identity(),
            &serving.state,
            serving.cancel.clone(),
            lead,
        )
        .await;
        serving.end();
        Ok(())
    }

    /// Runs `lead` in each term, until `cancel`, and reports to `state`.
    pub(crate) async fn elect<W: Future<Output = ()>>(
        self,
        identity: String,
        state: &Arc<ServerState>,
        cancel: CancellationToken,
        mut lead: impl FnMut(Term, Arc<ServerState>) -> W,
    ) {
        let metrics = state.election_metrics.clone();
        if self.timing.enabled {
            let elector = self.elector(identity, metrics, state.watchdog.clone());
            state.election.get_or_init(|| elector.state());
            elector
                .run(cancel, |term| lead(term, Arc::clone(state)))
                .await;
        } else {
            metrics.leader.set(1);
            let fence = Fence::unelected();
            lead(Term { fence, end: cancel }, Arc::clone(state)).await;
        }
    }

    fn elector(self, identity: String, metrics: ElectionMetrics, watchdog: Watchdog) -> Elector {
        Elector::new(LeaderElectorConfig {
            host: self.client,
            namespace: self.namespace,
            lease: self.lease,
            component: self.component,
            identity,
            timing: self.timing,
            clock: Clock::system(),
            seed: random_seed(),
            metrics,
            watchdog,
        })
    }
}

/// The pod's namespace, or the default outside a pod.
pub(crate) fn own_namespace() -> String {
    match std::fs::read_to_string(POD_NAMESPACE) {
        Ok(namespace) => namespace.trim().to_owned(),
        Err(_) => names::SYSTEM_NAMESPACE.to_owned(),
    }
}

/// The name of this process in the leader election. A container that restarts has the name of the one before.
pub(crate) fn own_identity() -> String {
    let pod_uid = std::env::var(POD_UID).ok();
    unique_identity(pod_uid.filter(|uid| values::identity(uid).is_ok()))
}

/// The host name, which is the pod's name in a pod, and the uid of the pod, or else a random part.
fn unique_identity(pod_uid: Option<String>) -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let unique = pod_uid.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    format!("{host}_{unique}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_container_has_the_same_identity_and_other_processes_have_their_own() {
        assert_ne!(unique_identity(None), unique_identity(None));
        let uid = || Some("6f2c".to_owned());
        assert_eq!(unique_identity(uid()), unique_identity(uid()));
    }
}
