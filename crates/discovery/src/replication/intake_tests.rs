//! A replica that is fed has what its upstream has, whatever happens, and never less because something has not come.

use std::{collections::BTreeSet, sync::Arc};

use discovery_proto as proto;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rstest::rstest;

use super::{
    feed::Feed,
    intake::{End, Intake},
};
use crate::{
    catalog::Catalog,
    freshness::{Freshness, Staleness},
    set::SetKey,
    snapshot::Endpoint,
    state::{
        State,
        tests::{By, Event, apply, endpoints, event},
    },
};

const KIND: &str = "EndpointSets";

/// An upstream that knows its host, and the members.
fn upstream(members: &[&str]) -> Arc<Catalog> {
    let catalog = Catalog::waiting_for([KIND]);
    catalog.update(|state| {
        for member in members {
            state.add_member(&Arc::from(*member));
            state.end_pods(member);
            state.refresh_services(member, Freshness::listed);
        }
    });
    catalog.listed(KIND);
    catalog
}

fn happens(upstream: &Catalog, event: &Event) {
    upstream.update(|state| apply(state, event));
}

/// A replica, and the stream that feeds it.
struct Downstream {
    state: State,
    intake: Intake,
    feed: Feed,
}

impl Downstream {
    fn of(upstream: &Arc<Catalog>) -> Self {
        Self {
            state: State::of_kinds([KIND]),
            intake: Intake::default(),
            feed: Feed::new(Arc::clone(upstream)),
        }
    }

    /// The stream has ended, and another one begins.
    fn fail_over(&mut self, upstream: &Arc<Catalog>, lost: Timestamp) {
        self.state.upstream_lost(lost);
        self.intake = Intake::default();
        self.feed = Feed::new(Arc::clone(upstream));
    }

    /// Takes one response. Returns whether there was one, before a heartbeat.
    async fn receive(&mut self) -> Result<bool, End> {
        let response = self.feed.next().await;
        let is_one = response != proto::ReplicateResponse::default();
        let received = self
            .intake
            .receive(&mut self.state, response, Timestamp::now());
        received.map(|()| is_one)
    }

    async fn receive_all(&mut self) -> Result<(), End> {
        while self.receive().await? {}
        Ok(())
    }

    fn pods(&self) -> Vec<String> {
        let set = endpoints(&self.state).remove(&0);
        set.flatten().unwrap_or_default()
    }

    fn staleness(&self, member: &str) -> Staleness {
        self.state.member_state(member).unwrap().pods
    }
}

/// Everything of all sets that answers are made from.
fn everything(state: &State) -> Vec<(SetKey, bool, Vec<Endpoint>)> {
    let keys = state.keys();
    let sets = keys.filter_map(|key| Some((key.clone(), state.set(key)?)));
    sets.map(|(key, entry)| (key, entry.has_source(), entry.endpoints().to_vec()))
        .collect()
}

fn paused() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap()
}

/// The sets that have no endpoint, or do not exist.
fn without_endpoints(state: &State) -> BTreeSet<usize> {
    let found = endpoints(state);
    let has_some = |set: &usize| {
        let endpoints = found.get(set).and_then(Option::as_ref);
        endpoints.is_some_and(|endpoints| !endpoints.is_empty())
    };
    (0..3).filter(|set| !has_some(set)).collect()
}

/// What happens between two changes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nothing,
    Receive(usize),
    ReceiveAll,
    FailOver,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Nothing),
        4 => (1..6_usize).prop_map(Step::Receive),
        2 => Just(Step::ReceiveAll),
        1 => Just(Step::FailOver),
    ]
}

