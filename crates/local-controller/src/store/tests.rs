//! Which of several sources wins, in which order they may come.

use serde_json::{Value, json};

use super::*;

/// The pod with this uid, as of this version.
fn pod(uid: &str, version: u32, changes: &Value) -> ObservedPod {
    let mut object = json!({
        "metadata": {
            "name": format!("web-{uid}"), "namespace": "shop", "uid": uid, "resourceVersion": version.to_string(),
            "creationTimestamp": "2027-01-15T08:00:00Z", "labels": { "app": "web" },
            "ownerReferences": [{
                "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet", "uid": "set", "controller": true,
            }],
        },
    });
    for (name, value) in changes.as_object().unwrap() {
        object["metadata"][name] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn live(uid: &str, version: u32) -> ObservedPod {
    pod(uid, version, &json!({}))
}

fn terminating(uid: &str, version: u32) -> ObservedPod {
    let at =
        json!({ "deletionTimestamp": "2027-01-15T09:00:00Z", "deletionGracePeriodSeconds": 30 });
    pod(uid, version, &at)
}

fn set(name: &str, uid: &str, version: u32, labels: &Value) -> SetObject {
    let spec = json!({ "containers": [{ "name": "main", "image": "main" }] });
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": uid, "resourceVersion": version.to_string(), "generation": 1,
        },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    }))
    .unwrap()
}

/// A store with the set `shop/web`.
fn store() -> Store {
    let store = Store::default();
    store.update(|state| state.apply_set(set("web", "set", 1, &json!({ "app": "web" }))));
    store
}

fn web() -> SetKey {
    SetKey::new("shop", "web")
}

/// The pods of `shop/web` as `UID VERSION`, with a mark for those that are being removed.
fn pods(store: &Store) -> Vec<String> {
    let snapshot = store.snapshot(&web()).unwrap();
    let pods = snapshot.pods.values().map(|pod| {
        let mark = match (pod.is_terminating(), snapshot.sent.get(pod.uid())) {
            (true, None) => " terminating",
            (false, Some(Sent::Removal)) => " removed",
            (false, Some(Sent::UnansweredRemoval)) => " perhaps removed",
            (false, Some(Sent::UnansweredChange)) => " perhaps changed",
            (false, None) => "",
            (true, Some(_)) | (false, Some(Sent::ForcedRemoval)) => " forced",
        };
        format!("{} {}{mark}", pod.uid(), pod.resource_version())
    });
    pods.collect()
}

#[test]
fn c1_a_response_counts_until_the_watch_is_newer() {
    let store = store();
    assert_eq!(
        store.update(|state| state.apply_response(live("a", 5))),
        [web()].into()
    );
    assert_eq!(
        store.update(|state| state.apply_pod(live("a", 4))),
        [].into()
    );
    assert_eq!(
        store.update(|state| state.apply_pod(live("a", 5))),
        [].into()
    );
    assert_eq!(pods(&store), ["a 5"]);
    assert_eq!(
        store.update(|state| state.apply_pod(live("a", 6))),
        [web()].into()
    );
    assert_eq!(pods(&store), ["a 6"]);
}

#[test]
fn c1_a_late_response_does_not_bring_back_a_pod() {
    let store = store();
    store.update(State::begin_requests);
    store.update(|state| state.apply_pod(live("a", 5)));
    store.update(|state| state.end_pod("a"));
    store.update(|state| state.apply_response(live("a", 5)));
    assert_eq!(pods(&store), [""; 0]);
    store.update(State::end_requests);
}

#[test]
fn c1_a_late_watch_does_not_bring_back_a_pod() {
    let store = store();
    store.update(|state| state.apply_pod(live("a", 5)));
    store.update(|state| state.remove_pod("a"));
    store.update(|state| state.apply_pod(terminating("a", 6)));
    assert_eq!(pods(&store), [""; 0]);
    // The watch has shown its end: the uid is forgotten.
    store.update(|state| state.end_pod("a"));
    store.update(|state| state.apply_pod(live("a", 7)));
    assert_eq!(pods(&store), ["a 7"]);
}

