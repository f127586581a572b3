//! The controllers of LocalReplicaSets in embedded members, in this process.

use control_plane::request;
use controller_base::{clock::Clock, election::Fence};
use kube::Client;
use local_controller::{LocalControllerConfig, LocalMetrics, Running};
use serde_json::json;
use sim_cluster::SimCluster;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The controller in one member. Ends when it is dropped.
pub(super) struct LocalController {
    _cancel: DropGuard,
    _running: Running,
}

impl LocalController {
    /// Installs the CRD, and starts the controller.
    pub(super) async fn start_in(cluster: &SimCluster) -> Self {
        let client = Client::new(cluster.direct_service(), "default");
        let crd = json!(fedrs_api::crd::local_replica_set());
        request(&client, "POST", CRDS, &crd)
            .await
            .expect("the CRD can be installed");
        let (now, started) = (cluster.clock().now(), Instant::now());
        let cancel = CancellationToken::new();
        let controller = local_controller::LocalController {
            client,
            config: LocalControllerConfig::default(),
            clock: Clock::new(move || now + started.elapsed()),
            seed: 7,
            metrics: LocalMetrics::default(),
            fence: Fence::open(),
        };
        Self {
            _running: controller.start(&cancel),
            _cancel: cancel.drop_guard(),
        }
    }
}
