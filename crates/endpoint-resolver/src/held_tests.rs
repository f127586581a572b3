//! What responses make of what is held: deltas add up to the whole, and nothing but an answer changes the endpoints.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const SERVER: ServerIndex = 0;

fn message(cluster: &str, pod: &str, ready: bool) -> proto::Endpoint {
    proto::Endpoint {
        key: Some(key(cluster, pod)),
        addresses: vec!["10.0.0.1".to_owned()],
        ready,
        ..proto::Endpoint::default()
    }
}

fn key(cluster: &str, pod: &str) -> proto::EndpointKey {
    proto::EndpointKey {
        cluster: cluster.to_owned(),
        pod: pod.to_owned(),
    }
}

fn response(event: Event) -> proto::WatchResponse {
    proto::WatchResponse {
        event: Some(event),
        ..proto::WatchResponse::default()
    }
}

fn whole(version: u64, endpoints: Vec<proto::Endpoint>) -> Event {
    Event::Endpoints(proto::Endpoints { version, endpoints })
}

fn problem(reason: proto::problem::Reason) -> Event {
    Event::Problem(proto::Problem {
        reason: reason.into(),
        message: "because".to_owned(),
    })
}

fn unchanged(from_version: u64, version: u64) -> proto::Changes {
    proto::Changes {
        from_version,
        version,
        ..proto::Changes::default()
    }
}

/// Holds two pods at version 7 of the server.
fn two_pods() -> Held {
    let mut held = Held::new(View::Unknown(None));
    let pods = vec![message("eu", "web-1", true), message("eu", "web-2", true)];
    let applied = held.apply(response(whole(7, pods)), SERVER, Instant::now());
    assert_eq!(applied, Ok(true));
    held
}

fn current(held: &Held) -> Arc<Resolved> {
    Arc::clone(held.view().current().expect("there is an answer"))
}

fn pods(held: &Held) -> Vec<String> {
    let current = current(held);
    let endpoints = current.endpoints.iter();
    endpoints
        .map(|endpoint| format!("{}/{}", endpoint.cluster, endpoint.pod))
        .collect()
}

#[test]
fn d3_an_answer_is_sorted_and_live() {
    let mut held = Held::new(View::Unknown(None));
    let pods_sent = vec![
        message("us", "a", true),
        message("eu", "b", true),
        message("eu", "a", true),
    ];
    held.apply(response(whole(3, pods_sent)), SERVER, Instant::now())
        .unwrap();
    assert_eq!(pods(&held), ["eu/a", "eu/b", "us/a"]);
    let current = current(&held);
    assert!(current.is_live());
    assert_eq!(
        (current.version, current.age(), &current.problem),
        (3, Duration::ZERO, &None)
    );
}

#[rstest]
#[case::not_found(proto::problem::Reason::NotFound, Reason::NotFound)]
#[case::invalid(proto::problem::Reason::Invalid, Reason::Invalid)]
#[case::waiting(proto::problem::Reason::Waiting, Reason::Waiting)]
#[case::forbidden(proto::problem::Reason::Forbidden, Reason::Forbidden)]
#[case::unknown(proto::problem::Reason::Unspecified, Reason::Unavailable)]
fn d3_a_problem_keeps_the_last_endpoints(
    #[case] sent: proto::problem::Reason,
    #[case] reason: Reason,
) {
    let mut held = two_pods();
    let now = Instant::now();
    assert_eq!(held.apply(response(problem(sent)), SERVER, now), Ok(true));
    assert_eq!(
        held.apply(response(problem(sent)), SERVER, now),
        Ok(false),
        "it is known"
    );
    let current = current(&held);
    assert_eq!(
        current.problem.as_ref().map(|problem| problem.reason),
        Some(reason)
    );
    assert_eq!((pods(&held).len(), current.is_live()), (2, false));

    let over = Event::Changes(unchanged(7, 7));
    assert_eq!(held.apply(response(over), SERVER, now), Ok(true));
    assert_eq!((pods(&held).len(), held.view().problem()), (2, None));
}

#[test]
fn d3_a_problem_without_an_answer_is_no_empty_set() {
    let mut held = Held::new(View::Unknown(None));
    let sent = problem(proto::problem::Reason::NotFound);
    held.apply(response(sent), SERVER, Instant::now()).unwrap();
    assert_eq!(held.view().current(), None);
    assert_eq!(
        held.view().problem().map(|problem| problem.reason),
        Some(Reason::NotFound)
    );
}

#[rstest]
#[case::whole(whole(8, vec![]))]
#[case::changes(Event::Changes(proto::Changes {
    removed: vec![key("eu", "web-1"), key("eu", "web-2")],
    ..unchanged(7, 8)
}))]
fn d3_a_set_that_the_service_says_is_empty_is_empty(#[case] event: Event) {
    let mut held = two_pods();
    assert_eq!(
        held.apply(response(event), SERVER, Instant::now()),
        Ok(true)
    );
    assert_eq!((pods(&held).len(), current(&held).version), (0, 8));
}