#[test]
fn l13_a_removal_counts_until_a_read_shows_what_became_of_it() {
    let store = store();
    for uid in ["a", "b", "c"] {
        store.update(|state| state.apply_pod(live(uid, 5)));
    }
    store.update(|state| {
        state.requested("a", Sent::Removal);
        state.requested("b", Sent::UnansweredRemoval);
        state.requested("c", Sent::UnansweredRemoval);
        // Nothing is known of this one.
        state.requested("d", Sent::UnansweredRemoval);
    });
    // States from before the removal.
    store.update(|state| state.apply_pod(live("a", 6)));
    store.update(|state| state.apply_pod(live("b", 6)));
    assert_eq!(
        pods(&store),
        ["a 6 removed", "b 6 perhaps removed", "c 5 perhaps removed"]
    );
    store.update(|state| state.apply_pod(terminating("a", 7)));
    // It was not removed.
    store.update(|state| state.read_pod(live("b", 6)));
    store.update(|state| state.remove_pod("c"));
    assert_eq!(pods(&store), ["a 7 terminating", "b 6"]);
    store.update(|state| state.requested("a", Sent::Removal));
    assert_eq!(pods(&store), ["a 7 terminating", "b 6"]);
    // Nothing more is to be done until the watch shows what became of it.
    store.update(|state| state.requested("a", Sent::ForcedRemoval));
    assert_eq!(pods(&store), ["a 7 forced", "b 6"]);
}

#[test]
fn c1_a_list_ends_what_it_does_not_show_unless_that_is_newer() {
    let store = store();
    store.update(|state| state.apply_pod(live("a", 5)));
    store.update(|state| state.apply_pod(live("b", 5)));
    store.update(|state| state.pods_listing().begin());
    store.update(|state| state.apply_pod(live("a", 5)));
    // Created after the list was made.
    store.update(|state| state.apply_response(live("c", 12)));
    assert_eq!(store.update(|state| state.end_pods("10")), [web()].into());
    assert_eq!(pods(&store), ["a 5", "c 12"]);
}

#[test]
fn c1_a_list_with_an_object_that_can_not_be_read_ends_nothing() {
    let store = store();
    store.update(|state| state.apply_pod(live("a", 5)));
    store.update(|state| state.pods_listing().begin());
    store.update(|state| state.pods_listing().unreadable());
    store.update(|state| state.end_pods("10"));
    assert_eq!(pods(&store), ["a 5"]);
}

#[test]
fn c1_c6_pods_without_a_controller_concern_the_sets_that_match() {
    let store = store();
    store.update(|state| state.apply_set(set("blog", "other", 1, &json!({ "app": "blog" }))));
    let orphan = |version, labels: Value| {
        pod(
            "x",
            version,
            &json!({ "ownerReferences": [], "labels": labels }),
        )
    };
    let blog = SetKey::new("shop", "blog");
    let changed = store.update(|state| state.apply_pod(orphan(5, json!({ "app": "web" }))));
    assert_eq!(changed, [web()].into());
    assert_eq!(pods(&store), ["x 5"]);
    let changed = store.update(|state| state.apply_pod(orphan(6, json!({ "app": "blog" }))));
    assert_eq!(
        changed,
        [web(), blog.clone()].into(),
        "it left one, and matches the other"
    );
    let other =
        json!({ "ownerReferences": [{ "kind": "ReplicaSet", "uid": "r", "controller": true }] });
    let changed = store.update(|state| state.apply_pod(pod("x", 7, &other)));
    assert_eq!(changed, [blog].into());
    assert_eq!(pods(&store), [""; 0], "pods of others are not kept");
}

#[test]
fn c7_a_response_does_not_bring_back_a_set() {
    let store = store();
    let newer = || set("web", "set", 2, &json!({ "app": "web" }));
    store.update(|state| state.update_set(newer()));
    assert_eq!(store.snapshot(&web()).unwrap().entry.version, "2");
    store.update(|state| state.remove_set(&web()));
    store.update(|state| state.update_set(newer()));
    assert!(store.snapshot(&web()).is_none());
    // Another set of the same name.
    store.update(|state| state.apply_set(set("web", "another", 3, &json!({ "app": "web" }))));
    store.update(|state| state.update_set(newer()));
    assert_eq!(store.snapshot(&web()).unwrap().entry.uid, "another");
}

