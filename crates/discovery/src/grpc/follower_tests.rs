//! What a client gets leads to what there is.

use std::collections::BTreeMap;

use fedrs_api::{EndpointSetSpec, ValidEndpointSet};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    catalog::{Lookup, Waiting},
    freshness::Staleness,
    pod::Pod,
};

fn set() -> Arc<ValidEndpointSet> {
    let spec = json!({ "source": { "selector": { "matchLabels": { "app": "web" } } } });
    let spec: EndpointSetSpec = serde_json::from_value(spec).unwrap();
    Arc::new(ValidEndpointSet::check(&spec).unwrap())
}

fn endpoint(cluster: &str, name: &str, is_ready: bool) -> Endpoint {
    let pod = Pod {
        name: name.into(),
        cluster: cluster.into(),
        node: None,
        labels: Arc::default(),
        ports: Arc::default(),
        v4: Some([10, 0, 0, 1].into()),
        v6: None,
        is_ready,
        is_terminating: false,
    };
    Endpoint::new(&Arc::new(pod), Arc::default())
}

/// Endpoints by cluster and name, as a snapshot.
fn snapshot(
    set: &Arc<ValidEndpointSet>,
    version: u64,
    endpoints: &BTreeMap<(u8, u8), bool>,
) -> Arc<EndpointSnapshot> {
    let endpoints = endpoints.iter().map(|((cluster, name), is_ready)| {
        endpoint(&format!("c{cluster}"), &format!("p{name}"), *is_ready)
    });
    Arc::new(EndpointSnapshot {
        version,
        endpoints: Arc::new(endpoints.collect()),
        set: Arc::clone(set),
    })
}

fn follower(version: u64) -> Follower {
    Follower::new(SetKey::new("shop", "web"), version)
}

fn event(follower: &mut Follower, lookup: Lookup) -> Option<Event> {
    let found = Problem::check(&follower.key, lookup);
    let response = follower.next(&found, &[], Timestamp::UNIX_EPOCH)?;
    response.event
}

fn found(snapshot: &Arc<EndpointSnapshot>) -> Lookup {
    Lookup::Found(Arc::clone(snapshot))
}

fn unchanged(version: u64) -> Event {
    Event::Changes(proto::Changes {
        from_version: version,
        version,
        ..proto::Changes::default()
    })
}

#[test]
fn d2_a_client_that_has_the_version_is_told_so_once() {
    let now = snapshot(&set(), 7, &BTreeMap::from([((0, 0), true)]));
    let mut same = follower(7);
    assert_eq!(event(&mut same, found(&now)), Some(unchanged(7)));
    assert_eq!(event(&mut same, found(&now)), None);
    for other in [0, 6, 8] {
        let whole = event(&mut follower(other), found(&now));
        assert!(matches!(whole, Some(Event::Endpoints(_))), "{whole:?}");
    }
}

#[test]
fn d2_after_a_problem_the_client_goes_on_with_what_it_has() {
    let set = set();
    let one = snapshot(&set, 7, &BTreeMap::from([((0, 0), true)]));
    let two = snapshot(&set, 9, &BTreeMap::from([((0, 0), true), ((1, 0), true)]));
    let waiting = || Lookup::Waiting(Waiting::Members);
    let mut client = follower(0);
    assert!(matches!(
        event(&mut client, found(&one)),
        Some(Event::Endpoints(_))
    ));
    assert!(matches!(
        event(&mut client, waiting()),
        Some(Event::Problem(_))
    ));
    assert_eq!(
        event(&mut client, waiting()),
        None,
        "the same problem is reported once"
    );
    assert!(matches!(
        event(&mut client, Lookup::NotFound),
        Some(Event::Problem(_))
    ));
    assert_eq!(
        event(&mut client, found(&one)),
        Some(unchanged(7)),
        "it is over"
    );
    assert!(matches!(
        event(&mut client, waiting()),
        Some(Event::Problem(_))
    ));
    let Some(Event::Changes(changes)) = event(&mut client, found(&two)) else {
        panic!("the client has what was before");
    };
    assert_eq!((changes.from_version, changes.updated.len()), (7, 1));
}

#[test]
fn d2_stale_members_are_told_when_they_are_others() {
    let now = snapshot(&set(), 7, &BTreeMap::new());
    let member = |stale_since| MemberState {
        name: "eu".into(),
        pods: Staleness {
            is_known: true,
            stale_since,
        },
        services: Staleness::default(),
    };
    let mut client = follower(7);
    let mut next = |since, at: i64| {
        let at = Timestamp::from_second(at).unwrap();
        let response = client.next(&Ok(Arc::clone(&now)), &[member(since)], at);
        response.map(|response| {
            response
                .stale_members
                .iter()
                .map(|stale| stale.seconds)
                .collect::<Vec<_>>()
        })
    };
    let since = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(next(None, 0), Some(vec![]));
    assert_eq!(next(since, 5), Some(vec![Some(5)]));
    assert_eq!(next(since, 6), None, "the client knows how time goes");
    assert_eq!(next(None, 7), Some(vec![]));
}

proptest! {
    /// Whatever is looked up in between, and whatever set it is of: what the client has is what there is.
    #[test]
    fn d2_changes_add_up_to_the_whole(steps in prop::collection::vec(
        (prop::collection::btree_map((0..3_u8, 0..4_u8), any::<bool>(), 0..8), 0..8_u8), 1..12,
    )) {
        let mut sets = vec![set()];
        let mut client = follower(0);
        let (mut has, mut has_version) = (BTreeMap::new(), 0);
        for (number, (endpoints, what)) in steps.into_iter().enumerate() {
            match what {
                0 => sets.push(set()),
                1 => _ = event(&mut client, Lookup::NoSource),
                _ => {}
            }
            let now = snapshot(&sets[sets.len() - 1], number as u64 + 1, &endpoints);
            match event(&mut client, found(&now)) {
                Some(Event::Endpoints(whole)) => {
                    has = by_key(whole.endpoints);
                    has_version = whole.version;
                }
                Some(Event::Changes(changes)) => {
                    prop_assert_eq!(changes.from_version, has_version);
                    has_version = changes.version;
                    has.extend(by_key(changes.updated));
                    for key in changes.removed {
                        prop_assert!(has.remove(&(key.cluster, key.pod)).is_some());
                    }
                }
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert_eq!(&has, &by_key(messages::endpoints(&now)));
            prop_assert_eq!(has_version, now.version);
        }
    }
}

fn by_key(endpoints: Vec<proto::Endpoint>) -> BTreeMap<(String, String), proto::Endpoint> {
    let endpoints = endpoints.into_iter();
    endpoints
        .map(|endpoint| {
            let key = endpoint.key.clone().unwrap();
            ((key.cluster, key.pod), endpoint)
        })
        .collect()
}
