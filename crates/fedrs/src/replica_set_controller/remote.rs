//! `--remote`: controllers of LocalReplicaSets in clusters where nothing runs for them.
//!
//! ```text
//! directory of kubeconfigs --added, changed--> a controller for each cluster: elected there, with metrics labelled by cluster
//!                          \--removed--------> stopped
//! ```
//!
//! The controllers share nothing but the process: a cluster that can't be reached delays no other one.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use federation_controller::members::{
    MemberEvent, clients, directory,
    kubeconfig::{Kubeconfig, KubeconfigError},
};
use kube::Client;
use local_controller::LocalControllerConfig;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};

use super::term::{elected, lead};
use crate::{
    elected::{METRICS_PREFIX, Serving},
    server::ServerState,
};

/// Events of the directory that may be buffered; its watcher waits while the buffer is full.
const EVENTS: usize = 64;
/// Clients that may be buffered: the next one is made when this one is in use.
const CLIENTS: usize = 1;

/// What all controllers of the process have in common.
#[derive(Clone)]
pub(super) struct Remote {
    /// The directory of kubeconfigs.
    pub(super) directory: PathBuf,
    /// The namespace of the Lease in each cluster.
    pub(super) namespace: String,
    /// The name of this process in each election.
    pub(super) identity: String,
    /// The configuration of each controller.
    pub(super) config: LocalControllerConfig,
}

/// The controller of one cluster.
struct Controlled {
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Remote {
    /// Runs a controller for each cluster, until a signal stops the process.
    pub(super) async fn run(self, process: &Serving) {
        let (events, mut changes) = mpsc::channel(EVENTS);
        let cancel = process.cancel.clone();
        let watching = tokio::spawn(directory::watch(self.directory.clone(), events, cancel));
        let mut clusters = BTreeMap::new();
        // The watcher ends with the process.
        while let Some(event) = changes.recv().await {
            match event {
                MemberEvent::Kubeconfig {
                    name,
                    place,
                    kubeconfig: Ok(kubeconfig),
                } => {
                    let before = clusters.remove(&name);
                    let started = self.start(process, &name, place, kubeconfig, before);
                    clusters.insert(name, started);
                }
                MemberEvent::Kubeconfig {
                    name,
                    kubeconfig: Err(error),
                    ..
                } => {
                    tracing::warn!(cluster = name, %error, "invalid kubeconfig: an earlier one stays in use");
                }
                MemberEvent::Gone { name } => {
                    if let Some(controlled) = clusters.remove(&name) {
                        tracing::info!(cluster = name, "kubeconfig removed");
                        tokio::spawn(controlled.stop());
                    }
                }
                MemberEvent::Complete => process.state.serve_clusters(),
                // The kubeconfigs stay in use: this is more often a mistake than the loss of everything.
                MemberEvent::Emptied => {}
            }
        }
        for controlled in clusters.into_values() {
            controlled.stop().await;
        }
        let _ = watching.await;
    }

    /// Starts the controller of the cluster `name`, once the one `before` has stopped.
    fn start(
        &self,
        process: &Serving,
        name: &str,
        place: String,
        kubeconfig: Kubeconfig,
        before: Option<Controlled>,
    ) -> Controlled {
        let cancel = process.cancel.child_token();
        let (remote, state) = (self.clone(), Arc::clone(&process.state));
        let (cluster, end) = (name.to_owned(), cancel.clone());
        let running = async move {
            if let Some(before) = before {
                before.stop().await;
            }
            tracing::info!("kubeconfig added");
            let (sender, made) = mpsc::channel(CLIENTS);
            let connecting =
                clients::keep_connected(cluster.clone(), place.clone(), kubeconfig, sender);
            tokio::select! {
                () = connecting => {}
                () = remote.control(&cluster, &place, made, &state, end) => {}
            }
            state.remove_cluster(&cluster);
        };
        let span = info_span!("controller", cluster = name);
        let task = tokio::spawn(running.instrument(span));
        Controlled { cancel, task }
    }

    /// Runs the controller with the latest client, until `cancel`.
    async fn control(
        &self,
        cluster: &str,
        place: &str,
        mut clients: mpsc::Receiver<Result<Client, KubeconfigError>>,
        state: &ServerState,
        cancel: CancellationToken,
    ) {
        let mut next = cancel
            .run_until_cancelled(next_client(place, &mut clients))
            .await;
        while let Some(client) = next.take() {
            let end = cancel.child_token();
            let running = self.run_with(cluster, client, state, end.clone());
            tokio::pin!(running);
            tokio::select! {
                () = &mut running => return,
                client = next_client(place, &mut clients) => next = Some(client),
            }
            end.cancel();
            running.await;
        }
    }

    /// Runs the controller with this client.
    async fn run_with(
        &self,
        cluster: &str,
        client: Client,
        state: &ServerState,
        cancel: CancellationToken,
    ) {
        let label = || ("cluster".into(), cluster.to_owned().into());
        let registry = || {
            prometheus_client::registry::Registry::with_prefix_and_labels(
                METRICS_PREFIX,
                [label()].into_iter(),
            )
        };
        let timing = self.config.leader_election;
        let own = Arc::new(ServerState::new(registry(), timing.lease_duration));
        state.add_cluster(cluster, Arc::clone(&own));
        let process = elected(client.clone(), self.namespace.clone(), timing);
        let mut config = self.config.clone();
        cluster.clone_into(&mut config.migration.notify.cluster);
        let lead = |term, state| lead(client.clone(), config.clone(), registry(), term, state);
        process
            .elect(self.identity.clone(), &own, cancel, lead)
            .await;
    }
}

impl Controlled {
    /// Stops it. It releases its Lease.
    async fn stop(self) {
        self.cancel.cancel();
        // A panic ends the process.
        let _ = self.task.await;
    }
}

/// The next client that could be made. Never ends without one.
async fn next_client(
    place: &str,
    clients: &mut mpsc::Receiver<Result<Client, KubeconfigError>>,
) -> Client {
    loop {
        match clients.recv().await {
            Some(Ok(client)) => return client,
            Some(Err(error)) => {
                tracing::warn!(place, %error, "failed to make a client");
            }
            None => std::future::pending().await,
        }
    }
}
