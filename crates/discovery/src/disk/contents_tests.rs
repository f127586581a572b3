//! What is written is read again; what is damaged is not.

use fedrs_api::{EndpointSet, SetKind};
use mutations::mutated;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    freshness::Freshness, kept::LoadedSnapshots, snapshot::Endpoint, source::Source, state::State,
};

const KINDS: [&str; 1] = ["EndpointSets"];

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn pod(namespace: usize, name: usize, (app, addresses, state): (u8, u8, u8)) -> Value {
    let ips = [("10.0.0.1", 1), ("fd00::1", 2)];
    let ips = ips.iter().filter(|(_, bit)| addresses & bit != 0);
    let mut pod = json!({
        "metadata": {
            "namespace": format!("n{namespace}"), "name": format!("p{name}"), "resourceVersion": "1",
            "labels": { "app": format!("a{app}"), "\u{e9}\"": "\n" },
        },
        "spec": {
            "nodeName": if state & 4 == 0 { String::new() } else { format!("node{app}") },
            "containers": [{ "ports": [{ "name": "http", "containerPort": 8080 + u16::from(app) }] }],
        },
        "status": {
            "podIPs": ips.map(|(ip, _)| json!({ "ip": ip })).collect::<Vec<_>>(),
            "conditions": [{ "type": "Ready", "status": if state & 1 == 0 { "False" } else { "True" } }],
        },
    });
    if state & 2 != 0 {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    pod
}

fn endpoint_set(namespace: usize, name: &str, fields: Value) -> EndpointSet {
    let mut spec = fields;
    spec["include"] = "All".into();
    spec["ports"] = json!([{ "name": "http", "port": "http" }]);
    read(&json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet",
        "metadata": { "namespace": format!("n{namespace}"), "name": name }, "spec": spec,
    }))
}

/// A host with sets by a selector, by a source, of a Service, and one that is invalid.
fn host(state: &mut State) {
    let source = |lost: &[&str]| Source {
        selector: read(&json!({ "matchLabels": { "app": "a1" } })),
        lost: lost.iter().map(|name| Arc::from(*name)).collect(),
    };
    let kind = SetKind::FederatedDeployment;
    state.apply_source(&ObjectKey::of_kind(kind, "n0", "api"), source(&[]));
    state.apply_source(&ObjectKey::of_kind(kind, "n0", "web"), source(&["m1"]));
    for namespace in 0..2 {
        let by_selector = json!({ "source": { "selector": { "matchLabels": { "app": "a0" } } } });
        state.apply_set(&endpoint_set(namespace, "selected", by_selector));
        let by_service = json!({ "source": { "service": "web" } });
        state.apply_set(&endpoint_set(namespace, "of-service", by_service));
        let balancers = json!({ "source": { "service": "web" }, "addresses": "LoadBalancers" });
        state.apply_set(&endpoint_set(namespace, "balancers", balancers));
        let by_source = json!({ "source": { "federatedDeployment": "web" } });
        state.apply_set(&endpoint_set(namespace, "of-source", by_source));
        state.apply_set(&endpoint_set(namespace, "invalid", json!({ "source": {} })));
    }
    state.refresh_host(KINDS[0], Freshness::listed);
}

fn member(state: &mut State, name: &str, pods: &[(usize, usize, (u8, u8, u8))]) {
    state.add_member(&name.into());
    state.begin_pods(name);
    for app in 0..3 {
        let labels = json!({ "topology.kubernetes.io/zone": format!("z{}", app % 2) });
        let labels = if app == 2 { Value::Null } else { labels };
        let metadata =
            json!({ "name": format!("node{app}"), "resourceVersion": "1", "labels": labels });
        state.apply_node(name, read(&json!({ "metadata": metadata })));
    }
    for (namespace, pod_name, rest) in pods {
        state.apply_pod(name, read(&pod(*namespace, *pod_name, *rest)));
    }
    state.end_pods(name);
    let is_eu = name == "eu";
    let service = Service {
        selector: read(&json!({ "matchLabels": { "app": if is_eu { "a0" } else { "a2" } } })),
        balancer: is_eu.then(|| LoadBalancer {
            v4: Some([192, 0, 2, 1].into()),
            v6: Some("fd00::9".parse().unwrap()),
            ports: [("http".to_owned(), 80)].into(),
        }),
    };
    state.apply_service(name, &ServiceKey::new("n0", "web"), Some(service));
    state.refresh_services(name, Freshness::listed);
}

/// What a state that starts from the snapshots of `state` has.
fn reload(state: &State, now: Timestamp) -> State {
    let host = encode_host(&state.keep_host(now).unwrap(), 7).unwrap();
    let mut loaded = LoadedSnapshots::default();
    loaded.put_host(decode_host(&host, now).unwrap());
    for member in state.members() {
        let kept = state.keep_member(&member.name, now).unwrap();
        let bytes = encode_member(&kept, 7).unwrap();
        let member = decode_member(&bytes, now, &mut loaded.shared);
        loaded.put_member(member.unwrap());
    }
    let mut reloaded = State::of_kinds(KINDS);
    reloaded.load(loaded);
    reloaded
}

/// What each set has; `None` without a source.
fn endpoints(state: &State) -> Vec<(String, Option<Vec<Endpoint>>)> {
    let keys = state.keys();
    keys.map(|key| {
        let entry = state.set(key).unwrap();
        let endpoints = entry.endpoints().to_vec();
        (key.to_string(), entry.has_source().then_some(endpoints))
    })
    .collect()
}