#[rstest]
#[case::other_version(Event::Changes(unchanged(6, 8)))]
#[case::no_key(whole(8, vec![proto::Endpoint::default()]))]
#[case::no_key_in_changes(Event::Changes(proto::Changes {
    updated: vec![proto::Endpoint::default()],
    ..unchanged(7, 8)
}))]
fn d2_after_a_misfit_the_client_asks_for_the_whole(#[case] event: Event) {
    let mut held = two_pods();
    assert_eq!(held.known_version(SERVER), 7);
    let applied = held.apply(response(event), SERVER, Instant::now());
    assert!(applied.is_err(), "{applied:?}");
    assert_eq!((held.known_version(SERVER), pods(&held).len()), (0, 2));
}

#[test]
fn d2_versions_are_of_one_replica() {
    let mut held = two_pods();
    assert_eq!((held.known_version(0), held.known_version(1)), (7, 0));
    let changes = response(Event::Changes(unchanged(7, 7)));
    let misfit = Misfit::Version { from: 7, has: 0 };
    assert_eq!(held.apply(changes, 1, Instant::now()), Err(misfit));
    // An older version of another replica is an answer like any other.
    held.apply(response(whole(3, vec![])), 1, Instant::now())
        .unwrap();
    assert_eq!((held.known_version(0), held.known_version(1)), (0, 3));

    let from_disk = Held::new(View::Known(current(&held)));
    assert_eq!(from_disk.known_version(1), 0);
}

#[tokio::test(start_paused = true)]
async fn d3_the_age_begins_when_the_answer_is_no_longer_confirmed() {
    let mut held = two_pods();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(current(&held).age(), Duration::ZERO);
    assert!(held.report(Problem::unavailable("broken"), Instant::now()));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(held.report(Problem::unavailable("refused"), Instant::now()));
    assert!(!held.report(Problem::unavailable("refused"), Instant::now()));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(
        current(&held).age(),
        Duration::from_secs(10),
        "another problem confirms nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn d2_stale_members_age() {
    let mut held = two_pods();
    let stale = |cluster: &str, seconds| proto::StaleMember {
        cluster: cluster.to_owned(),
        seconds,
    };
    let changes = proto::WatchResponse {
        stale_members: vec![stale("eu", Some(40)), stale("us", None)],
        ..response(Event::Changes(unchanged(7, 7)))
    };
    held.apply(changes, SERVER, Instant::now()).unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    let current = current(&held);
    let stale: Vec<_> = current
        .stale_members
        .iter()
        .map(|member| (member.cluster.as_str(), member.age()))
        .collect();
    assert_eq!(stale, [("eu", Some(Duration::from_secs(42))), ("us", None)]);
}

/// Pods that are ready or not, by cluster and number.
type Pods = BTreeMap<(u8, u8), bool>;

fn messages(pods: &Pods) -> Vec<proto::Endpoint> {
    let pods = pods.iter();
    pods.map(|((cluster, pod), ready)| message(&format!("c{cluster}"), &format!("p{pod}"), *ready))
        .collect()
}

/// What the service sends to a client that has `before`.
fn delta(before: &Pods, now: &Pods) -> (Vec<proto::Endpoint>, Vec<proto::EndpointKey>) {
    let updated = now
        .iter()
        .filter(|(key, ready)| before.get(key) != Some(ready));
    let removed = before.keys().filter(|key| !now.contains_key(key));
    let updated = updated.map(|(key, ready)| (*key, *ready)).collect();
    let removed = removed.map(|(cluster, pod)| key(&format!("c{cluster}"), &format!("p{pod}")));
    (messages(&updated), removed.collect())
}

proptest! {
    /// Whatever comes in between, problems and broken streams too: what the client has is what there is.
    #[test]
    fn d2_deltas_add_up_to_the_whole(steps in prop::collection::vec(
        (prop::collection::btree_map((0..3_u8, 0..4_u8), any::<bool>(), 0..8), 0..6_u8), 1..12,
    )) {
        let mut held = Held::new(View::Unknown(None));
        let (mut before, mut version) = (Pods::new(), 0);
        for (now, what) in steps {
            let at = Instant::now();
            match what {
                0 => _ = held.apply(response(problem(proto::problem::Reason::Waiting)), SERVER, at),
                1 => _ = held.report(Problem::unavailable("broken"), at),
                _ => {}
            }
            let known = held.known_version(SERVER);
            prop_assert_eq!(known, version);
            version += 3;
            let event = if known == 0 || what == 2 {
                whole(version, messages(&now))
            } else {
                let (updated, removed) = delta(&before, &now);
                Event::Changes(proto::Changes { from_version: known, version, updated, removed })
            };
            prop_assert_eq!(held.apply(response(event), SERVER, at), Ok(true));
            prop_assert_eq!(&current(&held).endpoints, &all(messages(&now)).unwrap());
            before = now;
        }
    }
}
