//! What clients are answered by xDS, on loopback.

use std::time::Duration;

use futures::channel::mpsc::{self, UnboundedSender};
use prost::Message;
use serde_json::json;
use sim_cluster::SimCluster;
use tokio::time::timeout;
use tonic::Streaming;
use xds_proto::envoy::{
    config::endpoint::v3::ClusterLoadAssignment,
    service::discovery::v3::{
        DeltaDiscoveryRequest, DiscoveryRequest, DiscoveryResponse,
        aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
    },
};

use crate::{
    grpc::Server,
    world::{PODS, World, create_pod, delete_pod, write},
};

const NAME: &str = "web.default:http";

fn type_url(name: &str) -> String {
    format!("type.googleapis.com/envoy.config.{name}")
}

/// Creates pods of other services, so that no address is that of a pod of another member: networks of embedded clusters overlap.
async fn create_others(cluster: &SimCluster) {
    for name in ["x", "y"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
            "spec": { "containers": [{ "name": "main", "image": "other:1" }] },
        });
        write(cluster, "POST", PODS, &pod).await;
    }
}

/// How many endpoints each locality has: its cluster, and the number.
fn endpoints(assignment: &[u8]) -> Vec<(String, usize)> {
    let assignment = ClusterLoadAssignment::decode(assignment).unwrap();
    assert_eq!(assignment.cluster_name, NAME);
    let localities = assignment.endpoints.into_iter();
    let localities = localities.map(|found| {
        let weight = found.load_balancing_weight.unwrap();
        assert_eq!(usize::try_from(weight).unwrap(), found.lb_endpoints.len());
        (found.locality.unwrap().region, found.lb_endpoints.len())
    });
    localities.collect()
}

/// A client of the state of the world.
struct Client {
    requests: UnboundedSender<DiscoveryRequest>,
    responses: Streaming<DiscoveryResponse>,
}

impl Client {
    async fn connect(server: &Server) -> Self {
        let (requests, receiver) = mpsc::unbounded();
        let mut client = AggregatedDiscoveryServiceClient::new(server.channel.clone());
        let responses = client.stream_aggregated_resources(receiver).await.unwrap();
        Self {
            requests,
            responses: responses.into_inner(),
        }
    }

    fn ask(&self, kind: &str, names: &[&str]) {
        let request = DiscoveryRequest {
            type_url: type_url(kind),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DiscoveryRequest::default()
        };
        self.requests.unbounded_send(request).unwrap();
    }

    /// The next response, which the client uses.
    async fn next(&mut self, names: &[&str]) -> DiscoveryResponse {
        let response = timeout(Duration::from_secs(60), self.responses.message()).await;
        let response = response.expect("a response in time").unwrap().unwrap();
        let request = DiscoveryRequest {
            type_url: response.type_url.clone(),
            version_info: response.version_info.clone(),
            response_nonce: response.nonce.clone(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DiscoveryRequest::default()
        };
        self.requests.unbounded_send(request).unwrap();
        response
    }
}

#[tokio::test]
async fn d1_a_proxy_gets_all_clusters_and_the_endpoints_of_each_by_member() {
    let world = World::start(async |[eu, us]| {
        create_pod(eu, "a").await;
        create_pod(eu, "b").await;
        create_others(us).await;
        create_pod(us, "c").await;
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 3).await;
    let server = Server::start(&world).await;
    let mut client = Client::connect(&server).await;
    client.ask("cluster.v3.Cluster", &[]);
    let clusters = client.next(&[]).await;
    assert_eq!(clusters.resources.len(), 1);
    client.ask("endpoint.v3.ClusterLoadAssignment", &[NAME]);
    let found = client.next(&[NAME]).await;
    let expected = [("eu".to_owned(), 2), ("us".to_owned(), 1)];
    assert_eq!(endpoints(&found.resources[0].value), expected);

    delete_pod(&world.members[1], "c").await;
    // It may be seen as terminating before it is gone.
    loop {
        let found = client.next(&[NAME]).await;
        if endpoints(&found.resources[0].value).len() == 1 {
            break;
        }
    }
}

#[tokio::test]
async fn d2_a_client_of_changes_is_told_what_it_does_not_have() {
    let world = World::start(async |[eu, us]| {
        create_pod(eu, "a").await;
        create_others(us).await;
    })
    .await;
    let answer = world.answer(|answer| answer.endpoints.len() == 1).await;
    let server = Server::start(&world).await;
    let (requests, receiver) = mpsc::unbounded();
    let mut client = AggregatedDiscoveryServiceClient::new(server.channel.clone());
    let ask = |version: u64| DeltaDiscoveryRequest {
        type_url: type_url("endpoint.v3.ClusterLoadAssignment"),
        resource_names_subscribe: vec![NAME.to_owned(), "none.default".to_owned()],
        initial_resource_versions: [(NAME.to_owned(), version.to_string())].into(),
        ..DeltaDiscoveryRequest::default()
    };
    requests.unbounded_send(ask(answer.version)).unwrap();
    let responses = client.delta_aggregated_resources(receiver).await.unwrap();
    let mut responses = responses.into_inner();
    let response = responses.message().await.unwrap().unwrap();
    assert!(response.resources.is_empty());
    assert_eq!(response.removed_resources, ["none.default"]);

    create_pod(&world.members[1], "c").await;
    let response = responses.message().await.unwrap().unwrap();
    let [resource] = &response.resources[..] else {
        panic!("{response:?}");
    };
    assert!(resource.version.parse::<u64>().unwrap() > answer.version);
    let found = endpoints(&resource.resource.as_ref().unwrap().value);
    assert_eq!(found, [("eu".to_owned(), 1), ("us".to_owned(), 1)]);
}