proptest! {
    #[test]
    fn d3_a_replica_has_what_its_upstream_has_and_loses_nothing_meanwhile(
        steps in prop::collection::vec((event(), step()), 0..40),
    ) {
        let (upstream, runtime) = (upstream(&["m0", "m1"]), paused());
        let mut downstream = Downstream::of(&upstream);
        runtime.block_on(async {
            downstream.receive_all().await.unwrap();
            let (mut may_be_empty, _) = upstream.look(without_endpoints);
            for (event, step) in steps {
                happens(&upstream, &event);
                may_be_empty.extend(upstream.look(without_endpoints).0);
                let responses = match step {
                    Step::Nothing => 0,
                    Step::Receive(responses) => responses,
                    Step::ReceiveAll => usize::MAX,
                    Step::FailOver => {
                        downstream.fail_over(&upstream, Timestamp::now());
                        0
                    }
                };
                for response in 0..responses {
                    let was_one = downstream.receive().await.unwrap();
                    let is_empty = without_endpoints(&downstream.state);
                    assert!(is_empty.is_subset(&may_be_empty), "{is_empty:?} lost their endpoints");
                    if !was_one {
                        assert_eq!(everything(&downstream.state), upstream.look(everything).0);
                        may_be_empty = is_empty;
                        break;
                    }
                    assert!(response < 100_000, "it never ends");
                }
            }
            downstream.receive_all().await.unwrap();
            assert_eq!(everything(&downstream.state), upstream.look(everything).0);
            for member in ["m0", "m1"] {
                let current = Staleness { is_known: true, stale_since: None };
                assert_eq!(downstream.staleness(member), current);
            }
        });
    }
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_secs(seconds)
}

/// An upstream with a set of all pods, and one pod of `m0`.
fn with_pod(name: usize) -> Arc<Catalog> {
    let upstream = upstream(&["m0"]);
    happens(&upstream, &Event::Set(0, By::Selector));
    happens(&upstream, &Event::Pod(0, name, 0, true));
    upstream
}

#[tokio::test(start_paused = true)]
async fn d3_ages_are_those_of_the_upstream_and_go_on_without_it() {
    let upstream = with_pod(1);
    let mut downstream = Downstream::of(&upstream);
    downstream.receive_all().await.unwrap();
    let since = ago(300);
    upstream.update(|state| state.stale("m0", since, false));
    downstream.receive_all().await.unwrap();
    let stale = downstream.staleness("m0").stale_since.unwrap();
    assert!(
        stale.duration_since(since).abs() < SignedDuration::from_secs(1),
        "{stale}"
    );
    downstream.state.upstream_lost(ago(10));
    assert_eq!(downstream.staleness("m0").stale_since, Some(stale));
    assert_eq!(downstream.pods(), ["m0/p1 10.0.0.1"]);
    let host = downstream.state.host_staleness();
    assert!(host.is_known && host.stale_since.is_some());
}

#[tokio::test(start_paused = true)]
async fn d3_what_is_known_better_is_held_until_another_upstream_has_caught_up() {
    let mut downstream = Downstream::of(&with_pod(1));
    downstream.receive_all().await.unwrap();
    // It has lost the member an hour ago, and knows another pod of it.
    let older = with_pod(2);
    older.update(|state| state.stale("m0", ago(3600), true));
    let lost = ago(60);
    downstream.fail_over(&older, lost);
    downstream.receive_all().await.unwrap();
    assert_eq!(downstream.pods(), ["m0/p1 10.0.0.1"]);
    assert_eq!(downstream.staleness("m0").stale_since, Some(lost));
    happens(&older, &Event::Pod(0, 3, 0, true));
    downstream.receive_all().await.unwrap();
    assert_eq!(downstream.pods(), ["m0/p1 10.0.0.1"]);
    // The first list since then.
    happens(&older, &Event::List(0, vec![(4, 0, true)]));
    let end = downstream.receive_all().await.unwrap_err();
    assert!(matches!(end, End::CaughtUp), "{end}");
    downstream.fail_over(&older, lost);
    downstream.receive_all().await.unwrap();
    assert_eq!(downstream.pods(), ["m0/p4 10.0.0.4"]);
    assert_eq!(downstream.staleness("m0").stale_since, None);
}

