//! Which endpoints requests go to, and what a balancer is told.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::{
    endpoint::Port,
    held,
    name::SetName,
    resolved::{Age, Confirmation, Resolved, View},
};

/// A pod that is ready, that serves while it is being removed, or that does neither.
fn endpoint(pod: &str, state: &str, address: &str) -> Endpoint {
    Endpoint {
        cluster: "eu".to_owned(),
        pod: pod.to_owned(),
        addresses: vec![address.to_owned()],
        ports: vec![Port {
            name: "http".to_owned(),
            number: 80,
        }],
        ready: state == "ready",
        serving: state != "down",
        terminating: state == "serving",
        zone: String::new(),
        node: String::new(),
        labels: BTreeMap::new(),
    }
}

fn set(states: &[&str]) -> Vec<Endpoint> {
    let states = states.iter().enumerate();
    states
        .map(|(index, state)| endpoint(&index.to_string(), state, &format!("10.0.0.{index}")))
        .collect()
}

#[rstest]
#[case::ready(&["ready", "serving", "down", "ready"], &["0", "3"])]
#[case::serving_if_none_is_ready(&["serving", "down"], &["0"])]
#[case::all_if_none_serves(&["down", "down"], &["0", "1"])]
#[case::none(&[], &[])]
fn d1_requests_go_to_the_best(#[case] states: &[&str], #[case] expected: &[&str]) {
    let targets = targets(&held::sorted(set(states)), "http");
    let pods: Vec<_> = targets.keys().map(|key| key.pod.as_str()).collect();
    assert_eq!(pods, expected);
}

#[test]
fn d1_endpoints_without_the_port_are_left_out() {
    let mut endpoints = set(&["ready", "serving"]);
    endpoints[0].ports.clear();
    let targets = targets(&held::sorted(endpoints), "http");
    let addresses: Vec<_> = targets
        .values()
        .map(|(address, _)| address.as_str())
        .collect();
    assert_eq!(addresses, ["10.0.0.1:80"], "the ready one can't be used");
}

fn view(version: u64, endpoints: Vec<Endpoint>) -> View {
    View::Known(Arc::new(Resolved {
        version,
        endpoints: held::sorted(endpoints),
        stale_members: Vec::new(),
        problem: None,
        confirmation: Confirmation::Past(Age {
            then: Duration::ZERO,
            at: tokio::time::Instant::now(),
        }),
        is_from_service: true,
    }))
}

/// The next changes: an address for an insertion, none for a removal.
async fn next<S>(discover: &mut S, count: usize) -> Vec<(String, Option<String>)>
where
    S: futures::Stream<Item = Result<Change<EndpointKey, String>, Infallible>> + Unpin,
{
    let changes = discover.take(count).collect::<Vec<_>>().await;
    let changes = changes.into_iter().map(|change| match change {
        Ok(Change::Insert(key, address)) => (key.pod, Some(address)),
        Ok(Change::Remove(key)) => (key.pod, None),
    });
    changes.collect()
}

#[tokio::test]
async fn d2_a_balancer_is_told_what_changes() {
    let name = SetName::new("shop", "web").unwrap();
    let (endpoints, publisher) = Endpoints::new(name, View::Unknown(None));
    let mut discover = endpoints.discover("http", |_, address| address.to_owned());
    publisher.publish(&view(1, vec![endpoint("a", "ready", "10.0.0.1")]));
    let inserted = |pod: &str, address: &str| (pod.to_owned(), Some(address.to_owned()));
    assert_eq!(next(&mut discover, 1).await, [inserted("a", "10.0.0.1:80")]);

    let other = vec![endpoint("b", "ready", "fd00::2")];
    publisher.publish(&view(2, other.clone()));
    let removed = ("a".to_owned(), None);
    assert_eq!(
        next(&mut discover, 2).await,
        [inserted("b", "[fd00::2]:80"), removed]
    );

    publisher.publish(&view(3, other));
    publisher.publish(&view(4, vec![endpoint("b", "ready", "fd00::3")]));
    assert_eq!(
        next(&mut discover, 1).await,
        [inserted("b", "[fd00::3]:80")]
    );

    drop(publisher);
    let more = futures::FutureExt::now_or_never(discover.next());
    assert!(more.is_none(), "a balancer goes on with what it has");
}

proptest! {
    /// The balancer has what there is after each change, and never nothing in between.
    #[test]
    fn d2_changes_lead_from_one_to_the_other(
        before in prop::collection::btree_map(0..5_u8, 0..3_u8, 0..5),
        after in prop::collection::btree_map(0..5_u8, 0..3_u8, 1..5),
    ) {
        let of = |pods: &BTreeMap<u8, u8>| {
            let pods = pods.iter().map(|(pod, address)| {
                endpoint(&pod.to_string(), "ready", &format!("10.0.0.{address}"))
            });
            targets(&held::sorted(pods.collect()), "http")
        };
        let (before, after) = (of(&before), of(&after));
        let mut has = before.clone();
        for change in changes(&before, &after) {
            match change {
                Change::Insert(key, target) => _ = has.insert(key, target),
                Change::Remove(key) => prop_assert!(has.remove(&key).is_some()),
            }
            prop_assert!(!has.is_empty());
        }
        prop_assert_eq!(has, after);
    }
}
