use std::collections::BTreeSet;

use super::*;

const SET: &str = "web";

/// The set exists, and discovery has listed the members `m1` and `m2`.
async fn answers() -> Answers {
    let mut answers = Answers::new(&[(SET, SetKind::FederatedReplicaSet)], &["m1", "m2"]);
    tokio::time::advance(Duration::from_secs(10_000)).await;
    put_host(&mut answers, &[]);
    answers.put_known(["m1", "m2"].map(|name| (name.to_owned(), true)).into());
    pass(1_000).await;
    answers
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

fn put_host(answers: &mut Answers, lost: &[&str]) {
    let lost: BTreeSet<_> = lost.iter().map(|name| (*name).to_owned()).collect();
    let set = answers.sets.get_mut(SET).unwrap();
    set.host.put(HostTruth {
        is_there: true,
        has_source: true,
        lost,
    });
}

fn ready() -> Serves {
    Serves {
        addresses: vec!["10.0.0.1".parse().unwrap()],
        is_terminating: false,
    }
}

fn put_pod(answers: &mut Answers, cluster: &str, serves: Option<Serves>) {
    let member = answers.members.get_mut(cluster).unwrap();
    member.put("pod", serves.map(|serves| (SET.to_owned(), serves)));
}

/// What is wrong with an answer that has the pods of these clusters.
fn wrong(answers: &mut Answers, version: u64, clusters: &[&str]) -> Option<Invariant> {
    let endpoints = clusters.iter().map(|cluster| {
        let pod = ((*cluster).to_owned(), "pod".to_owned());
        (pod, ready())
    });
    let answer = Answer::Endpoints(AnswerOfSet {
        version,
        endpoints: endpoints.collect(),
    });
    let (violation, _) = answers.answered(SET, &answer);
    violation.map(|violation| violation.invariant)
}

#[tokio::test(start_paused = true)]
async fn d2_d3_a_change_is_answered_at_once_unless_something_hides_it() {
    let mut answers = answers().await;
    assert_eq!(
        wrong(&mut answers, 1, &["m1"]),
        Some(Invariant::TrueEndpoints)
    );
    put_pod(&mut answers, "m1", Some(ready()));
    assert_eq!(wrong(&mut answers, 2, &[]), None);
    assert_eq!(wrong(&mut answers, 3, &["m1"]), None);
    pass(3).await;
    assert_eq!(wrong(&mut answers, 4, &[]), Some(Invariant::NoEmptyAnswer));
    put_pod(&mut answers, "m2", Some(ready()));
    pass(3).await;
    assert_eq!(
        wrong(&mut answers, 5, &["m1"]),
        Some(Invariant::NoLostEndpoint)
    );

    answers.begin("m1", Hindrance::Outage, "unreachable");
    put_pod(&mut answers, "m1", None);
    pass(2_000).await;
    assert_eq!(wrong(&mut answers, 6, &["m1", "m2"]), None);
    answers.end("m1", "unreachable", Duration::ZERO);
    pass(239).await;
    assert_eq!(wrong(&mut answers, 6, &["m1", "m2"]), None);
    pass(1).await;
    let gone = wrong(&mut answers, 6, &["m1", "m2"]);
    assert_eq!(gone, Some(Invariant::TrueEndpoints));
}

#[tokio::test(start_paused = true)]
async fn d3_an_answer_that_lacks_a_cluster_is_right_only_where_it_is_lost_or_not_listed() {
    let mut answers = answers().await;
    for cluster in ["m1", "m2"] {
        put_pod(&mut answers, cluster, Some(ready()));
    }
    put_host(&mut answers, &["m1"]);
    pass(10).await;
    assert_eq!(wrong(&mut answers, 1, &["m2"]), None);
    let both = wrong(&mut answers, 2, &["m1", "m2"]);
    assert_eq!(both, Some(Invariant::TrueEndpoints));
    assert_eq!(
        wrong(&mut answers, 3, &["m1"]),
        Some(Invariant::NoLostEndpoint)
    );

    put_host(&mut answers, &[]);
    answers.process_ends();
    answers.process_starts();
    answers.put_known([("m1".to_owned(), false), ("m2".to_owned(), true)].into());
    assert_eq!(wrong(&mut answers, 4, &["m2"]), None);
    assert_eq!(wrong(&mut answers, 5, &[]), Some(Invariant::NoEmptyAnswer));
    pass(240).await;
    assert_eq!(
        wrong(&mut answers, 6, &["m2"]),
        Some(Invariant::NoLostEndpoint)
    );
}

#[tokio::test(start_paused = true)]
async fn d3_versions_grow_over_restarts_and_each_has_one_answer() {
    let mut answers = answers().await;
    put_pod(&mut answers, "m1", Some(ready()));
    assert_eq!(wrong(&mut answers, 2, &["m1"]), None);
    assert_eq!(wrong(&mut answers, 2, &[]), Some(Invariant::VersionsGrow));
    answers.process_ends();
    answers.process_starts();
    assert_eq!(
        wrong(&mut answers, 1, &["m1"]),
        Some(Invariant::VersionsGrow)
    );
}

#[tokio::test(start_paused = true)]
async fn d3_discovery_waits_only_for_what_it_can_not_see() {
    let mut answers = answers().await;
    put_pod(&mut answers, "m1", Some(ready()));
    pass(10).await;
    let waits = |answers: &mut Answers| {
        let (violation, _) = answers.answered(SET, &Answer::Waits("waiting".to_owned()));
        violation.map(|violation| violation.invariant)
    };
    assert_eq!(waits(&mut answers), Some(Invariant::NoEmptyAnswer));
    answers.process_ends();
    answers.process_starts();
    assert_eq!(waits(&mut answers), None);
    pass(240).await;
    answers.put_known([("m1".to_owned(), true)].into());
    assert_eq!(waits(&mut answers), Some(Invariant::NoEmptyAnswer));
    let (nothing, _) = answers.answered(SET, &Answer::Nothing("gone".to_owned()));
    assert_eq!(nothing.unwrap().invariant, Invariant::NoEmptyAnswer);
}