#[rstest]
#[case::without_the_member(&[])]
#[case::with_a_member_that_it_has_not_listed(&["m0"])]
#[tokio::test(start_paused = true)]
async fn d3_a_member_that_an_upstream_does_not_know_keeps_its_pods(#[case] members: &[&str]) {
    let mut downstream = Downstream::of(&with_pod(1));
    downstream.receive_all().await.unwrap();
    let other = upstream(&[]);
    happens(&other, &Event::Set(0, By::Selector));
    for name in members {
        other.update(|state| state.add_member(&Arc::from(*name)));
    }
    let lost = ago(60);
    downstream.fail_over(&other, lost);
    downstream.receive_all().await.unwrap();
    assert_eq!(downstream.pods(), ["m0/p1 10.0.0.1"]);
    assert_eq!(downstream.staleness("m0").stale_since, Some(lost));
    // It is listed for the first time, after everything else has come.
    other.update(|state| state.add_member(&Arc::from("m0")));
    happens(&other, &Event::List(0, vec![(2, 0, true)]));
    let end = downstream.receive_all().await.unwrap_err();
    assert!(matches!(end, End::CaughtUp), "{end}");
    downstream.fail_over(&other, lost);
    downstream.receive_all().await.unwrap();
    assert_eq!(downstream.pods(), ["m0/p2 10.0.0.2"]);
}

#[tokio::test(start_paused = true)]
async fn d3_a_member_that_is_new_is_not_known_until_it_is_listed() {
    let upstream = upstream(&[]);
    happens(&upstream, &Event::Set(0, By::Selector));
    let mut downstream = Downstream::of(&upstream);
    downstream.receive_all().await.unwrap();
    upstream.update(|state| state.add_member(&Arc::from("m0")));
    happens(&upstream, &Event::Pod(0, 1, 0, true));
    downstream.receive_all().await.unwrap();
    assert!(!downstream.staleness("m0").is_known);
    upstream.update(|state| state.refresh_services("m0", Freshness::listed));
    happens(&upstream, &Event::List(0, vec![(2, 0, true)]));
    downstream.receive_all().await.unwrap();
    assert_eq!(downstream.pods(), ["m0/p2 10.0.0.2"]);
    assert!(downstream.staleness("m0").is_known);
}

/// Only pods that sets have are sent.
#[tokio::test(start_paused = true)]
async fn d3_pods_of_no_set_are_not_sent() {
    let upstream = with_pod(1);
    // With another label.
    happens(&upstream, &Event::Pod(0, 2, 1, true));
    let mut downstream = Downstream::of(&upstream);
    downstream.receive_all().await.unwrap();
    let pods = |downstream: &Downstream| {
        let member = downstream.state.members().next().unwrap();
        member
            .kept()
            .iter()
            .map(|(_, pods)| pods.len())
            .sum::<usize>()
    };
    assert_eq!(pods(&downstream), 1);
    happens(&upstream, &Event::SetGone(0));
    downstream.receive_all().await.unwrap();
    assert_eq!(pods(&downstream), 0);
}

#[rstest]
#[case::a_member_without_a_name(|part: &mut proto::ReplicatedMember| part.name.clear())]
#[case::a_pod_without_a_name(|part: &mut proto::ReplicatedMember| part.pods[0].name.clear())]
#[case::a_place_without_labels(|part: &mut proto::ReplicatedMember| part.pods[0].labels = 1)]
#[case::a_place_without_a_node(|part: &mut proto::ReplicatedMember| part.pods[0].node = Some(7))]
#[case::half_an_address(|part: &mut proto::ReplicatedMember| part.pods[0].ipv6 = vec![1; 8])]
#[case::no_selector(|part: &mut proto::ReplicatedMember| part.services.push(proto::ReplicatedSelector::default()))]
fn what_does_not_fit_ends_the_stream(#[case] damage: impl Fn(&mut proto::ReplicatedMember)) {
    let mut part = proto::ReplicatedMember {
        name: "m0".to_owned(),
        labels: vec![proto::PodLabels::default()],
        ports: vec![proto::PodPorts::default()],
        pods: vec![proto::ReplicatedPod {
            namespace: "shop".to_owned(),
            name: "p".to_owned(),
            ..proto::ReplicatedPod::default()
        }],
        ..proto::ReplicatedMember::default()
    };
    let receive = |part| {
        let response = proto::ReplicateResponse {
            members: vec![part],
            ..proto::ReplicateResponse::default()
        };
        let mut state = State::of_kinds([KIND]);
        Intake::default().receive(&mut state, response, Timestamp::now())
    };
    receive(part.clone()).unwrap();
    damage(&mut part);
    let end = receive(part).unwrap_err();
    assert!(matches!(end, End::Misfit(_)), "{end}");
}
