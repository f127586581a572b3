//! Deployments: which pods are theirs, whichever watch is ahead, and what a failing watch means for which kind.

mod member;
mod recount;

use serde_json::{Value, json};

use self::member::*;
use super::*;
use crate::workload::{PodCounts, WorkloadView};

const SETS: LocalKind = LocalKind::ReplicaSet;
const DEPLOYMENTS: LocalKind = LocalKind::Deployment;

#[test]
fn the_counts_of_a_deployment_are_over_the_pods_of_all_its_replica_sets() {
    let mut member = Member::new();
    for object in [
        deployment("web", "d", 5),
        set("old", Some(("web", "d")), 2),
        set("new", Some(("web", "d")), 3),
        with_template(pod("p1", "old"), 1),
        with_template(unscheduled(pod("p2", "old")), 1),
        with_template(pod("p3", "new"), 2),
        with_template(pod("p4", "new"), 2),
        unscheduled(pod("p5", "new")),
    ] {
        member.show(object);
    }
    let now = (member.store.clock)();
    let expected = PodCounts {
        active: 5,
        ready: 3,
        unscheduled: 2,
        by_template: vec![(0, 1), (1, 2), (2, 2)],
        unscheduled_since: vec![(now, 2)],
        unscheduled_message: Some("no room".to_owned()),
        ..PodCounts::default()
    };
    let view = member.view("web");
    assert_eq!(view.pods, expected);
    assert_eq!((view.updated_replicas(2), view.updated_replicas(1)), (2, 2));
    let sets = member.store.workload(&WorkloadKey::new("default", "old"));
    assert_eq!(
        sets.pods.active, 2,
        "a ReplicaSet has the same counts as before"
    );
}

#[test]
fn a_pod_counts_whichever_of_the_three_watches_is_ahead() {
    let objects = [
        deployment("web", "d", 1),
        set("new", Some(("web", "d")), 1),
        pod("p", "new"),
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut member = Member::new();
        let mut reported = Vec::new();
        for object in order {
            reported = member.show(objects[object].clone());
        }
        assert_eq!(member.active("web"), 1, "{order:?}");
        let is_of_deployment = |text: &String| text.starts_with("FederatedDeployment default/web ");
        assert!(
            reported.iter().any(is_of_deployment),
            "the last event is a change of the Deployment: {order:?} {reported:?}"
        );
    }
}

#[test]
fn f22_changes_of_pods_are_those_of_their_deployment_where_it_is_known() {
    let mut member = Member::new();
    member.show(set("new", Some(("web", "d")), 1));
    assert_eq!(
        member.show(pod("p", "new")),
        ["default/web Pods"],
        "by its label, as without Deployments"
    );
    member.show(deployment("web", "d", 1));
    let since = (member.store.clock)();
    assert_eq!(
        member.show(unscheduled(pod("p", "new"))),
        [format!(
            "FederatedDeployment default/web PodUnscheduled {{ since: {since} }}"
        )]
    );
    assert_eq!(
        member.show(set("other", Some(("web", "d")), 1)),
        [
            "default/other Status",
            "FederatedDeployment default/web Pods"
        ]
    );
    assert_eq!(
        member.show(set("other", Some(("web", "d")), 2)),
        ["default/other Drift"],
        "the Deployment has the same ReplicaSets"
    );
    assert_eq!(
        member.delete_set("other"),
        [
            "default/other Drift",
            "FederatedDeployment default/web Pods"
        ]
    );
    let lost = member.list(Watch::Pods, || {});
    assert_eq!(texts(lost), ["FederatedDeployment default/web Pods"]);
    let lost = member.list(Watch::Workloads(LocalKind::ReplicaSet), || {});
    assert_eq!(
        texts(lost),
        ["default/new Drift", "FederatedDeployment default/web Pods"]
    );
}

