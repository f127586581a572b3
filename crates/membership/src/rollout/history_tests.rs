use fedrs_api::FederatedDeployment;
use serde_json::json;

use super::*;

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "image": image }] } })
}

/// The set with the template of this image; the cluster eu has web-1, us and asia have web-2, the current one.
fn deployment(image: &str) -> FederatedDeployment {
    serde_json::from_value(json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "shop", "uid": "u" },
        "spec": { "selector": {}, "template": template(image) },
        "status": {
            "currentRevision": "web-2",
            "clusters": [
                { "name": "asia", "revision": "web-2" }, { "name": "eu", "revision": "web-1" },
                { "name": "us", "revision": "web-2" }, { "name": "idle" },
            ],
        },
    }))
    .unwrap()
}

fn stored(number: i64, image: &str, owner: &str) -> ControllerRevision {
    let template = template(image);
    serde_json::from_value(json!({
        "metadata": {
            "name": image.replace(':', "-"),
            "ownerReferences": [{ "apiVersion": "x", "kind": "x", "name": "web", "uid": owner, "controller": true }],
            "annotations": { "kubernetes.io/change-cause": format!("image {image}") },
        },
        "data": { "spec": { "template": template } },
        "revision": number,
    }))
    .unwrap()
}

/// The revisions web-1 and web-2, and one of another owner.
fn history_of(image: &str) -> History<FederatedDeployment> {
    let found = vec![
        stored(4, "web:2", "u"),
        stored(3, "web:1", "u"),
        stored(9, "other:1", "x"),
    ];
    let name = "federateddeployment shop/web".to_owned();
    History::of(name, deployment(image), found)
}

fn text<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn revisions_are_in_the_order_of_their_numbers_with_their_clusters() {
    let history = history_of("web:2");
    let shown: Vec<_> = history
        .revisions
        .iter()
        .map(|revision| {
            let clusters = &revision.users;
            let cause = revision.change_cause.as_deref().unwrap_or_default();
            format!(
                "{} {}: {clusters}; {cause}",
                revision.revision, revision.name
            )
        })
        .collect();
    let expected = ["3 web-1: eu; image web:1", "4 web-2: asia,us; image web:2"];
    assert_eq!(shown, expected);
}

#[test]
fn the_previous_revision_is_the_latest_with_another_template() {
    for (image, previous) in [("web:2", 3), ("web:1", 4), ("web:3", 4)] {
        let history = history_of(image);
        assert_eq!(history.previous().unwrap().revision, previous, "{image}");
    }
    let only = History::of(
        "web".to_owned(),
        deployment("web:1"),
        vec![stored(3, "web:1", "u")],
    );
    assert!(text(only.previous()).starts_with("web: nothing to undo"));
}

#[test]
fn a_revision_that_does_not_exist_is_named() {
    let history = history_of("web:2");
    assert_eq!(history.find(3).unwrap().name, "web-1");
    let expected = "federateddeployment shop/web has no revision 9: `fedrs rollout history` lists those that it has";
    assert_eq!(text(history.find(9)), expected);
}

#[test]
fn a_comparison_is_of_the_current_revision_and_the_spec_by_default() {
    let history = history_of("web:3");
    for (from, to, expected) in [
        (None, None, [Some(4), None]),
        (Some(3), None, [Some(3), None]),
        (None, Some(3), [Some(4), Some(3)]),
        (Some(4), Some(3), [Some(4), Some(3)]),
    ] {
        let compared = history.compared(from, to).unwrap();
        let numbers = compared.map(|template| template.of.map(|revision| revision.revision));
        assert_eq!(numbers, expected);
    }
    let [_, spec] = history.compared(None, None).unwrap();
    assert_eq!(*spec.template, template("web:3"));
    let without = History::of("web".to_owned(), deployment("web:3"), Vec::new());
    let expected =
        "web: status.currentRevision names no revision that exists: choose one with --revision";
    assert_eq!(text(without.compared(None, None)), expected);
}
