//! The type of an object, navigated in parallel to the object.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::{REFERENCE_PREFIX, builtin_kind, definition};

/// The definition of `metadata`.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The identity of the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind<'a> {
    /// None: the list is atomic.
    Atomic,
    /// Their value.
    Set,
    /// The values of these fields.
    Map(Vec<&'a str>),
}

/// The type of a kind: a built-in one, or that of a version of a custom resource definition.
#[derive(Debug, Clone)]
pub(crate) struct TypeInfo {
    root: Arc<Value>,
    builtin: bool,
}

impl TypeInfo {
    /// The type of a built-in kind; none if it has no schema here.
    pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<Self> {
        let known = builtin_kind(group, version, kind)?;
        let reference = json!({ "$ref": format!("{REFERENCE_PREFIX}{}", known.definition) });
        Some(Self {
            root: Arc::new(reference),
            builtin: true,
        })
    }

    /// The type described by a CRD version's `openAPIV3Schema`.
    pub(crate) fn custom(schema: &Value) -> Self {
        let mut root = schema.clone();
        add_object_fields(&mut root);
        walk_embedded(&mut root);
        Self {
            root: Arc::new(root),
            builtin: false,
        }
    }

    /// The type of the whole object.
    pub(crate) fn root(&self) -> Node<'_> {
        Node::new(&self.root)
    }

    /// An empty object of this type as the API server encodes it, with the struct fields that are not pointers. Ownership of a
    /// new object is relative to it.
    pub(crate) fn empty_object(&self) -> Value {
        if !self.builtin {
            return Value::Object(Map::new());
        }
        let node = self.root();
        let mut object = json!({ "metadata": {} });
        for field in ["spec", "status"] {
            if node.declares(field) {
                object[field] = json!({});
            }
        }
        // Encoded even if it is empty.
        if node
            .field("spec")
            .is_some_and(|spec| spec.declares("containers"))
        {
            object["spec"]["containers"] = Value::Null;
        }
        // A template is a struct within the specification, with structs of its own.
        if let Some(template) = node
            .field("spec")
            .and_then(|spec| spec.declared("template"))
            && template.declares("spec")
        {
            object["spec"]["template"] = json!({ "metadata": {}, "spec": { "containers": null } });
        }
        for field in ["strategy", "names", "scaleTargetRef"] {
            if node.field("spec").is_some_and(|spec| spec.declares(field)) {
                object["spec"][field] = json!({});
            }
        }
        for field in ["source", "involvedObject"] {
            if node.declares(field) {
                object[field] = json!({});
            }
        }
        // Fields of events, which Go encodes even if they are not set.
        if node.declares("eventTime") {
            for field in ["reportingComponent", "reportingInstance"] {
                object[field] = "".into();
            }
            object["eventTime"] = Value::Null;
        }
        object
    }
}

fn add_object_fields(schema: &mut Value) {
    if !schema.is_object() {
        *schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let properties = &mut schema["properties"];
    for field in ["apiVersion", "kind"] {
        if properties[field]["type"] != "string" {
            properties[field] = json!({ "type": "string" });
        }
    }
    properties["metadata"] = json!({ "$ref": format!("{REFERENCE_PREFIX}{OBJECT_META}") });
}

/// Adds the fields of an object to every embedded resource.
fn walk_embedded(schema: &mut Value) {
    if schema["x-kubernetes-embedded-resource"] == Value::Bool(true) {
        add_object_fields(schema);
    }
    let Value::Object(object) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(walk_embedded);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = object.get_mut(key)
            && child.is_object()
        {
            walk_embedded(child);
        }
    }
}

/// The type of one place in an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    /// The schema in the parent, with list types and merge keys.
    outer: &'a Value,
    /// The referenced schema, with the fields; the same as `outer` without a reference.
    inner: &'a Value,
    name: Option<&'a str>,
}