#[test]
fn a_replica_set_that_changes_its_owner_takes_its_pods_along() {
    let mut member = Member::new();
    for object in [
        deployment("web", "d", 1),
        deployment("shop", "e", 1),
        set("new", Some(("web", "d")), 1),
        pod("p", "new"),
    ] {
        member.show(object);
    }
    for (owner, counts, changed) in [
        (Some(("shop", "e")), (0, 1), vec!["shop", "web"]),
        (None, (0, 0), vec!["shop"]),
        (Some(("web", "d")), (1, 0), vec!["web"]),
        // An earlier Deployment of the name.
        (Some(("web", "c")), (0, 0), vec!["web"]),
    ] {
        let changes = member.show(set("new", owner, 1)).into_iter();
        let changes = changes.filter(|change| !change.starts_with("default/new "));
        let expected = changed.iter();
        let expected = expected.map(|name| format!("FederatedDeployment default/{name} Pods"));
        assert!(changes.eq(expected), "{owner:?}");
        let active = (member.active("web"), member.active("shop"));
        assert_eq!(active, counts, "{owner:?}");
    }
}

#[test]
fn pods_of_a_replica_set_that_is_deleted_copied_or_not_known_count_for_no_deployment() {
    let mut member = Member::new();
    for object in [
        deployment("web", "d", 1),
        set("new", Some(("web", "d")), 1),
        pod("p1", "new"),
        pod("p2", "copied"),
        pod("p3", "d"),
    ] {
        member.show(object);
    }
    assert_eq!(member.active("web"), 1);
    member.show(deployment("web", "restored", 1));
    assert_eq!(member.active("web"), 0, "another Deployment of the name");
    member.show(deployment("web", "d", 1));
    member.delete_set("new");
    assert_eq!(member.active("web"), 0);
    member.repeat({
        let mut late = set("new", Some(("web", "d")), 1);
        late["metadata"]["resourceVersion"] = json!("11");
        late
    });
    assert_eq!(member.active("web"), 0, "an event of before the deletion");
}

#[test]
fn f30_pods_that_no_watch_shows_count_in_the_status_of_the_deployment() {
    let mut found = deployment("web", "d", 2);
    found["spec"]["template"]["metadata"]["labels"] = json!({});
    let mut member = Member::new();
    member.show(found.clone());
    let has_unlabeled = |member: &Member| member.view("web").has_unlabeled_pods();
    assert!(has_unlabeled(&member), "its ReplicaSet has no labels");
    member.show(deployment("web", "d", 2));
    assert!(has_unlabeled(&member), "somebody has removed them");
    member.show(found);
    let mut of_found = set("new", Some(("web", "d")), 2);
    of_found["spec"]["template"]["metadata"]["labels"] = json!({});
    member.show(of_found);
    assert!(
        has_unlabeled(&member),
        "the ReplicaSet was labeled, its pods were not"
    );
    member.show(pod("p1", "new"));
    assert!(has_unlabeled(&member));
    member.show(pod("p2", "new"));
    assert!(!has_unlabeled(&member), "all are labeled");
}

#[test]
fn f30_pods_that_a_replica_set_of_the_deployment_adopted_are_unlabeled_and_late_statuses_are_not() {
    let mut member = Member::new();
    member.show(deployment("web", "d", 3));
    member.show(set("new", Some(("web", "d")), 3));
    let view = member.view("web");
    let labeled = |view: &WorkloadView| view.workload.as_ref().unwrap().fully_labeled_replicas;
    assert_eq!((labeled(&view), view.has_unlabeled_pods()), (3, false));
    let mut adopts = set("new", Some(("web", "d")), 3);
    adopts["status"]["fullyLabeledReplicas"] = json!(1);
    member.show(adopts);
    let view = member.view("web");
    assert_eq!((labeled(&view), view.has_unlabeled_pods()), (1, true));
    // The status of the ReplicaSet is ahead of that of the Deployment.
    member.show(set("new", Some(("web", "d")), 2));
    let view = member.view("web");
    assert_eq!((labeled(&view), view.has_unlabeled_pods()), (3, false));
    // Pods of an earlier template, whose ReplicaSet is not known.
    let mut rolls = deployment("web", "d", 3);
    rolls["status"]["updatedReplicas"] = json!(2);
    member.show(rolls);
    let view = member.view("web");
    assert_eq!((labeled(&view), view.has_unlabeled_pods()), (2, true));
}

