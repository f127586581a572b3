//! Events in any order lead to what a look at everything finds.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{balancer::LoadBalancer, pod::PortNames};

const NAMESPACE: &str = "shop";

fn pod(name: usize, version: u8, ready: bool) -> Value {
    json!({
        "metadata": {
            "namespace": NAMESPACE, "name": format!("p{name}"), "resourceVersion": "1",
            "labels": { "app": format!("a{}", version % 2), "x": format!("{version}") },
        },
        "spec": { "nodeName": "n", "containers": [] },
        "status": {
            "phase": if version == 3 { "Failed" } else { "Running" },
            "podIPs": [{ "ip": format!("10.0.{version}.{name}") }],
            "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }],
        },
    })
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn endpoint_set(name: usize, by: By) -> EndpointSet {
    let (source, addresses) = match by {
        By::Selector => (
            json!({ "selector": { "matchLabels": { "app": "a0" } } }),
            "Pods",
        ),
        By::Source => (json!({ "federatedReplicaSet": "web" }), "Pods"),
        By::Service => (json!({ "service": "web" }), "Pods"),
        By::Balancers => (json!({ "service": "web" }), "LoadBalancers"),
    };
    read(&json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet",
        "metadata": { "namespace": NAMESPACE, "name": format!("s{name}") },
        "spec": {
            "source": source, "addresses": addresses, "include": if name == 0 { "Alive" } else { "Serving" },
        },
    }))
}

fn source_key() -> ObjectKey {
    ObjectKey::new(NAMESPACE, "web")
}

fn service_key() -> ServiceKey {
    ServiceKey::new(NAMESPACE, "web")
}

fn selector(value: &str) -> LabelSelector {
    read(&json!({ "matchLabels": { "app": value } }))
}

/// What a set has the pods of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Selector,
    Source,
    Service,
    /// The load balancers of the Service.
    Balancers,
}

/// The Service of a member: in the first one it has a load balancer if it selects the second pods.
fn service(member: usize, selected: &str) -> Service {
    let balancer = has_balancer(member, selected).then(|| LoadBalancer {
        v4: Some([10, 9, u8::try_from(member).unwrap(), 1].into()),
        v6: None,
        ports: PortNames::new(),
    });
    let selector = selector(selected);
    Service { selector, balancer }
}

fn has_balancer(member: usize, selected: &str) -> bool {
    member > 0 || selected == "a1"
}

/// What happens, with small numbers: members, pods, versions, sets.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Pod(usize, usize, u8, bool),
    PodGone(usize, usize),
    /// A list with these pods, after which it is complete.
    List(usize, Vec<(usize, u8, bool)>),
    Set(usize, By),
    SetGone(usize),
    /// What it selects, and a member in which it is lost.
    Source(bool, Option<usize>),
    SourceGone,
    Service(usize, bool),
    ServiceGone(usize),
    /// A list of the Services of a member without any.
    NoServices(usize),
    Zone(usize, bool),
    /// Changes of the member have been missing for so long that what is lost there ends.
    End(usize),
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let (member, name, version) = (0..2_usize, 0..4_usize, 0..4_u8);
    let pods = prop::collection::vec((name.clone(), version.clone(), any::<bool>()), 0..4);
    prop_oneof![
        4 => (member.clone(), name.clone(), version, any::<bool>()).prop_map(|(m, n, v, r)| Event::Pod(m, n, v, r)),
        2 => (member.clone(), name).prop_map(|(m, n)| Event::PodGone(m, n)),
        1 => (member.clone(), pods).prop_map(|(m, pods)| Event::List(m, pods)),
        3 => (0..3_usize, prop_oneof![Just(By::Selector), Just(By::Source), Just(By::Service), Just(By::Balancers)])
            .prop_map(|(set, by)| Event::Set(set, by)),
        1 => (0..3_usize).prop_map(Event::SetGone),
        2 => (any::<bool>(), prop::option::of(member.clone()))
            .prop_map(|(first, lost)| Event::Source(first, lost)),
        1 => Just(Event::SourceGone),
        2 => (member.clone(), any::<bool>()).prop_map(|(m, first)| Event::Service(m, first)),
        1 => member.clone().prop_map(Event::ServiceGone),
        1 => member.clone().prop_map(Event::NoServices),
        1 => (member, any::<bool>()).prop_map(|(m, zone)| Event::Zone(m, zone)),
    ]
}

