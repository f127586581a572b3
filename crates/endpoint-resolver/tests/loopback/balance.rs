//! Requests through a channel over the endpoints of a set. The endpoints are health services: each has another state.

use std::collections::BTreeSet;

use endpoint_resolver::Endpoints;
use tokio::net::TcpListener;
use tonic::transport::{Channel, Server as Transport, server::TcpIncoming};
use tonic_health::{
    ServingStatus,
    pb::{HealthCheckRequest, health_client::HealthClient},
};

use crate::{
    resolver,
    server::{Answer, Server},
    within,
};

/// Starts an endpoint that answers with `status`, and returns its address.
async fn endpoint(address: &str, status: ServingStatus) -> &'static str {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (health, service) = tonic_health::server::health_reporter();
    health.set_service_status("", status).await;
    let serving = Transport::builder()
        .add_service(service)
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(serving);
    address.leak()
}

/// The state of the endpoint that answers.
async fn ask(channel: &Channel) -> i32 {
    let mut client = HealthClient::new(channel.clone());
    let response = client.check(HealthCheckRequest::default());
    within("response", response)
        .await
        .unwrap()
        .into_inner()
        .status
}

/// Asks until those who answered lately are `expected`.
async fn until_answered_by(expected: &[ServingStatus], channel: &Channel) {
    let expected: BTreeSet<_> = expected.iter().map(|status| *status as i32).collect();
    let answered = async {
        loop {
            let mut answers = BTreeSet::new();
            for _ in 0..20 {
                answers.insert(ask(channel).await);
            }
            if answers == expected {
                return;
            }
        }
    };
    within("answers of all endpoints", answered).await;
}

fn endpoints(server: &Server) -> (endpoint_resolver::Resolver, Endpoints) {
    let resolver = resolver(&[server.uri()], None);
    let endpoints = resolver.endpoints("shop/web").unwrap();
    (resolver, endpoints)
}

#[tokio::test]
async fn d1_a_channel_balances_over_the_endpoints() {
    let v4 = endpoint("127.0.0.1:0", ServingStatus::Serving).await;
    let v6 = endpoint("[::1]:0", ServingStatus::NotServing).await;
    let server = Server::start(Answer::Pods(1, vec![v4].leak())).await;
    let (resolver, endpoints) = endpoints(&server);
    // Before there is an answer: the first request waits for it.
    let channel = endpoints.channel("http");
    until_answered_by(&[ServingStatus::Serving], &channel).await;
    server.say(Answer::Pods(2, vec![v4, v6].leak()));
    let both = [ServingStatus::Serving, ServingStatus::NotServing];
    until_answered_by(&both, &channel).await;
    server.say(Answer::Pods(3, vec![v6].leak()));
    until_answered_by(&[ServingStatus::NotServing], &channel).await;
    drop(resolver);
    server.kill().await;
    until_answered_by(&[ServingStatus::NotServing], &channel).await;
}
