//! What users read of a set.

use std::sync::Arc;

use fedrs_api::{EndpointSet, SetKind, conditions::find};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::{
    freshness::Freshness,
    services::{Service, ServiceKey},
    set::SetKey,
    source::{ServiceObject, Source},
    state::State,
};

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

/// The members `eu` and `us`, which are listed, and the set `web` with this spec.
fn state(spec: &Value) -> State {
    let mut state = State::default();
    for member in ["eu", "us"] {
        state.add_member(&Arc::from(member));
        state.end_pods(member);
        state.refresh_services(member, Freshness::listed);
    }
    state.apply_set(&read::<EndpointSet>(&json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet",
        "metadata": { "namespace": "shop", "name": "web" }, "spec": spec,
    })));
    state
}

/// A pod with the label `app=web` and a port `http`.
fn add_pod(state: &mut State, member: &str, name: &str, is_ready: bool) {
    let pod = json!({
        "metadata": { "namespace": "shop", "name": name, "resourceVersion": "1", "labels": { "app": "web" } },
        "spec": { "containers": [{ "ports": [{ "name": "http", "containerPort": 8080 }] }] },
        "status": {
            "phase": "Running", "podIPs": [{ "ip": "10.0.0.1" }],
            "conditions": [{ "type": "Ready", "status": if is_ready { "True" } else { "False" } }],
        },
    });
    state.apply_pod(member, read(&pod));
}

fn status(state: &State) -> EndpointSetStatus {
    let report = SetReport::of(state, &SetKey::new("shop", "web")).unwrap();
    let now = Timestamp::from_second(1_000).unwrap();
    report.status((7, Some(3)), &EndpointSetStatus::default(), now)
}

/// Status, reason and message of a condition.
fn condition(status: &EndpointSetStatus, type_: Type) -> String {
    find(&status.conditions, type_).map_or(String::new(), |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

fn by_labels(ports: &Value) -> Value {
    json!({ "source": { "selector": { "matchLabels": { "app": "web" } } }, "ports": ports })
}

#[rstest]
#[case::no_source(
    json!({ "source": { "federatedDeployment": "web" } }),
    r#"False SourceNotFound: spec.source.federatedDeployment: "web" does not exist"#
)]
#[case::no_service(
    json!({ "source": { "service": "web" } }),
    r#"False SourceNotFound: spec.source.service: no cluster has a Service "web" with a selector"#
)]
#[case::a_selector_without_pods(
    json!({ "source": { "selector": { "matchLabels": { "app": "other" } } } }),
    "False NoPods: spec.source: has no pods"
)]
#[case::a_port_that_no_pod_has(
    by_labels(&json!([{ "name": "a", "port": "http" }, { "name": "b", "port": "grpc" }])),
    r#"False PortNotFound: spec.ports[1].port: no pod has a container port named "grpc""#
)]
#[case::not_all_are_ready(by_labels(&json!([])), "True EndpointsReady: 1 endpoint ready")]
#[case::none_is_ready(
    json!({ "source": { "selector": { "matchLabels": { "app": "web" } } }, "clusters": ["us"] }),
    "False NoReadyEndpoints: 1 pod, of which none is ready"
)]
fn d1_ready_says_why_requests_find_no_endpoint(#[case] spec: Value, #[case] expected: &str) {
    let mut state = state(&spec);
    add_pod(&mut state, "eu", "a", true);
    add_pod(&mut state, "us", "b", false);
    let status = status(&state);
    assert_eq!(condition(&status, Type::Ready), expected);
    assert_eq!(
        condition(&status, Type::Accepted),
        "True Valid: the spec is valid"
    );
    assert_eq!((status.observed_generation, status.version), (Some(3), 7));
}

#[test]
fn an_invalid_spec_is_named_with_its_field() {
    let status = status(&state(&json!({ "source": { "selector": {} } })));
    let expected =
        "InvalidSpec: spec.source.selector: must not be empty: an empty selector matches every pod";
    for type_ in [Type::Accepted, Type::Ready] {
        assert_eq!(condition(&status, type_), format!("False {expected}"));
    }
}