/// What there is, without any index.
#[derive(Default)]
struct Model {
    pods: BTreeMap<(usize, usize), (u8, bool)>,
    sets: BTreeMap<usize, By>,
    /// What the source selects, and where it is lost.
    source: Option<(&'static str, Option<usize>)>,
    /// What the Service of each member selects.
    services: BTreeMap<usize, &'static str>,
    /// The members in which what is lost has ended.
    ended: BTreeSet<usize>,
}

impl Model {
    /// The pods of each set, as texts; none if it has no source.
    fn endpoints(&self) -> BTreeMap<usize, Option<Vec<String>>> {
        let sets = self.sets.iter();
        sets.map(|(set, by)| (*set, self.pods_of(*set, *by)))
            .collect()
    }

    fn pods_of(&self, set: usize, by: By) -> Option<Vec<String>> {
        let has_source = match by {
            By::Selector => true,
            By::Source => self.source.is_some(),
            By::Service | By::Balancers => !self.services.is_empty(),
        };
        let wanted = |member: &usize| match by {
            By::Selector => Some("a0"),
            By::Source => self.source.map(|(selected, _)| selected),
            By::Service | By::Balancers => self.services.get(member).copied(),
        };
        if !has_source {
            return None;
        }
        let pods = self.pods.iter().filter(|((member, _), (version, ready))| {
            let app = format!("a{}", version % 2);
            wanted(member) == Some(&*app) && *version != 3 && (*ready || set == 0)
        });
        if by == By::Balancers {
            let is_ready = |member: &usize| {
                let mut pods = pods.clone();
                pods.any(|((of, _), (_, ready))| of == member && *ready)
            };
            let balancers = self.services.iter().filter(|(member, selected)| {
                has_balancer(**member, selected) && (set == 0 || is_ready(member))
            });
            let texts = balancers.map(|(member, _)| format!("m{member}/web 10.9.{member}.1"));
            return Some(texts.collect());
        }
        let lost = self.source.and_then(|(_, lost)| lost);
        let lost = lost.filter(|lost| {
            let serves = |((member, _), (_, ready)): (&(usize, usize), &(u8, bool))| {
                *ready && member != lost
            };
            by == By::Source && (self.ended.contains(lost) || pods.clone().any(serves))
        });
        let pods = pods.filter(|((member, _), _)| Some(*member) != lost);
        let texts = pods.map(|((member, name), (version, _))| {
            format!("m{member}/p{name} 10.0.{version}.{name}")
        });
        Some(texts.collect())
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Pod(m, n, v, r) => _ = self.pods.insert((*m, *n), (*v, *r)),
            Event::PodGone(m, n) => _ = self.pods.remove(&(*m, *n)),
            Event::List(member, pods) => {
                self.pods.retain(|(of, _), _| of != member);
                self.ended.remove(member);
                for (n, v, r) in pods {
                    self.pods.insert((*member, *n), (*v, *r));
                }
            }
            Event::Set(set, by) => _ = self.sets.insert(*set, *by),
            Event::SetGone(set) => _ = self.sets.remove(set),
            Event::Source(first, lost) => {
                self.source = Some((if *first { "a0" } else { "a1" }, *lost));
            }
            Event::SourceGone => self.source = None,
            Event::Service(m, first) => {
                self.services.insert(*m, if *first { "a0" } else { "a1" });
            }
            Event::ServiceGone(m) | Event::NoServices(m) => _ = self.services.remove(m),
            Event::Zone(..) => {}
            Event::End(m) => _ = self.ended.insert(*m),
        }
    }
}