#[test]
fn l18_a_node_is_unknown_until_something_shows_it() {
    let store = store();
    let mut object = serde_json::to_value(json!({
        "metadata": {
            "name": "web-a", "namespace": "shop", "uid": "a", "resourceVersion": "5",
            "creationTimestamp": "2027-01-15T08:00:00Z",
            "ownerReferences": [{
                "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet", "uid": "set", "controller": true,
            }],
        },
        "spec": {},
    }))
    .unwrap();
    object["spec"]["nodeName"] = "n".into();
    store.update(|state| state.apply_pod(serde_json::from_value(object).unwrap()));
    let node = |version: &str, ready: &str| -> ObservedNode {
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        let metadata = json!({ "name": "n", "resourceVersion": version });
        serde_json::from_value(
            json!({ "metadata": metadata, "status": { "conditions": conditions } }),
        )
        .unwrap()
    };
    let shown = || {
        let snapshot = store.snapshot(&web()).unwrap();
        let node = snapshot.nodes.get("n").map(|node| match node {
            Node::Exists(state) if state.is_ready => "ready",
            Node::Exists(_) => "not ready",
            Node::Gone => "gone",
        });
        node.unwrap_or("unknown")
    };
    assert_eq!(shown(), "unknown");
    // A read shows that it does not exist.
    assert_eq!(store.update(|state| state.remove_node("n")), [web()].into());
    assert_eq!(shown(), "gone");
    assert_eq!(
        store.update(|state| state.apply_node(&node("7", "True"))),
        [web()].into()
    );
    assert_eq!(shown(), "ready");
    // Older than what is known, and without news.
    assert_eq!(
        store.update(|state| state.apply_node(&node("6", "False"))),
        [].into()
    );
    assert_eq!(
        store.update(|state| state.apply_node(&node("8", "True"))),
        [].into()
    );
    assert_eq!(
        store.update(|state| state.apply_node(&node("9", "Unknown"))),
        [web()].into()
    );
    assert_eq!(shown(), "not ready");
    store.update(|state| state.nodes_listing().begin());
    assert_eq!(store.update(|state| state.end_nodes("10")), [web()].into());
    assert_eq!(shown(), "gone");
}

#[test]
fn l14_a_change_without_an_answer_is_in_doubt_until_a_read() {
    let store = store();
    store.update(|state| state.apply_pod(live("a", 5)));
    store.update(|state| state.requested("a", Sent::UnansweredChange));
    // From before the change, or from after it: nobody knows.
    store.update(|state| state.apply_pod(live("a", 6)));
    assert_eq!(pods(&store), ["a 6 perhaps changed"]);
    store.update(|state| state.read_pod(live("a", 6)));
    assert_eq!(pods(&store), ["a 6"]);
    store.update(|state| state.doubt("a"));
    assert_eq!(pods(&store), ["a 6 perhaps changed"]);
    store.update(|state| state.end_pod("a"));
    store.update(|state| state.doubt("a"));
    assert_eq!(pods(&store), [""; 0]);
}

#[test]
fn the_numbers_of_sets_and_pods_follow_each_change() {
    let store = store();
    let counts = |change: &dyn Fn(&mut State) -> Changed| {
        store.update(|state| {
            change(state);
            state.counts()
        })
    };
    // An empty selector is invalid.
    let blog = |version, labels: &Value| {
        let mut object = set("blog", "blog", version, labels);
        object.metadata.generation = Some(i64::from(version));
        object
    };
    assert_eq!(counts(&|state| state.apply_pod(live("a", 2))), (1, 0, 1));
    assert_eq!(
        counts(&|state| state.apply_set(blog(3, &json!({})))),
        (2, 1, 1)
    );
    assert_eq!(
        counts(&|state| state.apply_set(blog(4, &json!({})))),
        (2, 1, 1)
    );
    assert_eq!(
        counts(&|state| state.apply_set(blog(5, &json!({ "app": "blog" })))),
        (2, 0, 1)
    );
    assert_eq!(
        counts(&|state| state.apply_set(blog(6, &json!({})))),
        (2, 1, 1)
    );
    assert_eq!(
        counts(&|state| state.remove_set(&SetKey::new("shop", "blog"))),
        (1, 0, 1)
    );
    assert_eq!(counts(&|state| state.end_pod("a")), (1, 0, 0));
}