proptest! {
    #[test]
    fn d3_a_state_that_is_written_and_read_has_the_same_endpoints_and_is_stale(
        pods in prop::collection::vec((0..2_usize, 0..9_usize, (0..3_u8, 0..4_u8, 0..8_u8)), 0..30),
    ) {
        let mut state = State::of_kinds(KINDS);
        host(&mut state);
        let (first, second) = pods.split_at(pods.len() / 2);
        member(&mut state, "eu", first);
        member(&mut state, "us", second);
        let now = Timestamp::from_second(1_000).unwrap();
        let mut reloaded = reload(&state, now);
        prop_assert_eq!(endpoints(&reloaded), endpoints(&state));
        prop_assert_eq!(reloaded.loaded(), 3);
        prop_assert_eq!(reloaded.host_stale_since(), Some(now));
        for member in reloaded.members() {
            prop_assert_eq!(&member.freshness, &Freshness::loaded(now));
            prop_assert_eq!(&member.services.freshness, &Freshness::loaded(now));
            prop_assert!(reloaded.keep_member(&member.name, now).is_none(), "it has nothing new");
        }
        // The same list changes nothing, and makes it current.
        reloaded.take_changed();
        member(&mut reloaded, "eu", first);
        member(&mut reloaded, "us", second);
        prop_assert_eq!(endpoints(&reloaded), endpoints(&state));
        prop_assert_eq!(reloaded.loaded(), 1);
    }

    #[test]
    fn d3_a_list_replaces_what_was_loaded(
        before in prop::collection::vec((0..2_usize, 0..9_usize, (0..3_u8, 0..4_u8, 0..8_u8)), 0..20),
        now in prop::collection::vec((0..2_usize, 0..9_usize, (0..3_u8, 0..4_u8, 0..8_u8)), 0..20),
    ) {
        let [mut loaded, mut fresh] = [&before, &now].map(|pods| {
            let mut state = State::of_kinds(KINDS);
            host(&mut state);
            member(&mut state, "eu", pods);
            state
        });
        loaded = reload(&loaded, Timestamp::now());
        for state in [&mut loaded, &mut fresh] {
            member(state, "eu", &now);
        }
        prop_assert_eq!(endpoints(&loaded), endpoints(&fresh));
    }
}

/// A member that is known, and the bytes of its file.
fn example() -> Vec<u8> {
    let mut state = State::of_kinds(KINDS);
    host(&mut state);
    let pods = [(0, 1, (1, 3, 7)), (0, 2, (0, 1, 1)), (1, 1, (2, 2, 4))];
    member(&mut state, "eu", &pods);
    let kept = state.keep_member("eu", Timestamp::UNIX_EPOCH).unwrap();
    encode_member(&kept, 7).unwrap()
}

/// What the file of a member has.
fn read_member(bytes: &[u8]) -> Result<(KeptMember, u64), FileError> {
    decode_member(bytes, Timestamp::now(), &mut Shared::default())
}

#[test]
fn d3_a_file_that_is_cut_off_or_changed_anywhere_is_not_read() {
    let bytes = example();
    assert!(read_member(&bytes).is_ok());
    for length in 0..bytes.len() {
        assert!(read_member(&bytes[..length]).is_err(), "{length}");
    }
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            assert!(read_member(&damaged).is_err(), "{place} {bit}");
        }
    }
    let mut longer = bytes;
    longer.push(b' ');
    assert!(read_member(&longer).is_err());
}

/// Behind a hash that is right there may be anything, too: the file of another version.
#[test]
fn fuzz_d3_content_that_is_no_snapshot_is_an_error() {
    let (bytes, now) = (example(), Timestamp::now());
    let content = open(&bytes).unwrap();
    for seed in 0..400 {
        let damaged = mutated(content, &[seed, seed + 1]);
        let _ = read_member(&seal(&damaged).unwrap());
        let _ = decode_host(&seal(&damaged).unwrap(), now);
    }
    let place = String::from_utf8(content.to_vec()).unwrap();
    let place = place.replacen("\"p1\",0", "\"p1\",9", 1);
    let error = read_member(&seal(place.as_bytes()).unwrap()).unwrap_err();
    assert!(error.to_string().contains("place"), "{error}");
}

/// Earlier versions wrote none.
#[test]
fn d3_services_that_a_file_does_not_have_are_not_known() {
    let mut file: Value = serde_json::from_slice(open(&example()).unwrap()).unwrap();
    file["content"]["services"].take();
    let bytes = seal(file.to_string().as_bytes()).unwrap();
    let mut loaded = LoadedSnapshots::default();
    loaded.put_member(read_member(&bytes).unwrap());
    let mut state = State::of_kinds(KINDS);
    state.load(loaded);
    let member = state.members().next().unwrap();
    assert!(member.freshness.is_known && !member.services.freshness.is_known);
}

#[test]
fn d3_pods_have_what_they_have_in_common_once() {
    let bytes = example();
    let content = open(&bytes).unwrap();
    let expected = json!({
        "currentAt": 0, "version": 7,
        "content": {
            "cluster": "eu",
            "labels": [
                { "app": "a1", "\u{e9}\"": "\n" }, { "app": "a0", "\u{e9}\"": "\n" }, { "app": "a2", "\u{e9}\"": "\n" },
            ],
            "ports": [{ "http": 8081 }, { "http": 8080 }, { "http": 8082 }],
            "nodes": [["node1", "z1"], ["node2", null]],
            "pods": [
                ["n0", [["p1", 0, 0, 0, "10.0.0.1", "fd00::1", 3], ["p2", 1, 1, null, "10.0.0.1", null, 1]]],
                ["n1", [["p1", 2, 2, 1, null, "fd00::1", 0]]],
            ],
            "services": [["n0", "web", { "matchLabels": { "app": "a0" } }]],
            "loadBalancers": { "0": { "v4": "192.0.2.1", "v6": "fd00::9", "ports": { "http": 80 } } },
        },
    });
    assert_eq!(serde_json::from_slice::<Value>(content).unwrap(), expected);
}
