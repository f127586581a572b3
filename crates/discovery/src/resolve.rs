//! Which pods are endpoints of a set, and with which ports.

use std::sync::Arc;

use fedrs_api::{IncludedPods, NamedPort, PodPort, ValidEndpointSet};

use crate::{
    pod::Pod,
    snapshot::{EndpointPort, concerns},
};

/// The ports of a pod that the selector of the set matches; `None` if it is no endpoint of the set.
pub(crate) fn ports_of(set: &ValidEndpointSet, pod: &Pod) -> Option<Vec<EndpointPort>> {
    is_included(set, pod).then(|| named_ports(set, pod))?
}

/// Whether the pod is one that the set includes, whatever its ports.
pub(crate) fn is_included(set: &ValidEndpointSet, pod: &Pod) -> bool {
    let is_of_cluster = concerns(set, &pod.cluster);
    let is_in_state = match set.include {
        IncludedPods::Serving => pod.has_address() && (pod.is_ready || set.publish_not_ready),
        IncludedPods::Alive => pod.has_address(),
        IncludedPods::All => true,
    };
    is_of_cluster && is_in_state
}

/// The ports that the pod has; `None` if the set names some and the pod has none of them.
fn named_ports(set: &ValidEndpointSet, pod: &Pod) -> Option<Vec<EndpointPort>> {
    let number = |NamedPort { name, port }: &NamedPort| {
        let number = match port {
            PodPort::Number(number) => *number,
            PodPort::Name(name) => *pod.ports.get(name)?,
        };
        let name = Arc::clone(name);
        Some(EndpointPort { name, number })
    };
    let ports: Vec<_> = set.ports.iter().filter_map(number).collect();
    (set.ports.is_empty() || !ports.is_empty()).then_some(ports)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fedrs_api::{EndpointSetSpec, ValidEndpointSet};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn set(fields: &Value) -> ValidEndpointSet {
        let mut spec = json!({ "source": { "selector": { "matchLabels": { "app": "web" } } } });
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let spec: EndpointSetSpec = serde_json::from_value(spec).unwrap();
        ValidEndpointSet::check(&spec).unwrap()
    }

    fn pod(state: &str) -> Pod {
        let has = |word| state.split(' ').any(|part| part == word);
        Pod {
            name: "web-1".into(),
            cluster: "eu".into(),
            node: None,
            labels: Arc::default(),
            ports: Arc::new(BTreeMap::from([("http".to_owned(), 8080)])),
            v4: has("address").then(|| [10, 0, 0, 1].into()),
            v6: None,
            is_ready: has("ready"),
            is_terminating: has("terminating"),
        }
    }

    #[rstest]
    #[case::ready("address ready", [true, true, true, true])]
    #[case::removed_and_ready("address ready terminating", [true, true, true, true])]
    #[case::not_ready("address", [false, true, true, true])]
    #[case::removed("address terminating", [false, true, true, true])]
    #[case::without_an_address("", [false, false, false, true])]
    fn d1_a_set_has_pods_that_serve_or_live_or_all(
        #[case] state: &str,
        #[case] expected: [bool; 4],
    ) {
        let sets = [
            json!({ "include": "Serving" }),
            json!({ "publishNotReady": true }),
            json!({ "include": "Alive" }),
            json!({ "include": "All" }),
        ];
        let found = sets.map(|fields| ports_of(&set(&fields), &pod(state)).is_some());
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::none(json!([]), Some(vec![]))]
    #[case::number(json!([{ "name": "a", "port": 9090 }]), Some(vec![("a", 9090)]))]
    #[case::name(json!([{ "name": "a", "port": "http" }]), Some(vec![("a", 8080)]))]
    #[case::one_is_missing(json!([{ "name": "b", "port": "grpc" }, { "name": "a", "port": "http" }]), Some(vec![("a", 8080)]))]
    #[case::all_are_missing(json!([{ "name": "b", "port": "grpc" }]), None)]
    fn d1_ports_have_numbers_or_names_of_container_ports(
        #[case] ports: Value,
        #[case] expected: Option<Vec<(&str, u16)>>,
    ) {
        let found = ports_of(&set(&json!({ "ports": ports })), &pod("address ready"));
        let found = found.map(|ports| {
            let ports = ports.into_iter();
            ports
                .map(|port| (port.name.to_string(), port.number))
                .collect::<Vec<_>>()
        });
        let expected = expected.map(|ports| {
            let ports = ports.into_iter();
            ports
                .map(|(name, number)| (name.to_owned(), number))
                .collect()
        });
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case(json!({}), true)]
    #[case(json!({ "clusters": ["us", "eu"] }), true)]
    #[case(json!({ "clusters": ["us"] }), false)]
    fn d1_a_set_may_be_limited_to_clusters(#[case] fields: Value, #[case] expected: bool) {
        let found = ports_of(&set(&fields), &pod("address ready"));
        assert_eq!(found.is_some(), expected);
    }
}
