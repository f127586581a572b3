//! L12: which differences of two templates are patched, and which recreate the pod.

use fedrs_api::{PodTemplate, ResourceUpdates};
use replica_set_controller::{Change, Patch};
use rstest::rstest;
use serde_json::{Value, json};

/// A template with `changes` at their JSON pointers.
fn template(changes: &[(&str, Value)]) -> PodTemplate {
    let mut template = json!({
        "metadata": {"labels": {"app": "web", "tier": "a"}, "annotations": {"note": "x"}},
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "image": "web:1",
                    "env": [
                        {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}},
                    ],
                },
                {"name": "log", "image": "log:1"},
            ],
            "initContainers": [
                {"name": "init", "image": "init:1"},
                {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"},
            ],
            "tolerations": [{"key": "a"}],
        },
    });
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let parent = template.pointer_mut(parent).expect("the parent exists");
        match (parent, name.parse::<usize>()) {
            (Value::Array(list), Ok(index)) => list[index] = value.clone(),
            (parent, _) => parent[name.replace("~1", "/")] = value.clone(),
        }
    }
    serde_json::from_value(template).expect("the shape is right")
}

fn between(changes: &[(&str, Value)]) -> Change {
    let updates = ResourceUpdates::Recreate;
    Change::between(&template(&[]), &template(changes), updates)
}

fn images(images: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let images = images
        .iter()
        .map(|(name, image)| ((*name).to_owned(), (*image).to_owned()));
    images.collect()
}

#[rstest]
#[case::nothing(vec![], Patch::default())]
#[case::null(vec![("/spec/nodeName", json!(null))], Patch::default())]
#[case::image(
    vec![("/spec/containers/1/image", json!("log:2"))],
    Patch { images: images(&[("log", "log:2")]), ..Patch::default() }
)]
#[case::sidecar(
    vec![("/spec/initContainers/1/image", json!("mesh:2"))],
    Patch { sidecar_images: images(&[("mesh", "mesh:2")]), ..Patch::default() }
)]
#[case::label(
    vec![("/metadata/labels/team", json!("b"))],
    Patch { labels: [("team".to_owned(), Some("b".to_owned()))].into(), ..Patch::default() }
)]
#[case::annotations(
    vec![("/metadata/annotations", json!({}))],
    Patch { annotations: [("note".to_owned(), None)].into(), ..Patch::default() }
)]
#[case::toleration(
    vec![("/spec/tolerations", json!([{"key": "b"}, {"key": "a"}]))],
    Patch { tolerations: vec![json!({"key": "b"})], ..Patch::default() }
)]
fn l12_what_the_api_server_lets_change_is_patched(
    #[case] changes: Vec<(&str, Value)>,
    #[case] expected: Patch,
) {
    assert_eq!(between(&changes), Change::InPlace(expected));
}

#[rstest]
#[case::resources("/spec/containers/0/resources", json!({"requests": {"cpu": "1"}}), "spec.containers[web].resources")]
#[case::volumes("/spec/volumes", json!([{"name": "data"}]), "spec.volumes")]
#[case::devices("/spec/resourceClaims", json!([{"name": "gpu"}]), "spec.resourceClaims")]
#[case::network("/spec/hostNetwork", json!(true), "spec.hostNetwork")]
#[case::command("/spec/containers/0/command", json!(["x"]), "spec.containers[web].command")]
#[case::environment("/spec/containers/0/env", json!([]), "spec.containers[web].env")]
#[case::probe("/spec/containers/1/readinessProbe", json!({}), "spec.containers[log].readinessProbe")]
#[case::no_image("/spec/containers/1/image", json!(null), "spec.containers[log].image")]
#[case::another_container("/spec/containers/1", json!({"name": "other"}), "spec.containers")]
#[case::fewer_containers("/spec/containers", json!([{"name": "web", "image": "web:1"}]), "spec.containers")]
#[case::init_image("/spec/initContainers/0/image", json!("init:2"), "spec.initContainers[init].image")]
#[case::toleration("/spec/tolerations", json!([]), "spec.tolerations")]
#[case::restart(
    "/metadata/annotations/kubectl.kubernetes.io~1restartedAt", json!("2026-11-01T00:00:00Z"),
    "metadata.annotations[kubectl.kubernetes.io/restartedAt]"
)]
#[case::read_label("/metadata/labels/tier", json!("b"), "metadata.labels[tier]")]
fn l12_everything_else_recreates_the_pod(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
) {
    let change = between(&[(pointer, value)]);
    assert_eq!(change, Change::Recreate(vec![field.to_owned()]));
}

/// All fields are named, and a patch of the rest is no use.
#[test]
fn l12_all_fields_that_recreate_are_named() {
    let change = between(&[
        ("/spec/containers/0/image", json!("web:2")),
        ("/spec/containers/0/command", json!(["x"])),
        ("/spec/volumes", json!([{}])),
    ]);
    let fields = ["spec.containers[web].command", "spec.volumes"];
    assert_eq!(change, Change::Recreate(fields.map(str::to_owned).into()));
}
