use fedrs_api::FederatedDeployment;
use serde_json::json;

use super::super::kind::Users;

use super::*;

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "image": image }] } })
}

fn deployment(image: &str, annotations: &Value) -> FederatedDeployment {
    serde_json::from_value(json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "shop", "annotations": annotations },
        "spec": { "selector": {}, "template": template(image), "paused": true },
    }))
    .unwrap()
}

fn revision(cause: Option<&str>) -> Revision {
    Revision {
        revision: 3,
        name: "web-3".to_owned(),
        change_cause: cause.map(str::to_owned),
        users: Users::Clusters(Vec::new()),
        template: template("web:1"),
        data: json!({ "spec": { "template": template("web:1") } }),
    }
}

#[test]
fn an_undo_replaces_the_template_and_the_change_cause() {
    const PATH: &str = "/metadata/annotations/kubernetes.io~1change-cause";
    let replace = json!({ "op": "add", "path": "/spec/template", "value": template("web:1") });
    let cause = json!({ "kubernetes.io/change-cause": "new" });
    let other = json!({ "other": "x" });
    for (annotations, of_revision, expected) in [
        (json!({}), None, None),
        (other.clone(), None, None),
        (
            cause.clone(),
            None,
            Some(json!({ "op": "remove", "path": PATH })),
        ),
        (
            cause,
            Some("old"),
            Some(json!({ "op": "add", "path": PATH, "value": "old" })),
        ),
        (
            other,
            Some("old"),
            Some(json!({ "op": "add", "path": PATH, "value": "old" })),
        ),
        (
            json!({}),
            Some("old"),
            Some(
                json!({ "op": "add", "path": "/metadata/annotations", "value": { "kubernetes.io/change-cause": "old" } }),
            ),
        ),
    ] {
        let (change, undone) = decide(&deployment("web:2", &annotations), &revision(of_revision));
        let operations = [replace.clone()].into_iter().chain(expected).collect();
        assert_eq!(
            change,
            Some(Change::Operations(operations)),
            "{annotations}"
        );
        let expected = Undo::RolledBack {
            revision: 3,
            is_paused: true,
        };
        assert_eq!(undone, expected);
    }
}

#[test]
fn an_undo_to_the_template_of_the_spec_changes_nothing() {
    let there = decide(&deployment("web:1", &json!({})), &revision(Some("old")));
    assert_eq!(there, (None, Undo::AlreadyThere { revision: 3 }));
}
