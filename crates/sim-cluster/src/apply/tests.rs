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

/// The replica set as `manager` creates it, with what it owns.
fn created_by(manager: &str) -> Value {
    let mut object = replica_set(1);
    track_update(
        None,
        &mut object,
        &writer(manager, NOW),
        &replica_set_type(),
    );
    object
}

/// The result of an apply by `manager` to an existing ReplicaSet.
fn applied_by(
    manager: &str,
    live: &Value,
    config: &Value,
    force: bool,
) -> Result<Value, ApplyError> {
    apply(
        Some(live),
        config,
        &writer(manager, LATER),
        force,
        &replica_set_type(),
    )
}

fn applied_anew(manager: &str, config: &Value) -> Result<Value, ApplyError> {
    apply(
        None,
        config,
        &writer(manager, NOW),
        false,
        &replica_set_type(),
    )
}

fn fields(object: &Value, index: usize) -> &Value {
    &object["metadata"]["managedFields"][index]["fieldsV1"]
}

#[test]
fn a_creator_owns_the_fields_it_sets() {
    let object = created_by("kubectl-create");
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
fn an_update_takes_over_the_fields_that_it_changes() {
    let info = replica_set_type();
    let first = created_by("one");
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
    let live = created_by("kubectl");
    let error = applied_by("controller", &live, &config(Some(5)), false).unwrap_err();
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
    let forced = applied_by("controller", &live, &config(Some(5)), true).unwrap();
    assert_eq!(forced["spec"]["replicas"], 5);
    assert_eq!(
        forced["metadata"]["managedFields"][0]["manager"],
        "controller"
    );
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
    let live = created_by("kubectl");
    let shared = applied_by("controller", &live, &config(Some(1)), false).unwrap();
    assert_eq!(
        fields(&shared, 0),
        &json!({ "f:spec": { "f:replicas": {} } })
    );
    assert_eq!(shared["metadata"]["managedFields"][0].get("time"), None);
    assert_eq!(fields(&shared, 1)["f:spec"]["f:replicas"], json!({}));
}

#[test]
fn applying_again_changes_nothing() {
    let first = applied_anew("controller", &replica_set(1)).unwrap();
    let again = applied_by("controller", &first, &replica_set(1), false).unwrap();
    assert_eq!(again, first);
}

#[test]
fn fields_no_longer_applied_are_removed_unless_another_manager_owns_them() {
    let mut wide = replica_set(1);
    wide["metadata"]["labels"] = json!({ "app": "web", "mine": "1", "shared": "2" });
    let live = applied_anew("one", &wide).unwrap();
    let mut other = config(None);
    other["metadata"]["labels"] = json!({ "shared": "2" });
    let live = applied_by("two", &live, &other, false).unwrap();
    let pruned = applied_by("one", &live, &replica_set(1), false).unwrap();
    assert_eq!(
        pruned["metadata"]["labels"],
        json!({ "app": "web", "shared": "2" })
    );
    let mut bare = replica_set(1);
    bare["metadata"].as_object_mut().unwrap().remove("labels");
    let pruned = applied_by("one", &pruned, &bare, false).unwrap();
    assert_eq!(pruned["metadata"]["labels"], json!({ "shared": "2" }));
}

#[test]
fn a_removed_container_is_removed_with_its_defaults() {
    let mut two = replica_set(1);
    two["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "b", "image": "y" }));
    let mut live = applied_anew("one", &two).unwrap();
    crate::builtin::defaults("ReplicaSet", &mut live);
    let live = applied_by("one", &live, &replica_set(1), false).unwrap();
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
    let error = check(&wrong, &replica_set_type()).unwrap_err();
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
    let applied = applied_by("kubectl", &live, &replica_set(2), false).unwrap();
    assert_eq!(applied["spec"]["replicas"], 2);
    assert_eq!(
        applied["metadata"]["annotations"][LAST_APPLIED],
        format!("{}\n", replica_set(2))
    );
    let error = applied_by("other", &live, &replica_set(2), false).unwrap_err();
    assert!(matches!(error, ApplyError::Conflicts(_)));
}

#[test]
fn managed_fields_can_be_reset_but_not_applied() {
    let info = replica_set_type();
    let live = created_by("m");
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    track_update(Some(&live), &mut reset, &writer("m", LATER), &info);
    assert_eq!(reset["metadata"].get("managedFields"), None);
    assert_eq!(
        check(&live, &info).unwrap_err(),
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
        let once = applied_by("me", &live, &wanted, true).unwrap();
        let twice = applied_by("me", &once, &wanted, true).unwrap();
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