pub(crate) fn apply(state: &mut State, event: &Event) {
    let member = |member: &usize| format!("m{member}");
    match event {
        Event::Pod(m, n, v, r) => state.apply_pod(&member(m), read(&pod(*n, *v, *r))),
        Event::PodGone(m, n) => state.remove_pod(&member(m), NAMESPACE, &format!("p{n}")),
        Event::List(m, pods) => {
            state.begin_pods(&member(m));
            for (n, v, r) in pods {
                state.apply_pod(&member(m), read(&pod(*n, *v, *r)));
            }
            state.end_pods(&member(m));
        }
        Event::Set(set, by) => {
            state.apply_set(&endpoint_set(*set, *by));
        }
        Event::SetGone(set) => state.remove_set(&SetKey::new(NAMESPACE, format!("s{set}"))),
        Event::Source(first, lost) => {
            let source = Source {
                selector: selector(if *first { "a0" } else { "a1" }),
                lost: lost.iter().map(|lost| member(lost).into()).collect(),
            };
            state.apply_source(&source_key(), source);
        }
        Event::SourceGone => state.remove_source(&source_key()),
        Event::Service(m, first) => {
            let service = service(*m, if *first { "a0" } else { "a1" });
            state.apply_service(&member(m), &service_key(), Some(service));
        }
        Event::ServiceGone(m) => state.apply_service(&member(m), &service_key(), None),
        Event::NoServices(m) => state.end_services(&member(m), &HashSet::new()),
        Event::End(m) => {
            state.stale(&member(m), Timestamp::UNIX_EPOCH, false);
            state.end_lost(Timestamp::MAX);
        }
        Event::Zone(m, zone) => {
            let labels = json!({ "topology.kubernetes.io/zone": format!("z{zone}") });
            let node =
                json!({ "metadata": { "name": "n", "resourceVersion": "1", "labels": labels } });
            state.apply_node(&member(m), read(&node));
        }
    }
}

pub(crate) fn endpoints(state: &State) -> BTreeMap<usize, Option<Vec<String>>> {
    let of = |(key, entry): (&SetKey, &Entry)| {
        let endpoints = entry.endpoints();
        let texts = endpoints.iter().map(|endpoint| {
            let address = endpoint.addresses().next().unwrap();
            format!("{}/{} {address}", endpoint.cluster(), endpoint.name())
        });
        let set = key.name[1..].parse().unwrap();
        (set, entry.has_source().then(|| texts.collect()))
    };
    state.sets.iter().map(of).collect()
}

proptest! {
    #[test]
    fn d1_events_in_any_order_lead_to_what_a_look_at_everything_finds(
        events in prop::collection::vec(
            prop_oneof![20 => event(), 1 => (0..2_usize).prop_map(Event::End)],
            0..40,
        ),
        unlisted in 0..10_usize,
    ) {
        let (mut state, mut model) = (State::of_kinds(["sets"]), Model::default());
        for member in ["m0", "m1"] {
            state.add_member(&member.into());
        }
        for (index, event) in events.iter().enumerate() {
            let before = endpoints(&state);
            state.take_changed();
            apply(&mut state, event);
            model.apply(event);
            if index < unlisted {
                continue;
            }
            // At first, with all that has happened before the host was known.
            state.refresh_host("sets", Freshness::listed);
            let now = endpoints(&state);
            prop_assert_eq!(&now, &model.endpoints());
            // A set whose endpoints differ is published.
            let changed = state.take_changed();
            for set in before.keys().chain(now.keys()) {
                let key = SetKey::new(NAMESPACE, format!("s{set}"));
                prop_assert!(before.get(set) == now.get(set) || changed.contains(&key));
            }
        }
    }
}

#[test]
fn d2_the_zone_of_a_node_changes_the_endpoints_on_it_and_no_others() {
    let mut state = State::default();
    state.add_member(&"m0".into());
    apply(&mut state, &Event::Set(0, By::Selector));
    apply(&mut state, &Event::Pod(0, 1, 0, true));
    state.take_changed();
    let zone = |state: &State| {
        let (_, entry) = state.sets.first_key_value().unwrap();
        entry.endpoints()[0].zone().map(str::to_owned)
    };
    assert_eq!(zone(&state), None);
    apply(&mut state, &Event::Zone(0, true));
    assert_eq!(zone(&state).as_deref(), Some("ztrue"));
    assert_eq!(state.take_changed().len(), 1);
    apply(&mut state, &Event::Zone(0, true));
    assert_eq!(state.take_changed().len(), 0);
}

/// A pod that can't be read, in a list, may be any: nothing is taken for gone.
#[test]
fn d2_a_list_with_an_unreadable_pod_removes_nothing() {
    let mut state = State::default();
    state.add_member(&"m0".into());
    apply(&mut state, &Event::Set(0, By::Selector));
    apply(&mut state, &Event::List(0, vec![(1, 0, true)]));
    state.begin_pods("m0");
    state.unreadable_pod("m0");
    state.end_pods("m0");
    assert_eq!(endpoints(&state)[&0].as_ref().unwrap().len(), 1);
    apply(&mut state, &Event::List(0, vec![]));
    assert_eq!(endpoints(&state)[&0].as_ref().unwrap().len(), 0);
}