#[test]
fn f20_replicas_that_the_controller_of_replica_sets_may_still_delete_do_not_stay() {
    let mut member = Member::new();
    let observed = |mut object: Value, generation: u32, observed: u32| {
        object["metadata"]["generation"] = json!(generation);
        object["status"]["observedGeneration"] = json!(observed);
        (
            object["status"]["replicas"],
            object["status"]["updatedReplicas"],
        ) = (json!(9), json!(9));
        object
    };
    let lowest = |member: &Member| member.view("web").workload.unwrap().lowest_replicas;
    let of = |replicas| set("new", Some(("web", "d")), replicas);
    member.show(deployment("web", "d", 9));
    member.show(of(9));
    assert_eq!(lowest(&member), 9);
    // Scaled down and up again: the Deployment has observed both, its ReplicaSet neither.
    member.show(observed(deployment("web", "d", 4), 2, 2));
    member.show(observed(of(4), 2, 1));
    member.show(observed(deployment("web", "d", 9), 3, 3));
    member.show(observed(of(9), 3, 1));
    assert_eq!(lowest(&member), 4);
    member.show(observed(of(9), 3, 3));
    assert_eq!(lowest(&member), 9);
}

#[test]
fn f32_a_deployment_that_rolls_is_not_behind() {
    let mut member = Member::new();
    let behind = |member: &Member| member.view("web").workload.unwrap().behind_since;
    let seconds = Arc::new(parking_lot::Mutex::new(0));
    let clock = Arc::clone(&seconds);
    member.store.clock = Arc::new(move || Timestamp::from_second(*clock.lock()).unwrap());
    // One pod is missing all the time, and always another one.
    for (second, updated, since) in [(1, 0, 1), (2, 1, 2), (3, 1, 2), (4, 2, 4)] {
        *seconds.lock() = second;
        let mut rolls = deployment("web", "d", 3);
        rolls["status"]["replicas"] = json!(2);
        rolls["status"]["updatedReplicas"] = json!(updated);
        member.show(rolls);
        assert_eq!(behind(&member), Timestamp::from_second(since).ok());
    }
    let mut fails = deployment("web", "d", 3);
    fails["status"]["conditions"] =
        json!([{ "type": "ReplicaFailure", "status": "True", "message": "quota" }]);
    member.show(fails);
    let workload = member.view("web").workload.unwrap();
    assert_eq!(workload.behind_since, None);
    let failure = workload.replica_failure.unwrap();
    assert_eq!(
        (failure.since, &*failure.message),
        (Timestamp::from_second(4).ok(), "quota")
    );
}

#[test]
fn sets_of_both_kinds_and_one_name_are_apart() {
    let mut member = Member::new();
    let key = WorkloadKey::new("default", "web");
    member.show(deployment("web", "d", 5));
    assert_eq!(member.store.workload(&key).workload, None);
    member.show(set("web", None, 3));
    member.show(pod("p", "web"));
    let replicas = |key: &WorkloadKey| {
        let view = member.store.workload(key);
        let workload = view.workload.unwrap();
        (
            workload.lowest_replicas,
            workload.open_scale_up,
            view.pods.active,
        )
    };
    member
        .store
        .observe_scale(&deployment_key("web"), "d", 1, 2);
    member.store.observe_scale(&key, "web", 1, 4);
    assert_eq!(replicas(&deployment_key("web")), (2, None, 0));
    assert_eq!(replicas(&key), (3, Some(4), 1));
    member.store.observe_deletion(&key, "web");
    assert_eq!(member.store.workload(&key).workload, None);
    assert!(member.view("web").workload.is_some());
}

