//! Ownership and apply on whole objects.

use super::*;

const NOW: &str = "2026-11-01T12:00:00Z";
const LATER: &str = "2026-11-01T12:00:01Z";

fn replica_set_type() -> TypeInfo {
    TypeInfo::builtin("apps", "v1", "ReplicaSet").unwrap()
}

fn writer<'a>(manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer {
        manager,
        api_version: "apps/v1",
        subresource: "",
        now,
    }
}

fn replica_set(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web", "namespace": "default", "labels": { "app": "web" } },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "a", "image": "x", "resources": {} }] } } }
    })
}

fn fields(object: &Value, index: usize) -> &Value {
    &object["metadata"]["managedFields"][index]["fieldsV1"]
}

#[test]
fn a_creator_owns_what_it_wrote() {
    let mut object = replica_set(1);
    track_update(
        None,
        &mut object,
        &writer("kubectl-create", NOW),
        &replica_set_type(),
    );
    let entry = &object["metadata"]["managedFields"][0];
    let expected = json!({
        "manager": "kubectl-create", "operation": "Update", "apiVersion": "apps/v1", "time": NOW, "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
            "f:spec": { "f:replicas": {}, "f:selector": {}, "f:template": {
                "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
                "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": { ".": {}, "f:image": {}, "f:name": {}, "f:resources": {} } } } } }
        }
    });
    assert_eq!(entry, &expected);
}

#[test]
fn a_custom_resources_creator_owns_the_specification_itself() {
    let info = TypeInfo::custom(
        &json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "a": { "type": "string" } } } } }),
    );
    let mut object = json!({ "metadata": { "name": "x" }, "spec": { "a": "b" } });
    track_update(None, &mut object, &writer("m", NOW), &info);
    assert_eq!(
        fields(&object, 0),
        &json!({ "f:spec": { ".": {}, "f:a": {} } })
    );
}

#[test]
fn an_update_takes_fields_over_and_no_change_takes_nothing() {
    let info = replica_set_type();
    let mut first = replica_set(1);
    track_update(None, &mut first, &writer("one", NOW), &info);
    let mut same = first.clone();
    track_update(Some(&first), &mut same, &writer("two", LATER), &info);
    assert_eq!(same, first);
    let mut scaled = first.clone();
    scaled["spec"]["replicas"] = 2.into();
    track_update(Some(&first), &mut scaled, &writer("two", LATER), &info);
    assert_eq!(
        fields(&scaled, 1),
        &json!({ "f:spec": { "f:replicas": {} } })
    );
    assert_eq!(fields(&scaled, 0)["f:spec"].get("f:replicas"), None);
}

#[test]
fn a_status_writer_has_an_entry_of_its_own() {
    let info = replica_set_type();
    let mut object = replica_set(1);
    object["status"] = json!({ "replicas": 0 });
    let mut new = object.clone();
    new["status"] = json!({ "replicas": 1, "conditions": [{ "type": "X", "status": "True" }] });
    track_update(
        Some(&object),
        &mut new,
        &Writer {
            subresource: "status",
            ..writer("kcm", NOW)
        },
        &info,
    );
    assert_eq!(new["metadata"]["managedFields"][0]["subresource"], "status");
    let condition = json!({ ".": {}, "f:status": {}, "f:type": {} });
    assert_eq!(
        fields(&new, 0),
        &json!({ "f:status": { "f:replicas": {}, "f:conditions": { ".": {}, "k:{\"type\":\"X\"}": condition } } })
    );
}

fn config(replicas: Option<i32>) -> Value {
    let mut config = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web", "namespace": "default" }, "spec": {} });
    if let Some(replicas) = replicas {
        config["spec"]["replicas"] = replicas.into();
    }
    config
}

#[test]
fn a_field_that_another_changed_is_a_conflict_unless_forced() {
    let info = replica_set_type();
    let mut live = replica_set(1);
    track_update(None, &mut live, &writer("kubectl", NOW), &info);
    let error = apply(
        Some(&live),
        &config(Some(5)),
        &writer("fedrs", LATER),
        false,
        &info,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: .spec.replicas"
    );
    let ApplyError::Conflicts(conflicts) = error else {
        panic!("it is a conflict")
    };
    assert_eq!(
        conflicts[0].cause_message(),
        "conflict with \"kubectl\" using apps/v1"
    );
    let forced = apply(
        Some(&live),
        &config(Some(5)),
        &writer("fedrs", LATER),
        true,
        &info,
    )
    .unwrap();
    assert_eq!(forced["spec"]["replicas"], 5);
    assert_eq!(forced["metadata"]["managedFields"][0]["manager"], "fedrs");
    assert_eq!(
        fields(&forced, 0),
        &json!({ "f:spec": { "f:replicas": {} } })
    );
    assert_eq!(fields(&forced, 1)["f:spec"].get("f:replicas"), None);
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let conflict = |manager: &str, field: &str| Conflict {
        manager: manager.to_owned(),
        field: field.to_owned(),
    };
    let error = ApplyError::Conflicts(vec![
        conflict("\"b\" using v1", ".x"),
        conflict("\"a\"", ".y"),
        conflict("\"a\"", ".z"),
    ]);
    assert_eq!(
        error.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .y\n- .z\nconflicts with \"b\" using v1:\n- .x"
    );
}

#[test]
fn the_same_value_is_shared() {
    let info = replica_set_type();
    let mut live = replica_set(1);
    track_update(None, &mut live, &writer("kubectl", NOW), &info);
    let shared = apply(
        Some(&live),
        &config(Some(1)),
        &writer("fedrs", LATER),
        false,
        &info,
    )
    .unwrap();
    assert_eq!(
        fields(&shared, 0),
        &json!({ "f:spec": { "f:replicas": {} } })
    );
    assert_eq!(shared["metadata"]["managedFields"][0].get("time"), None);
    assert_eq!(fields(&shared, 1)["f:spec"]["f:replicas"], json!({}));
}