impl<'a> Node<'a> {
    /// The type that `schema` describes.
    pub(crate) fn new(schema: &'a Value) -> Self {
        let reference = schema
            .get("$ref")
            .or_else(|| {
                schema
                    .get("allOf")
                    .and_then(|all| all.get(0))
                    .and_then(|first| first.get("$ref"))
            })
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix(REFERENCE_PREFIX));
        let inner = reference.and_then(definition).unwrap_or(schema);
        Self {
            outer: schema,
            inner,
            name: reference,
        }
    }

    /// The schema with the fields.
    pub(crate) fn schema(&self) -> &'a Value {
        self.inner
    }

    /// The name of the definition, if it has one.
    pub(crate) fn definition(&self) -> Option<&'a str> {
        self.name
    }

    fn extension(&self, name: &str) -> Option<&'a Value> {
        self.outer.get(name).or_else(|| self.inner.get(name))
    }

    /// The JSON type, if stated.
    pub(crate) fn json_type(&self) -> Option<&'a str> {
        self.inner.get("type").and_then(Value::as_str)
    }

    /// The type of a declared field.
    pub(crate) fn declared(&self, field: &str) -> Option<Node<'a>> {
        self.inner.get("properties")?.get(field).map(Node::new)
    }

    /// Whether the field is declared by name.
    pub(crate) fn declares(&self, field: &str) -> bool {
        self.declared(field).is_some()
    }

    /// The type of the values of a map.
    pub(crate) fn values(&self) -> Option<Node<'a>> {
        self.inner
            .get("additionalProperties")
            .filter(|schema| schema.is_object())
            .map(Node::new)
    }

    /// The type of a field, declared or as the value of a map.
    pub(crate) fn field(&self, field: &str) -> Option<Node<'a>> {
        self.declared(field).or_else(|| self.values())
    }

    /// The type of a list's items.
    pub(crate) fn items(&self) -> Option<Node<'a>> {
        self.inner.get("items").map(Node::new)
    }

    /// The identity of the items of this list.
    pub(crate) fn list_kind(&self) -> ListKind<'a> {
        match self
            .extension("x-kubernetes-list-type")
            .and_then(Value::as_str)
        {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(
                self.extension("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array)
                    .map(|keys| keys.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default(),
            ),
            _ => ListKind::Atomic,
        }
    }

    /// Whether this object is atomic for server-side apply.
    pub(crate) fn is_atomic_map(&self) -> bool {
        self.extension("x-kubernetes-map-type")
            .is_some_and(|kind| kind == "atomic")
    }

    /// The merge key of this list for a strategic merge patch.
    pub(crate) fn patch_merge_key(&self) -> Option<&'a str> {
        self.extension("x-kubernetes-patch-merge-key")
            .and_then(Value::as_str)
    }

    /// Whether `strategy` is among the strategies of a strategic merge patch for this place.
    pub(crate) fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.extension("x-kubernetes-patch-strategy")
            .and_then(Value::as_str)
            .is_some_and(|all| all.split(',').any(|one| one == strategy))
    }

    /// Whether fields that are not declared are kept.
    pub(crate) fn keeps_unknown_fields(&self) -> bool {
        self.extension("x-kubernetes-preserve-unknown-fields")
            .is_some_and(|flag| flag == &Value::Bool(true))
    }

    /// The default of this place.
    pub(crate) fn default(&self) -> Option<&'a Value> {
        self.outer.get("default")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_identified_by_name_and_ports_by_two_fields() {
        let pod = TypeInfo::builtin("", "v1", "Pod").unwrap();
        let containers = pod
            .root()
            .field("spec")
            .unwrap()
            .field("containers")
            .unwrap();
        assert_eq!(containers.list_kind(), ListKind::Map(vec!["name"]));
        assert_eq!(containers.patch_merge_key(), Some("name"));
        let ports = containers.items().unwrap().field("ports").unwrap();
        assert_eq!(
            ports.list_kind(),
            ListKind::Map(vec!["containerPort", "protocol"])
        );
        assert_eq!(ports.patch_merge_key(), Some("containerPort"));
        assert_eq!(
            pod.root()
                .field("spec")
                .unwrap()
                .field("tolerations")
                .unwrap()
                .list_kind(),
            ListKind::Atomic
        );
    }

    #[test]
    fn a_custom_resource_has_the_metadata_of_every_object() {
        let custom = TypeInfo::custom(
            &json!({ "type": "object", "properties": { "spec": { "type": "object" } } }),
        );
        let owners = custom
            .root()
            .field("metadata")
            .unwrap()
            .field("ownerReferences")
            .unwrap();
        assert_eq!(owners.list_kind(), ListKind::Map(vec!["uid"]));
    }

    #[test]
    fn an_empty_replica_set_has_an_empty_template() {
        let set = TypeInfo::builtin("apps", "v1", "ReplicaSet").unwrap();
        let empty = json!({ "metadata": {}, "spec": { "template": { "metadata": {}, "spec": { "containers": null } } }, "status": {} });
        assert_eq!(set.empty_object(), empty);
    }
}
