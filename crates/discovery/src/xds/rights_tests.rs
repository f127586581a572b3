//! Streams of clients that may not ask for everything.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::channel::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use xds_proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};

use super::*;
use crate::{
    access::mock_host::{Host, with_token},
    peer::Peer,
    xds::{protocol::StateOfTheWorld, stream::responses},
};

#[tokio::test(start_paused = true)]
async fn a_proxy_gets_the_clusters_of_the_sets_that_its_user_may_get() {
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    let service = host.service();
    let (headers, peer) = (with_token("TOKEN-a"), Peer::default());
    let caller = service.access.caller(&headers, &peer).await.unwrap();
    let (requests, receiver) = mpsc::unbounded();
    let type_url = ResourceType::Cluster.type_url();
    let ask = |nonce: String| {
        let request = DiscoveryRequest {
            type_url: type_url.to_owned(),
            response_nonce: nonce,
            ..DiscoveryRequest::default()
        };
        requests.unbounded_send(Ok(request)).unwrap();
    };
    let catalog = (Arc::clone(&service.catalog), service.metrics.clone());
    let responses =
        responses::<StateOfTheWorld>(catalog, caller, receiver.boxed(), CancellationToken::new());
    let mut responses = responses.boxed();
    // Until there are so many clusters.
    let mut until = async |count: usize| -> DiscoveryResponse {
        loop {
            let response = timeout(Duration::from_secs(3600), responses.next()).await;
            let response = response.expect("a response").unwrap().unwrap();
            ask(response.nonce.clone());
            if response.resources.len() == count {
                return response;
            }
        }
    };
    ask(String::new());
    let names = |response: &DiscoveryResponse| -> BTreeSet<String> {
        let texts = response.resources.iter();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let names = texts.map(|resource| text(&resource.value));
        names
            .map(|name| name.contains("web.shop:http").to_string())
            .collect()
    };
    let only = until(1).await;
    assert_eq!(names(&only), ["true".to_owned()].into());
    host.allow("a", "api");
    until(2).await;
    host.deny_all();
    until(0).await;
}