#[test]
fn replicas_of_a_deployment_count_once_in_the_totals() {
    let mut member = Member::new();
    member.show(set("new", Some(("web", "d")), 3));
    member.show(set("own", None, 1));
    let totals = |member: &Member| {
        let totals = member.store.totals(9);
        let names = totals.first.iter().map(ToString::to_string);
        (totals.replicas, names.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(
        totals(&member),
        (1, "default/own".to_owned()),
        "no Deployment of ours"
    );
    member.show(deployment("web", "d", 2));
    let names = "default/own, FederatedDeployment default/web".to_owned();
    assert_eq!(totals(&member), (3, names));
    member
        .store
        .state
        .write()
        .forget(crate::store::Watch::Workloads(LocalKind::Deployment));
    let names = "default/new, default/own".to_owned();
    assert_eq!(totals(&member), (4, names), "Deployments are not known");
}

#[test]
fn f39_each_kind_is_as_current_as_the_watches_that_it_needs() {
    type Step = fn(&Member);
    // The name, the watches that have listed, what fails, and whether ReplicaSets and Deployments are current.
    type Case<'a> = (&'a str, &'a [Watch], &'a dyn Fn(&Member), bool, bool);
    let refuse = |watch, code| move |member: &Member| member.fail(watch, code);
    let never_listed = || Member {
        store: Member::new().store.part(),
        version: 10,
    };
    let cases: [Case<'_>; 8] = [
        ("all", &Watch::ALL, &((|_| {}) as Step), true, true),
        (
            "not asked",
            &[Watch::Workloads(LocalKind::ReplicaSet), Watch::Pods],
            &((|_| {}) as Step),
            true,
            false,
        ),
        (
            "forbidden",
            &[Watch::Workloads(LocalKind::ReplicaSet), Watch::Pods],
            &refuse(Watch::Workloads(LocalKind::Deployment), 403),
            true,
            false,
        ),
        (
            "missing",
            &[Watch::Workloads(LocalKind::ReplicaSet), Watch::Pods],
            &refuse(Watch::Workloads(LocalKind::Deployment), 404),
            true,
            false,
        ),
        (
            "no pods",
            &[
                Watch::Workloads(LocalKind::ReplicaSet),
                Watch::Workloads(LocalKind::Deployment),
            ],
            &refuse(Watch::Pods, 403),
            false,
            false,
        ),
        (
            "sets forbidden",
            &[Watch::Workloads(LocalKind::Deployment), Watch::Pods],
            &refuse(Watch::Workloads(LocalKind::ReplicaSet), 403),
            false,
            true,
        ),
        (
            "sets not read yet",
            &[Watch::Workloads(LocalKind::Deployment), Watch::Pods],
            &((|_| {}) as Step),
            false,
            false,
        ),
        (
            "sets fail",
            &[Watch::Workloads(LocalKind::Deployment), Watch::Pods],
            &refuse(Watch::Workloads(LocalKind::ReplicaSet), 500),
            false,
            false,
        ),
    ];
    for (name, listed, step, sets, deployments) in cases {
        let member = never_listed();
        for watch in listed {
            member.list(*watch, || {});
        }
        member.store.take_sync_change();
        step(&member);
        let is_synced = |kind| member.store.sync_state(kind) == SyncState::Synced;
        assert_eq!(
            (is_synced(SETS), is_synced(DEPLOYMENTS)),
            (sets, deployments),
            "{name}"
        );
        let failure = |kind| member.store.failure(kind);
        let fails_for = |watch: Watch| !listed.contains(&watch) && name != "not asked";
        if fails_for(Watch::Workloads(LocalKind::Deployment)) {
            assert_eq!(failure(SETS), None, "{name}");
            assert!(failure(DEPLOYMENTS).is_some(), "{name}");
        }
    }
}

/// Where ReplicaSets can't be read any more, what is known of them may be of any time.
#[test]
fn f39_without_the_permission_for_replica_sets_the_status_of_a_deployment_counts_its_pods() {
    let mut member = Member::new();
    let seconds = Arc::new(parking_lot::Mutex::new(1_000_000));
    let clock = Arc::clone(&seconds);
    member.store.clock = Arc::new(move || Timestamp::from_second(*clock.lock()).unwrap());
    member.show(deployment("web", "d", 1));
    member.show(set("new", Some(("web", "d")), 1));
    member.show(pod("p", "new"));
    member.fail(Watch::Workloads(LocalKind::ReplicaSet), 403);
    assert_eq!(
        member.active("web"),
        1,
        "an API server that starts rejects everything"
    );
    *seconds.lock() += 31;
    assert_eq!(member.active("web"), 0);
    assert!(member.view("web").has_unlabeled_pods());
    assert_eq!(member.store.sync_state(DEPLOYMENTS), SyncState::Synced);
    assert!(matches!(
        member.store.sync_state(SETS),
        SyncState::Stale { .. }
    ));
    member
        .store
        .record_activity(Watch::Workloads(LocalKind::ReplicaSet));
    assert_eq!(member.active("web"), 1);
}