#[test]
fn applying_again_changes_nothing() {
    let info = replica_set_type();
    let first = apply(None, &replica_set(1), &writer("fedrs", NOW), false, &info).unwrap();
    let again = apply(
        Some(&first),
        &replica_set(1),
        &writer("fedrs", LATER),
        false,
        &info,
    )
    .unwrap();
    assert_eq!(again, first);
}

#[test]
fn what_is_no_longer_applied_goes_unless_somebody_owns_it() {
    let info = replica_set_type();
    let mut wide = replica_set(1);
    wide["metadata"]["labels"] = json!({ "app": "web", "mine": "1", "shared": "2" });
    let live = apply(None, &wide, &writer("one", NOW), false, &info).unwrap();
    let mut other = config(None);
    other["metadata"]["labels"] = json!({ "shared": "2" });
    let live = apply(Some(&live), &other, &writer("two", NOW), false, &info).unwrap();
    let pruned = apply(
        Some(&live),
        &replica_set(1),
        &writer("one", LATER),
        false,
        &info,
    )
    .unwrap();
    assert_eq!(
        pruned["metadata"]["labels"],
        json!({ "app": "web", "shared": "2" })
    );
    let mut bare = replica_set(1);
    bare["metadata"].as_object_mut().unwrap().remove("labels");
    let pruned = apply(Some(&pruned), &bare, &writer("one", LATER), false, &info).unwrap();
    assert_eq!(pruned["metadata"]["labels"], json!({ "shared": "2" }));
}

#[test]
fn a_removed_container_goes_with_its_defaults() {
    let info = replica_set_type();
    let mut two = replica_set(1);
    two["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "b", "image": "y" }));
    let mut live = apply(None, &two, &writer("one", NOW), false, &info).unwrap();
    crate::builtin::defaults("ReplicaSet", &mut live);
    let live = apply(
        Some(&live),
        &replica_set(1),
        &writer("one", LATER),
        false,
        &info,
    )
    .unwrap();
    let containers = live["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    assert_eq!(containers.len(), 1);
    assert_eq!(containers[0]["name"], "a");
}

#[test]
fn a_field_the_type_lacks_is_refused() {
    let mut wrong = config(Some(1));
    wrong["spec"]["foo"] = 1.into();
    let error = apply(None, &wrong, &writer("m", NOW), false, &replica_set_type()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to create typed patch object (default/web; apps/v1, Kind=ReplicaSet): .spec.foo: field not declared in schema"
    );
}

#[test]
fn kubectl_takes_over_from_client_side_apply() {
    let info = replica_set_type();
    let mut live = replica_set(1);
    live["metadata"]["annotations"] = json!({ LAST_APPLIED: replica_set(1).to_string() });
    track_update(
        None,
        &mut live,
        &writer("kubectl-client-side-apply", NOW),
        &info,
    );
    let applied = apply(
        Some(&live),
        &replica_set(2),
        &writer("kubectl", LATER),
        false,
        &info,
    )
    .unwrap();
    assert_eq!(applied["spec"]["replicas"], 2);
    assert_eq!(
        applied["metadata"]["annotations"][LAST_APPLIED],
        format!("{}\n", replica_set(2))
    );
    let error = apply(
        Some(&live),
        &replica_set(2),
        &writer("other", LATER),
        false,
        &info,
    )
    .unwrap_err();
    assert!(matches!(error, ApplyError::Conflicts(_)));
}

#[test]
fn managed_fields_can_be_reset_but_not_applied() {
    let info = replica_set_type();
    let mut live = replica_set(1);
    track_update(None, &mut live, &writer("m", NOW), &info);
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    track_update(Some(&live), &mut reset, &writer("m", LATER), &info);
    assert_eq!(reset["metadata"].get("managedFields"), None);
    assert_eq!(
        apply(None, &live, &writer("m", NOW), false, &info).unwrap_err(),
        ApplyError::ManagedFieldsSet
    );
}

#[test]
fn applied_items_keep_their_order_among_others() {
    let info = TypeInfo::builtin("", "v1", "Pod").unwrap();
    let named = |names: &[&str]| json!({ "spec": { "containers": names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>() } });
    let merged = merge(
        &named(&["a", "b", "c"]),
        &named(&["c", "x", "a"]),
        Some(info.root()),
    );
    let order: Vec<&str> = merged["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["b", "c", "x", "a"]);
}

proptest::proptest! {
    #[test]
    fn applying_twice_is_applying_once(labels in proptest::collection::btree_map("[a-d]", "[x-z]", 0..4), before in proptest::collection::btree_map("[a-d]", "[x-z]", 0..4)) {
        let info = replica_set_type();
        let mut live = replica_set(1);
        live["metadata"]["labels"] = json!(before);
        track_update(None, &mut live, &writer("other", NOW), &info);
        let mut wanted = config(None);
        wanted["metadata"]["labels"] = json!(labels);
        let once = apply(Some(&live), &wanted, &writer("me", NOW), true, &info).unwrap();
        let twice = apply(Some(&once), &wanted, &writer("me", LATER), true, &info).unwrap();
        proptest::prop_assert_eq!(&twice, &once);
        for (name, value) in &labels {
            proptest::prop_assert_eq!(&once["metadata"]["labels"][name.as_str()], value);
        }
        // What only the other owns stays.
        for name in before.keys().filter(|name| !labels.contains_key(*name)) {
            proptest::prop_assert_eq!(&once["metadata"]["labels"][name.as_str()], &before[name]);
        }
    }
}
