//! D1: valid EndpointSets, and the errors of invalid ones.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use fedrs_api::{
    EndpointAddresses, EndpointSetSpec, IncludedPods, PodPort, SetKind, ValidEndpointSet,
    ValidEndpointSource,
};
use rstest::rstest;
use serde_json::{Value, json};

fn spec(fields: &Value) -> EndpointSetSpec {
    let mut spec = json!({ "source": { "federatedReplicaSet": "web" } });
    for (field, value) in fields.as_object().unwrap() {
        spec[field] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

#[test]
fn d1_a_set_has_the_serving_pods_of_its_source_in_all_clusters() {
    let set = ValidEndpointSet::check(&spec(&json!({}))).unwrap();
    let source = ValidEndpointSource::Set(SetKind::FederatedReplicaSet, "web".to_owned());
    assert_eq!((set.source, set.include), (source, IncludedPods::Serving));
    assert_eq!((set.clusters, set.ports), (None, vec![]));

    let of_service = json!({ "source": { "service": "web" } });
    let set = ValidEndpointSet::check(&serde_json::from_value(of_service).unwrap()).unwrap();
    assert_eq!(set.source, ValidEndpointSource::Service("web".to_owned()));
    assert_eq!(set.addresses, EndpointAddresses::Pods);
    let balancers = json!({ "source": { "service": "web" }, "addresses": "LoadBalancers" });
    let set = ValidEndpointSet::check(&serde_json::from_value(balancers).unwrap()).unwrap();
    assert_eq!(set.addresses, EndpointAddresses::LoadBalancers);
}

#[test]
fn d1_ports_have_names_and_numbers_or_names_of_containers() {
    let ports = json!([{ "name": "web", "port": 8080 }, { "name": "metrics", "port": "prom" }]);
    let set = ValidEndpointSet::check(&spec(&json!({ "ports": ports }))).unwrap();
    let ports: Vec<_> = set
        .ports
        .into_iter()
        .map(|port| (port.name.to_string(), port.port))
        .collect();
    let expected = [
        ("web".to_owned(), PodPort::Number(8080)),
        ("metrics".to_owned(), PodPort::Name("prom".to_owned())),
    ];
    assert_eq!(ports, expected);
}

#[rstest]
#[case::no_source(json!({ "source": {} }), &["spec.source"])]
#[case::two_sources(json!({ "source": { "federatedReplicaSet": "a", "federatedDeployment": "a" } }), &["spec.source"])]
#[case::a_service_and_a_set(json!({ "source": { "service": "a", "federatedReplicaSet": "a" } }), &["spec.source"])]
#[case::empty_selector(json!({ "source": { "selector": {} } }), &["spec.source.selector"])]
#[case::load_balancers_of_pods(json!({ "addresses": "LoadBalancers" }), &["spec.addresses"])]
#[case::port_0(json!({ "ports": [{ "name": "a", "port": 0 }] }), &["spec.ports[0].port"])]
#[case::port_too_large(json!({ "ports": [{ "name": "a", "port": 65536 }] }), &["spec.ports[0].port"])]
#[case::port_names(json!({ "ports": [{ "name": "A", "port": 1 }, { "name": "b", "port": "" }] }), &["spec.ports[0].name", "spec.ports[1].port"])]
#[case::port_name_too_long(json!({ "ports": [{ "name": "a", "port": "sixteen-letters1" }] }), &["spec.ports[0].port"])]
#[case::one_name_twice(json!({ "ports": [{ "name": "a", "port": 1 }, { "name": "a", "port": 2 }] }), &["spec.ports[1].name"])]
#[case::labels(json!({ "labels": ["app", "not a key"] }), &["spec.labels[1]"])]
#[case::clusters(json!({ "clusters": ["eu", "Not a name"] }), &["spec.clusters[1]"])]
fn d1_errors_name_the_field(#[case] fields: Value, #[case] expected: &[&str]) {
    let errors = ValidEndpointSet::check(&spec(&fields)).unwrap_err();
    let found: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(found, expected);
}
