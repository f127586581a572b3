//! A term of a controller of one cluster.

use std::sync::Arc;

use controller_base::{
    clock::Clock,
    election::{LeaderElectionConfig, Term},
};
use kube::Client;
use local_controller::{
    COMPONENT, LEASE, LocalController, LocalControllerConfig, LocalMetrics, Webhooks,
};
use prometheus_client::registry::Registry;

use crate::{elected::ElectedProcess, seed::random_seed, server::ServerState};

/// The election of the controller of a cluster.
pub(super) fn elected(
    client: Client,
    namespace: String,
    timing: LeaderElectionConfig,
) -> ElectedProcess {
    ElectedProcess {
        client,
        namespace,
        lease: LEASE.to_owned(),
        component: COMPONENT,
        timing,
    }
}

/// Runs the controller for one term. Nothing is reused from an earlier term: its data is outdated.
pub(super) async fn lead(
    client: Client,
    config: LocalControllerConfig,
    mut registry: Registry,
    term: Term,
    state: Arc<ServerState>,
) {
    let controller = LocalController {
        client,
        config,
        clock: Clock::system(),
        seed: random_seed(),
        webhooks: Webhooks::over_network(),
        metrics: LocalMetrics::register(&mut registry),
        fence: term.fence,
    };
    let running = controller.start(&term.end);
    state.serve_controller(running, registry).await;
}
