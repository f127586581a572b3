//! What a client gets leads to what there is.

use std::sync::Arc;

use fedrs_api::{EndpointSetSpec, ValidEndpointSet};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::{
    snapshot::EndpointSnapshot,
    xds::{
        name,
        protocol::{Delta, Protocol, StateOfTheWorld},
        resource::Resource,
        world::Known,
    },
};

/// Sets with one port, and their versions; none of a set that is not known.
#[derive(Clone, Debug, Default)]
struct Sets(BTreeMap<&'static str, Option<u64>>);

const PORT: &str = "http";

fn key(set: &str) -> SetKey {
    SetKey::new("shop", set)
}

fn port(set: &str) -> String {
    name::of_port(&key(set), PORT)
}

fn snapshot(version: u64) -> Arc<EndpointSnapshot> {
    let spec = json!({ "source": { "federatedReplicaSet": "web" }, "ports": [{ "name": PORT, "port": 80 }] });
    let spec: EndpointSetSpec = serde_json::from_value(spec).unwrap();
    Arc::new(EndpointSnapshot {
        version,
        endpoints: Arc::default(),
        set: Arc::new(ValidEndpointSet::check(&spec).unwrap()),
    })
}

impl World for Sets {
    fn resource(&self, kind: ResourceType, name: &str) -> Known {
        let parsed = ResourceName::parse(name);
        let parsed = parsed.filter(|parsed| parsed.port.is_none_or(|port| port == PORT));
        let version = parsed.and_then(|parsed| self.0.get(&*parsed.key.name));
        let name = name.to_owned();
        match version {
            None => Known::Absent,
            Some(None) => Known::Unknown,
            Some(Some(version)) if kind == ResourceType::Endpoints => {
                Known::Resource(Resource::endpoints(name, snapshot(*version), PORT))
            }
            Some(Some(_)) => Known::Resource(Resource::of_name(kind, name)),
        }
    }

    fn sets(&self) -> Vec<SetKey> {
        self.0.keys().map(|set| key(set)).collect()
    }

    fn ports(&self, key: &SetKey) -> Vec<String> {
        let version = self.0.get(&*key.name);
        let ports = version.copied().flatten().map(|_| port(&key.name));
        ports.into_iter().collect()
    }
}

fn sets(versions: &[(&'static str, u64)]) -> Sets {
    Sets(
        versions
            .iter()
            .map(|(set, version)| (*set, Some(*version)))
            .collect(),
    )
}

fn these(kind: ResourceType, nonce: u64, names: &[&str]) -> Ask {
    Ask {
        kind,
        node: None,
        nonce: if nonce == 0 {
            String::new()
        } else {
            nonce.to_string()
        },
        rejection: None,
        wants: Wants::These(names.iter().map(|name| (*name).to_owned()).collect()),
    }
}

fn changes(
    kind: ResourceType,
    subscribe: &[&str],
    unsubscribe: &[&str],
    has: &[(&str, &str)],
) -> Ask {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let has = has.iter();
    Ask {
        wants: Wants::Changes {
            subscribe: owned(subscribe),
            unsubscribe: owned(unsubscribe),
            has: has
                .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
                .collect(),
        },
        ..these(kind, 0, &[])
    }
}

/// The next response with the state of the world: type, nonce, and how many resources it has.
fn world_response(client: &mut Client, sets: &Sets) -> Option<(ResourceType, u64, usize)> {
    let response = client.next(sets, StateOfTheWorld::SAYS_REMOVED)?;
    let (kind, nonce) = (response.kind, response.nonce);
    let message = StateOfTheWorld::response(client, response);
    Some((kind, nonce, message.resources.len()))
}

/// The next response with changes: type, what is updated, and what is gone.
fn delta_response(
    client: &mut Client,
    sets: &Sets,
) -> Option<(ResourceType, Vec<String>, Vec<String>)> {
    let response = client.next(sets, Delta::SAYS_REMOVED)?;
    let kind = response.kind;
    let message = Delta::response(client, response);
    let updated = message.resources.into_iter();
    let updated = updated.map(|resource| resource.name).collect();
    Some((kind, updated, message.removed_resources))
}

use ResourceType::{Cluster, Endpoints, Listener, Route};

#[test]
fn d1_a_client_that_asks_by_name_gets_each_type_and_then_changes() {
    let mut world = sets(&[("web", 7), ("api", 3)]);
    let mut client = Client::default();
    for kind in [Listener, Route, Cluster, Endpoints] {
        client.ask(these(kind, 0, &["web.shop"])).unwrap();
    }
    // What others refer to comes first.
    for (nonce, kind) in [(1, Cluster), (2, Endpoints), (3, Listener), (4, Route)] {
        let response = world_response(&mut client, &world);
        assert_eq!(response, Some((kind, nonce, 1)));
    }
    assert_eq!(world_response(&mut client, &world), None);
    world.0.insert("web", Some(8));
    client.set_changed(&key("web"));
    let response = world_response(&mut client, &world);
    assert_eq!(response, Some((Endpoints, 5, 1)));
    client.set_changed(&key("api"));
    assert_eq!(world_response(&mut client, &world), None);
}

#[test]
fn d2_a_set_that_is_not_known_keeps_what_the_client_has_and_one_that_is_gone_does_not() {
    let mut world = sets(&[("web", 7), ("api", 3)]);
    let mut client = Client::default();
    client.ask(these(Cluster, 0, &[])).unwrap();
    client
        .ask(these(Endpoints, 0, &[&port("web"), &port("api")]))
        .unwrap();
    assert_eq!(world_response(&mut client, &world), Some((Cluster, 1, 2)));
    assert_eq!(world_response(&mut client, &world), Some((Endpoints, 2, 2)));
    world.0.insert("web", None);
    client.all_changed();
    assert_eq!(world_response(&mut client, &world), None);
    world.0.remove("api");
    client.all_changed();
    // Endpoints go with their cluster.
    assert_eq!(world_response(&mut client, &world), Some((Cluster, 3, 1)));
    assert_eq!(world_response(&mut client, &world), None);
}

#[rstest]
#[case::none_of_a_whole_type(Cluster, &[], Some(0))]
#[case::all(Cluster, &["*"], Some(0))]
#[case::one_that_is_not_there(Cluster, &["web.shop"], Some(0))]
#[case::listeners_are_asked_for_by_name(Listener, &[], Some(0))]
#[case::endpoints_that_are_not_there(Endpoints, &["web.shop"], None)]
#[case::no_endpoints(Endpoints, &[], None)]
fn d1_a_client_that_waits_for_nothing_gets_a_response_where_it_says_so(
    #[case] kind: ResourceType,
    #[case] names: &[&str],
    #[case] expected: Option<usize>,
) {
    let mut client = Client::default();
    client.ask(these(kind, 0, names)).unwrap();
    let response = world_response(&mut client, &Sets::default());
    assert_eq!(response.map(|(_, _, resources)| resources), expected);
}

#[test]
fn d1_requests_about_earlier_responses_change_nothing() {
    let world = sets(&[("web", 7), ("api", 3)]);
    let mut client = Client::default();
    client.ask(these(Endpoints, 0, &["web.shop"])).unwrap();
    assert_eq!(world_response(&mut client, &world), Some((Endpoints, 1, 1)));
    client.ask(these(Endpoints, 9, &["api.shop"])).unwrap();
    assert_eq!(world_response(&mut client, &world), None);
    client
        .ask(these(Endpoints, 1, &["web.shop", "api.shop"]))
        .unwrap();
    assert_eq!(world_response(&mut client, &world), Some((Endpoints, 2, 1)));
    // Asked for again after a while without it.
    client.ask(these(Endpoints, 2, &["api.shop"])).unwrap();
    client
        .ask(these(Endpoints, 2, &["web.shop", "api.shop"]))
        .unwrap();
    assert_eq!(world_response(&mut client, &world), Some((Endpoints, 3, 1)));
}

#[test]
fn d2_a_client_of_changes_goes_on_from_its_versions() {
    let mut world = sets(&[("web", 7), ("api", 3)]);
    let [web, api] = [port("web"), port("api")];
    let mut client = Client::default();
    let has = [(&*web, "7"), (&*api, "2"), ("other.shop", "1")];
    client
        .ask(changes(Endpoints, &[&web, &api, "none.shop"], &[], &has))
        .unwrap();
    let response = delta_response(&mut client, &world);
    let none = vec!["none.shop".to_owned()];
    assert_eq!(response, Some((Endpoints, vec![api.clone()], none)));
    world.0.insert("web", Some(8));
    client.set_changed(&key("web"));
    client.ask(changes(Endpoints, &[], &[&web], &[])).unwrap();
    assert_eq!(delta_response(&mut client, &world), None);
    client.ask(changes(Endpoints, &[&api], &[], &[])).unwrap();
    let again = Some((Endpoints, vec![api], vec![]));
    assert_eq!(delta_response(&mut client, &world), again);
}

#[test]
fn d1_a_client_of_all_changes_gets_new_sets_and_loses_those_that_are_gone() {
    let mut world = sets(&[("web", 7)]);
    let [web, api] = [port("web"), port("api")];
    let mut client = Client::default();
    let has = [(&*web, "1"), (&*api, "1")];
    client.ask(changes(Cluster, &[], &[], &has)).unwrap();
    let gone = Some((Cluster, vec![], vec![api.clone()]));
    assert_eq!(delta_response(&mut client, &world), gone);
    world.0.insert("api", Some(1));
    client.set_changed(&key("api"));
    let new = Some((Cluster, vec![api], vec![]));
    assert_eq!(delta_response(&mut client, &world), new);
    client.ask(changes(Cluster, &[], &["*"], &[])).unwrap();
    world.0.clear();
    client.all_changed();
    assert_eq!(delta_response(&mut client, &world), None);
}

#[test]
fn s5_a_client_follows_so_many_resources_and_no_more() {
    let mut client = Client::default();
    let names: Vec<_> = (0..=MAX_RESOURCES)
        .map(|set| format!("set-{set}.shop"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (most, one) = names.split_at(MAX_RESOURCES);
    assert_eq!(client.ask(changes(Route, most, &[], &[])), Ok(true));
    let too_many = client.ask(changes(Route, one, &[], &[])).unwrap_err();
    let text = "more than 20000 resources of the type RouteConfiguration";
    assert_eq!(too_many.to_string(), text);
}

/// One step of a story: a set gets a version, becomes unknown or is deleted; or the client asks for sets, or for all.
#[derive(Clone, Debug)]
enum Step {
    Set(&'static str, Option<u64>),
    Delete(&'static str),
    Ask(ResourceType, Vec<&'static str>, bool),
    Read,
}

const SETS: [&str; 3] = ["a", "b", "c"];

fn step() -> impl Strategy<Value = Step> {
    let set = prop::sample::select(&SETS[..]);
    let version = prop::option::of(1..5_u64);
    let kind = prop::sample::select(&ResourceType::ALL[..]);
    let some = prop::sample::subsequence(&SETS[..], 0..=SETS.len());
    prop_oneof![
        4 => (set.clone(), version).prop_map(|(set, version)| Step::Set(set, version)),
        1 => set.prop_map(Step::Delete),
        2 => (kind, some, any::<bool>()).prop_map(|(kind, sets, all)| Step::Ask(kind, sets, all)),
        3 => Just(Step::Read),
    ]
}

proptest! {
    /// Whatever happens: a client that reads what it gets has what there is of what it wants, and what it had of the unknown.
    #[test]
    fn d2_responses_with_changes_add_up_to_what_there_is(steps in prop::collection::vec(step(), 0..60)) {
        let (mut client, mut world) = (Client::default(), Sets::default());
        let mut wanted: BTreeMap<ResourceType, BTreeSet<String>> = BTreeMap::new();
        let mut has: BTreeMap<(ResourceType, String), u64> = BTreeMap::new();
        for step in steps.into_iter().chain([Step::Read]) {
            match step {
                Step::Set(set, version) => {
                    world.0.insert(set, version);
                    client.set_changed(&key(set));
                }
                Step::Delete(set) => {
                    world.0.remove(set);
                    client.set_changed(&key(set));
                }
                Step::Ask(kind, sets, is_all) => {
                    let wanted = wanted.entry(kind).or_default();
                    let names: BTreeSet<_> = sets.iter().map(|set| port(set)).collect();
                    let dropped: Vec<_> = wanted.difference(&names).cloned().collect();
                    has.retain(|(of, name), _| *of != kind || !dropped.contains(name));
                    let subscribe: Vec<_> = names.iter().map(|name| &**name).collect();
                    let unsubscribe: Vec<_> = dropped.iter().map(|name| &**name).collect();
                    // Asking for none at first would be for all.
                    let unsubscribe = if is_all { [&unsubscribe[..], &["*"]].concat() } else { unsubscribe };
                    let subscribe = if subscribe.is_empty() { vec!["none.shop"] } else { subscribe };
                    client.ask(changes(kind, &subscribe, &unsubscribe, &[])).unwrap();
                    *wanted = names;
                }
                Step::Read => {
                    while let Some(response) = client.next(&world, true) {
                        for resource in response.news.updated {
                            has.insert((response.kind, resource.name), resource.version);
                        }
                        for name in response.news.removed {
                            has.remove(&(response.kind, name));
                        }
                    }
                    for (kind, names) in &wanted {
                        for name in names {
                            let held = has.get(&(*kind, name.clone())).copied();
                            match world.resource(*kind, name) {
                                Known::Resource(resource) => prop_assert_eq!(held, Some(resource.version)),
                                Known::Absent => prop_assert_eq!(held, None),
                                Known::Unknown => {}
                            }
                        }
                    }
                }
            }
        }
    }
}