#[test]
fn d1_a_status_counts_endpoints_by_cluster_and_names_stale_members() {
    let mut spec = by_labels(&json!([]));
    spec["include"] = "Alive".into();
    let mut state = state(&spec);
    add_pod(&mut state, "eu", "a", true);
    add_pod(&mut state, "eu", "b", false);
    state.stale("eu", Timestamp::from_millisecond(990_500).unwrap(), false);
    let found = status(&state);
    assert_eq!((found.endpoints, found.ready_endpoints), (2, 1));
    let expected = json!([{ "name": "eu", "endpoints": 2, "readyEndpoints": 1, "staleSince": "1970-01-01T00:16:30Z" }]);
    assert_eq!(json!(found.clusters), expected, "us has nothing to say");
    assert_eq!(
        condition(&found, Type::MembersStale),
        "True WatchDown: changes may be missing: eu since 1970-01-01T00:16:30Z"
    );
    state.caught_up("eu");
    assert_eq!(condition(&status(&state), Type::MembersStale), "");
}

/// Nothing is said to be missing while it is not known.
#[test]
fn d2_a_set_whose_members_are_not_known_waits_for_them() {
    let mut state = state(&by_labels(&json!([])));
    state.add_member(&Arc::from("ap"));
    assert_eq!(
        condition(&status(&state), Type::Ready),
        "False WaitingForMembers: the pods of ap have not been listed yet"
    );
    add_pod(&mut state, "us", "b", true);
    assert_eq!(
        condition(&status(&state), Type::Ready),
        "True EndpointsReady: 1 endpoint ready"
    );
}

/// The Service `front`, which selects `app`.
fn service(app: &str, load_balancer: &Value) -> Option<Service> {
    let service: ServiceObject = read(&json!({
        "metadata": { "namespace": "shop", "name": "front", "resourceVersion": "1" },
        "spec": {
            "type": "LoadBalancer", "selector": { "app": app },
            "ports": [{ "name": "http", "port": 80 }, { "port": 443 }],
        },
        "status": { "loadBalancer": load_balancer },
    }));
    service.into_service()
}

/// Where pods can't be reached from other clusters, the load balancer of each cluster is the endpoint: while a pod of it is ready.
#[test]
fn d1_load_balancers_are_ready_while_a_pod_of_their_cluster_is() {
    let mut state = state(&json!({
        "source": { "service": "front" }, "addresses": "LoadBalancers", "include": "Alive",
        "ports": [{ "name": "web", "port": "http" }],
    }));
    let front = ServiceKey::new("shop", "front");
    let ready = |state: &State| {
        let status = status(state);
        (status.ready_endpoints, condition(&status, Type::Ready))
    };
    add_pod(&mut state, "eu", "a", false);
    let host_name = json!({ "ingress": [{ "hostname": "lb.example" }] });
    state.apply_service("eu", &front, service("web", &host_name));
    let text = "False LoadBalancerNotFound: spec.addresses: no cluster has a Service \"front\" of type LoadBalancer with an IP address";
    assert_eq!(ready(&state), (0, text.to_owned()));

    let address = json!({ "ingress": [{ "ip": "192.0.2.1" }, { "ip": "fd00::9" }] });
    state.apply_service("eu", &front, service("web", &address));
    let (count, text) = ready(&state);
    assert_eq!(status(&state).endpoints, 1);
    assert_eq!(
        (count, &*text),
        (0, "False NoReadyEndpoints: 1 pod, of which none is ready")
    );
    add_pod(&mut state, "eu", "b", true);
    assert_eq!(
        ready(&state),
        (1, "True EndpointsReady: 1 endpoint ready".to_owned())
    );
    let entry = state.set(&SetKey::new("shop", "web")).unwrap();
    let endpoint = &entry.endpoints()[0];
    let addresses: Vec<_> = endpoint.addresses().map(|one| one.to_string()).collect();
    assert_eq!(addresses, ["192.0.2.1", "fd00::9"]);
    assert_eq!((endpoint.name(), endpoint.cluster()), ("front", "eu"));
    let port = &endpoint.ports()[0];
    assert_eq!((&*port.name, port.number), ("web", 80));
    state.take_changed();
    add_pod(&mut state, "eu", "c", true);
    assert!(
        state.take_changed().is_empty(),
        "another pod changes nothing"
    );
    for pod in ["b", "c"] {
        state.remove_pod("eu", "shop", pod);
    }
    assert_eq!(ready(&state).0, 0);
}

#[test]
fn d1_a_port_that_no_service_has_is_named_by_its_field() {
    let mut state = state(&json!({
        "source": { "service": "front" }, "addresses": "LoadBalancers",
        "ports": [{ "name": "web", "port": "grpc" }],
    }));
    add_pod(&mut state, "eu", "a", true);
    let address = json!({ "ingress": [{ "ip": "192.0.2.1" }] });
    let front = ServiceKey::new("shop", "front");
    state.apply_service("eu", &front, service("web", &address));
    assert_eq!(
        condition(&status(&state), Type::Ready),
        "False PortNotFound: spec.ports[0].port: no Service has a port named \"grpc\""
    );
}

