//! The candidates of the controller, which take part in its election.

use std::sync::Arc;

use federation_controller::{
    clock::Clock,
    election::{ElectionMetrics, Elector, Fence, LeaderElectionConfig, LeaderElectorConfig},
    watchdog::Watchdog,
};
use fedrs_api::names;
use kube::Client;
use local_controller::{
    COMPONENT, LEASE, LocalController, LocalControllerConfig, LocalMetrics, Webhooks,
};
use sim_cluster::SimCluster;
use tokio_util::sync::CancellationToken;

use super::recorder::{Recorder, Writer};
use crate::{
    connect::client_of,
    crash::{CrashableService, Lifetime},
    run::{Process, Slots},
    suspension::Suspension,
};

/// The token of the controller's account.
pub(super) const TOKEN: &str = "of-the-controller";

/// What the controllers of one process are made of.
#[derive(Clone)]
struct Parts {
    client: Client,
    clock: Clock,
    seed: u64,
}

/// Starts a candidate that does not run.
pub(super) fn start(
    slots: &mut Slots<()>,
    number: usize,
    cluster: &SimCluster,
    (clock, seed): (Clock, u64),
    recorder: &Recorder,
) {
    let process = Slots::<()>::name(number);
    let lifetime = Lifetime::observed(Arc::new(Writer {
        process: process.clone(),
        recorder: recorder.clone(),
    }));
    let service = CrashableService::new(cluster, &lifetime);
    let client = client_of(TOKEN, service).expect("the token is a valid header");
    let parts = Parts {
        client,
        clock,
        seed,
    };
    let (cancel, suspension) = (CancellationToken::new(), Suspension::default());
    let elector = elector(&parts, process, number as u64);
    let election = elector.run(cancel.clone(), move |term| {
        work(parts.clone(), term.fence, term.end)
    });
    let task = tokio::spawn(suspension.clone().around(election));
    let process = Process {
        lifetime,
        cancel,
        task,
        suspension,
        parts: (),
    };
    slots.put(number, process);
}

fn elector(parts: &Parts, identity: String, seed: u64) -> Elector {
    Elector::new(LeaderElectorConfig {
        host: parts.client.clone(),
        namespace: names::SYSTEM_NAMESPACE.to_owned(),
        lease: LEASE.to_owned(),
        component: COMPONENT,
        identity,
        timing: LeaderElectionConfig::default(),
        clock: parts.clock.clone(),
        seed,
        metrics: ElectionMetrics::default(),
        watchdog: Watchdog::default(),
    })
}

/// Runs a controller until `cancel`.
async fn work(parts: Parts, fence: Fence, cancel: CancellationToken) {
    let controller = LocalController {
        client: parts.client,
        config: LocalControllerConfig::default(),
        clock: parts.clock,
        seed: parts.seed,
        webhooks: Webhooks::unreachable(),
        metrics: LocalMetrics::default(),
        fence,
    };
    controller.start(&cancel).joined().await;
}
