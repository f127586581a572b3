//! Embedded clusters with pods that are servers on this machine, and discovery over them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use control_plane::request;
use discovery::{Discovery, DiscoveryMetrics, Service, serve_grpc};
use fedrs_tests::install_crds;
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::transport::{self, server::TcpIncoming};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/endpointsets";

/// A server with the health service. Ends with the test.
pub(crate) struct Server(SocketAddr);

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let (_, health) = tonic_health::server::health_reporter();
        let server = transport::Server::builder().add_service(health);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(server.serve_with_incoming(incoming));
        Self(address)
    }

    pub(crate) fn address(&self) -> String {
        self.0.to_string()
    }
}

/// A host with an EndpointSet, two members, and discovery that answers on loopback.
pub(crate) struct Federation {
    members: [SimCluster; 2],
    xds: SocketAddr,
    cancel: CancellationToken,
    answering: JoinHandle<()>,
    _host: SimCluster,
    _discovery: Discovery,
}

impl Federation {
    pub(crate) async fn start() -> Self {
        let host = SimCluster::builder("host").start();
        install_crds(&client(&host)).await;
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": "web" },
            "spec": {
                "source": { "selector": { "matchLabels": { "app": "web" } } },
                "ports": [{ "name": "grpc", "port": "grpc" }],
            },
        });
        write(&host, "POST", SETS, &set).await;
        // Without nodes: nobody but the test starts pods.
        let members = ["eu", "us"].map(|name| SimCluster::builder(name).nodes(0).start());
        let mut discovery = Discovery::start(&client(&host), Duration::from_secs(30));
        for member in &members {
            discovery.set_member(member.name(), &client(member));
        }
        discovery.members_known();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let xds = listener
            .local_addr()
            .expect("a bound socket has an address");
        let cancel = CancellationToken::new();
        let catalog = Arc::clone(discovery.catalog());
        let service = Service::new(catalog, DiscoveryMetrics::default());
        let answering = tokio::spawn(serve_grpc(listener, service, cancel.clone()));
        Self {
            members,
            xds,
            cancel,
            answering,
            _host: host,
            _discovery: discovery,
        }
    }

    /// The address of the service.
    pub(crate) fn xds(&self) -> SocketAddr {
        self.xds
    }

    fn member(&self, name: &str) -> &SimCluster {
        let mut members = self.members.iter();
        let member = members.find(|member| member.name() == name);
        member.expect("a member of that name")
    }

    /// Creates a pod that is this server.
    pub(crate) async fn create_pod(&self, member: &str, name: &str, server: &Server) {
        let Server(address) = server;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": "web" } },
            "spec": { "containers": [{
                "name": "main", "image": "web:1",
                "ports": [{ "name": "grpc", "containerPort": address.port() }],
            }] },
        });
        let status = json!({ "status": {
            "phase": "Running",
            "podIP": address.ip(),
            "podIPs": [{ "ip": address.ip() }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        } });
        let member = self.member(member);
        write(member, "POST", PODS, &pod).await;
        write(member, "PATCH", &format!("{PODS}/{name}/status"), &status).await;
    }

    pub(crate) async fn delete_pod(&self, member: &str, name: &str) {
        let path = format!("{PODS}/{name}");
        write(self.member(member), "DELETE", &path, &Value::Null).await;
    }

    /// Ends the service.
    pub(crate) async fn stop_answers(&mut self) {
        self.cancel.cancel();
        (&mut self.answering)
            .await
            .expect("the server does not panic");
    }
}

fn client(cluster: &SimCluster) -> Client {
    Client::new(cluster.service(), "default")
}

async fn write(cluster: &SimCluster, method: &str, path: &str, body: &Value) {
    let client = Client::new(cluster.direct_service(), "default");
    let written = request(&client, method, path, body).await;
    written.expect("the cluster accepts it");
}