/// In each member the selector of its own Service decides; what is not known of one is not taken for missing.
#[test]
fn d1_a_service_has_in_each_member_the_pods_that_it_selects_there() {
    let mut state = state(&json!({ "source": { "service": "front" }, "include": "Alive" }));
    add_pod(&mut state, "eu", "a", true);
    add_pod(&mut state, "us", "b", true);
    let front = ServiceKey::new("shop", "front");
    state.apply_service("eu", &front, service("web", &json!({})));
    assert_eq!(status(&state).endpoints, 1, "us has no such Service");
    state.apply_service("us", &front, service("other", &json!({})));
    assert_eq!(status(&state).endpoints, 1);
    state.apply_service("us", &front, service("web", &json!({})));
    assert_eq!(status(&state).endpoints, 2);
    state.apply_service("eu", &front, None);
    assert_eq!(status(&state).endpoints, 1);

    let now = Timestamp::from_second(990).unwrap();
    state.refresh_services("us", |services| services.stale(now, false));
    assert_eq!(
        condition(&status(&state), Type::MembersStale),
        "True WatchDown: changes may be missing: us since 1970-01-01T00:16:30Z"
    );
    state.end_services("us", &std::collections::HashSet::new());
    state.add_member(&Arc::from("ap"));
    state.end_pods("ap");
    assert_eq!(
        condition(&status(&state), Type::Ready),
        "False WaitingForMembers: the pods or Services of ap have not been listed yet"
    );
}

#[test]
fn d1_a_source_is_found_by_its_kind() {
    let mut state = state(&json!({ "source": { "federatedReplicaSet": "web" } }));
    add_pod(&mut state, "eu", "a", true);
    let source = Source {
        selector: read(&json!({ "matchLabels": { "app": "web" } })),
        ..Source::default()
    };
    let of_kind = |kind| fedrs_api::ObjectKey::of_kind(kind, "shop", "web");
    state.apply_source(&of_kind(SetKind::FederatedDeployment), source.clone());
    assert!(condition(&status(&state), Type::Ready).starts_with("False SourceNotFound"));
    state.apply_source(&of_kind(SetKind::FederatedReplicaSet), source);
    assert!(condition(&status(&state), Type::Ready).starts_with("True EndpointsReady"));
}

/// The status says what answers leave out, where, and why.
#[test]
fn d2_a_status_counts_what_is_left_out_in_clusters_that_are_lost() {
    let mut state = state(&json!({ "source": { "federatedDeployment": "web" } }));
    let key = fedrs_api::ObjectKey::of_kind(SetKind::FederatedDeployment, "shop", "web");
    let source = Source {
        selector: read(&json!({ "matchLabels": { "app": "web" } })),
        lost: [Arc::from("us")].into(),
    };
    state.apply_source(&key, source);
    add_pod(&mut state, "us", "a", true);
    assert_eq!(status(&state).endpoints, 1, "there is no other one");
    assert_eq!(condition(&status(&state), Type::EndpointsOmitted), "");
    add_pod(&mut state, "eu", "b", true);
    let found = status(&state);
    let expected = json!([
        { "name": "eu", "endpoints": 1, "readyEndpoints": 1 },
        { "name": "us", "endpoints": 0, "readyEndpoints": 0, "omittedEndpoints": 1 },
    ]);
    assert_eq!((found.endpoints, json!(found.clusters)), (1, expected));
    assert_eq!(
        condition(&found, Type::EndpointsOmitted),
        "True ClusterLost: replicas run in other clusters in place of those in clusters that are lost; answers leave out 1 endpoint in us"
    );
    state.remove_pod("eu", "shop", "b");
    state.stale("us", Timestamp::from_second(900).unwrap(), false);
    state.end_lost(Timestamp::from_second(900).unwrap());
    assert_eq!(status(&state).ready_endpoints, 1, "it has not ended yet");
    state.end_lost(Timestamp::from_second(901).unwrap());
    assert_eq!(
        condition(&status(&state), Type::Ready),
        "False NoReadyEndpoints: endpoints are left out, and no other one is ready"
    );
    state.caught_up("us");
    assert_eq!(status(&state).ready_endpoints, 1, "what is known is served");
}
