//! A controller of LocalReplicaSets: in this process, or a process of its own.

use federation_controller::{clock::Clock, election::Fence};
use fedrs_api::names::SYSTEM_NAMESPACE;
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Client, client::Body};
use local_controller::{
    LEASE, LocalController, LocalControllerConfig, LocalMetrics, Running, Webhooks,
};
use sim_cluster::{SimCluster, User};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::program::Program;
use crate::local_manifests;

/// A controller of LocalReplicaSets; `None` while it is killed.
pub(super) enum LocalProcess {
    Embedded(Option<(CancellationToken, Running)>),
    /// The directory has its kubeconfig, its configuration and its log.
    Program(TempDir, Option<Program>),
}

/// The token of the controller's account in embedded clusters.
const TOKEN: &str = "of-the-replica-set-controller";

/// Installs in an embedded cluster what the controller needs.
pub(super) async fn prepare(cluster: &SimCluster) {
    let administrator = Client::new(cluster.direct_service(), "default");
    local_manifests::install(&administrator).await;
    let account = User::service_account(SYSTEM_NAMESPACE, LEASE);
    cluster.api().admit_token(TOKEN, account);
}

/// Starts the controller in an embedded cluster that is prepared.
pub(super) fn start(cluster: &SimCluster) -> (CancellationToken, Running) {
    let authenticated = cluster.service().map_request(|mut request: Request<Body>| {
        let token = format!("Bearer {TOKEN}");
        let token = HeaderValue::from_str(&token).expect("the token is printable");
        request.headers_mut().insert(AUTHORIZATION, token);
        request
    });
    let (now, started) = (cluster.clock().now(), Instant::now());
    let cancel = CancellationToken::new();
    let controller = LocalController {
        client: Client::new(authenticated, "default"),
        config: LocalControllerConfig::default(),
        clock: Clock::new(move || now + started.elapsed()),
        seed: 7,
        webhooks: Webhooks::over_network(),
        metrics: LocalMetrics::default(),
        fence: Fence::open(),
    };
    let running = controller.start(&cancel);
    (cancel, running)
}
