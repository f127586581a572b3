//! Decoding of a body of a built-in kind, as Go decodes it into the kind's struct.
//!
//! value -> wrong types (an error) -> unknown fields (reported and dropped) -> canonical quantities -> without the fields
//! that Go omits (empty lists, maps and strings).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::field::{go_json_kind, quote};
use crate::quantity::{NotAQuantity, Quantity};
use crate::schema::{Node, TypeInfo};

/// A body that does not fit the kind's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// A value of the wrong JSON type.
    #[error("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")]
    WrongType {
        /// The JSON type found, as Go names it.
        found: String,
        /// Go struct that has the field.
        owner: String,
        /// Path without list indices.
        path: String,
        /// Go type of the field.
        wanted: String,
    },
    /// A string that is no quantity.
    #[error(transparent)]
    Quantity(#[from] NotAQuantity),
    /// A string that is not base64, at this byte.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// A string that is no time.
    #[error("parsing time {} as \"2006-01-02T15:04:05Z07:00\": cannot parse {} as \"2006\"", quote(.0), quote(.0))]
    Time(String),
}

/// The message of the 400 that an undecodable body gets; `detail` is a [`DecodeError`] or a strict decoding error.
pub(crate) fn decode_message(kind: &str, version: &str, detail: &str) -> String {
    format!(
        "{kind} in version {} cannot be handled as a {kind}: {detail}",
        quote(version)
    )
}

/// Decodes `object` by its type into the form in which the API server stores it.
/// Returns the paths of unknown fields, which are dropped, in the order found.
pub(crate) fn decode(object: &mut Value, info: &TypeInfo) -> Result<Vec<String>, DecodeError> {
    let mut reader = Reader {
        unknown: Vec::new(),
    };
    reader.read(object, info.root(), &Place::ROOT)?;
    Ok(reader.unknown)
}

/// Decodes the metadata of a custom resource, as [`decode`] does for a complete built-in object.
pub(crate) fn decode_metadata(object: &mut Value) -> Result<Vec<String>, DecodeError> {
    let mut reader = Reader {
        unknown: Vec::new(),
    };
    let any = TypeInfo::custom(&Value::Null);
    if let (Some(metadata), Some(node)) = (object.get_mut("metadata"), any.root().field("metadata"))
    {
        reader.read(metadata, node, &Place::ROOT.field("metadata", "ObjectMeta"))?;
    }
    Ok(reader.unknown)
}

/// A place in the body. Its path is only written for an error or an unknown field, so that reading allocates nothing.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
    /// The Go struct that has the field.
    owner: &'a str,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    /// A key of a map: not in the paths of type errors.
    Key(&'a str),
    /// An item of a list: not in the paths of type errors.
    Item(usize),
}

impl<'a> Place<'a> {
    const ROOT: Place<'static> = Place {
        parent: None,
        step: Step::Root,
        owner: "",
    };

    fn field(&'a self, name: &'a str, owner: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Field(name),
            owner,
        }
    }

    fn below(&'a self, step: Step<'a>) -> Self {
        Self {
            parent: Some(self),
            step,
            owner: self.owner,
        }
    }

    /// The path with keys and indices, for unknown fields.
    fn indexed(&self) -> String {
        let front = self.parent.map(Place::indexed).unwrap_or_default();
        match self.step {
            Step::Root => front,
            Step::Field(name) if front.is_empty() => name.to_owned(),
            Step::Field(name) | Step::Key(name) => format!("{front}.{name}"),
            Step::Item(index) => format!("{front}[{index}]"),
        }
    }

    /// The path without them, for type errors.
    fn plain(&self) -> String {
        let front = self.parent.map(Place::plain).unwrap_or_default();
        match self.step {
            Step::Field(name) if front.is_empty() => name.to_owned(),
            Step::Field(name) => format!("{front}.{name}"),
            Step::Root | Step::Key(_) | Step::Item(_) => front,
        }
    }
}

struct Reader {
    unknown: Vec<String>,
}

impl Reader {
    fn read(
        &mut self,
        value: &mut Value,
        node: Node<'_>,
        place: &Place<'_>,
    ) -> Result<(), DecodeError> {
        let definition = short_name(node);
        match definition {
            "Quantity" => return read_quantity(value),
            "IntOrString" => {
                return expect(value, place, node, value.is_i64() || value.is_string());
            }
            "FieldsV1" | "RawExtension" | "JSON" => return Ok(()),
            "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" => {
                read_bounds(value);
                return Ok(());
            }
            "Time" | "MicroTime" => return read_time(value, place, node),
            _ => {}
        }
        match node.json_type() {
            Some("object") => self.read_object(value, node, place),
            Some("array") => self.read_list(value, node, place),
            Some("string") if node.schema()["format"] == "byte" => read_base64(value, place, node),
            Some("string") => expect(value, place, node, value.is_string()),
            Some("boolean") => expect(value, place, node, value.is_boolean()),
            Some("integer") => expect(value, place, node, value.is_i64() || value.is_u64()),
            Some("number") => {
                expect(value, place, node, value.is_number())?;
                write_as_integer(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read_list(
        &mut self,
        value: &mut Value,
        node: Node<'_>,
        place: &Place<'_>,
    ) -> Result<(), DecodeError> {
        expect(value, place, node, value.is_array())?;
        let (Value::Array(items), Some(item_type)) = (value, node.items()) else {
            return Ok(());
        };
        for (index, item) in items.iter_mut().enumerate() {
            if !item.is_null() {
                self.read(item, item_type, &place.below(Step::Item(index)))?;
            }
        }
        Ok(())
    }

    fn read_object(
        &mut self,
        value: &mut Value,
        node: Node<'_>,
        place: &Place<'_>,
    ) -> Result<(), DecodeError> {
        expect(value, place, node, value.is_object())?;
        let Value::Object(fields) = value else {
            return Ok(());
        };
        if let Some(values) = node.values() {
            for (key, child) in fields.iter_mut() {
                if child.is_null() && values.json_type() == Some("string") {
                    *child = "".into();
                } else {
                    self.read(child, values, &place.below(Step::Key(key)))?;
                }
            }
            return Ok(());
        }
        if node.schema().get("properties").is_none() {
            return Ok(());
        }
        let owner = short_name(node);
        let mut outcome = Ok(());
        fields.retain(|name, child| {
            if outcome.is_err() {
                return true;
            }
            let place = place.field(name, owner);
            let Some(field_type) = node.declared(name) else {
                self.unknown.push(place.indexed());
                return false;
            };
            if !child.is_null() {
                outcome = self.read(child, field_type, &place);
            }
            outcome.is_err() || !is_left_out(child, name, node, field_type)
        });
        outcome?;
        for (_, name, value) in ALWAYS_WRITTEN.iter().filter(|(known, ..)| *known == owner) {
            if node.declared(name).is_some() && !fields.contains_key(*name) {
                fields.insert((*name).to_owned(), value.clone());
            }
        }
        Ok(())
    }
}

fn short_name(node: Node<'_>) -> &str {
    node.definition()
        .and_then(|name| name.rsplit('.').next())
        .unwrap_or_default()
}

fn expect(value: &Value, place: &Place<'_>, node: Node<'_>, fits: bool) -> Result<(), DecodeError> {
    if fits {
        return Ok(());
    }
    let found = match value {
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        other => go_json_kind(other).to_owned(),
    };
    Err(DecodeError::WrongType {
        found,
        owner: place.owner.to_owned(),
        path: place.plain(),
        wanted: go_type(node),
    })
}

/// The Go type of a place, as Go's errors name it.
fn go_type(node: Node<'_>) -> String {
    if let Some(definition) = node.definition() {
        let mut parts = definition.rsplit('.');
        let name = parts.next().unwrap_or_default();
        return format!("{}.{name}", parts.next().unwrap_or_default());
    }
    match node.json_type() {
        Some("integer") => node.schema()["format"]
            .as_str()
            .unwrap_or("int64")
            .to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("number") => "float64".to_owned(),
        Some("array") => format!(
            "[]{}",
            node.items().map_or_else(|| "string".to_owned(), go_type)
        ),
        Some("object") => format!(
            "map[string]{}",
            node.values().map_or_else(|| "string".to_owned(), go_type)
        ),
        _ => "string".to_owned(),
    }
}

/// The bounds of schemas within schemas.
fn read_bounds(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "minimum" | "maximum" | "multipleOf" => write_as_integer(value),
                    "default" | "enum" | "example" => {}
                    _ => read_bounds(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(read_bounds),
        _ => {}
    }
}

/// Go encodes a number without a fraction as an integer.
fn write_as_integer(value: &mut Value) {
    /// Floats represent every integer up to this one exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(number) = value.as_f64()
        && number.fract() == 0.0
        && number.abs() < EXACT
    {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it has no fraction and is small"
        )]
        let number = number as i64;
        *value = number.into();
    }
}

fn read_quantity(value: &mut Value) -> Result<(), DecodeError> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(NotAQuantity.into()),
    };
    *value = text.parse::<Quantity>()?.to_string().into();
    Ok(())
}

fn read_base64(value: &Value, place: &Place<'_>, node: Node<'_>) -> Result<(), DecodeError> {
    expect(value, place, node, value.is_string())?;
    let text = value.as_str().unwrap_or_default();
    match STANDARD.decode(text) {
        Ok(_) => Ok(()),
        Err(
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _),
        ) => Err(DecodeError::Base64(at)),
        Err(_) => Err(DecodeError::Base64(text.len())),
    }
}

fn read_time(value: &mut Value, place: &Place<'_>, node: Node<'_>) -> Result<(), DecodeError> {
    expect(value, place, node, value.is_string())?;
    let text = value.as_str().unwrap_or_default();
    match text.parse::<jiff::Timestamp>() {
        Ok(_) => Ok(()),
        Err(_) => Err(DecodeError::Time(text.to_owned())),
    }
}

/// Booleans that are not pointers in Go: `false` equals absent.
const FALSE_LEFT_OUT: &[&str] = &[
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "stdin",
    "stdinOnce",
    "tty",
    "paused",
    "unschedulable",
    "publishNotReadyAddresses",
];
/// Numbers that are not pointers in Go: 0 equals absent.
const ZERO_LEFT_OUT: &[&str] = &[
    "minReadySeconds",
    "hostPort",
    "readyReplicas",
    "availableReplicas",
    "fullyLabeledReplicas",
    "updatedReplicas",
    "unavailableReplicas",
    "observedGeneration",
    "initialDelaySeconds",
    "count",
];
/// Strings that are pointers in Go: an empty one differs from an absent one.
const EMPTY_STRING_KEPT: &[&str] = &[
    "storageClassName",
    "volumeName",
    "ingressClassName",
    "holderIdentity",
];
/// Fields that Go encodes even if they are not set, by their type.
const ALWAYS_WRITTEN: &[(&str, &str, Value)] = &[
    ("PodCondition", "lastProbeTime", Value::Null),
    ("PodCondition", "lastTransitionTime", Value::Null),
    ("ReplicaSetCondition", "lastTransitionTime", Value::Null),
    ("DeploymentCondition", "lastTransitionTime", Value::Null),
    ("DeploymentCondition", "lastUpdateTime", Value::Null),
    ("NamespaceCondition", "lastTransitionTime", Value::Null),
    ("Event", "eventTime", Value::Null),
    ("Event", "reportingComponent", Value::String(String::new())),
    ("Event", "reportingInstance", Value::String(String::new())),
];

/// Whether Go omits this field when it encodes the object.
fn is_left_out(value: &Value, name: &str, parent: Node<'_>, node: Node<'_>) -> bool {
    let required = || {
        parent.schema()["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == name))
    };
    match value {
        Value::Null => true,
        // A field without a known type stays.
        _ if short_name(node) == "JSON" => false,
        Value::Bool(flag) => !flag && FALSE_LEFT_OUT.contains(&name),
        Value::Number(number) => {
            // The status of a ReplicaSet has this one always.
            let is_status = || name == "replicas" && short_name(parent) == "DeploymentStatus";
            number.as_i64() == Some(0) && (ZERO_LEFT_OUT.contains(&name) || is_status())
        }
        Value::String(text) => text.is_empty() && !EMPTY_STRING_KEPT.contains(&name) && !required(),
        // An empty list of managers resets the ownership.
        Value::Array(items) => items.is_empty() && !required() && name != "managedFields",
        Value::Object(fields) => fields.is_empty() && node.values().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn read(kind: &str, mut object: Value) -> Result<(Value, Vec<String>), DecodeError> {
        let group = if kind == "ReplicaSet" { "apps" } else { "" };
        let unknown = decode(&mut object, &TypeInfo::builtin(group, "v1", kind).unwrap())?;
        Ok((object, unknown))
    }

    #[rstest]
    #[case("ReplicaSet", json!({"spec": {"replicas": "x"}}), "json: cannot unmarshal string into Go struct field ReplicaSetSpec.spec.replicas of type int32")]
    #[case("Pod", json!({"spec": {"containers": {}}}), "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container")]
    #[case("ConfigMap", json!({"data": {"a": 1}}), "json: cannot unmarshal number into Go struct field ConfigMap.data of type string")]
    #[case("Secret", json!({"data": {"a": "b!"}}), "illegal base64 data at input byte 1")]
    #[case("Pod", json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}), "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    fn a_wrong_type_is_named_as_go_names_it(
        #[case] kind: &str,
        #[case] object: Value,
        #[case] message: &str,
    ) {
        assert_eq!(read(kind, object).unwrap_err().to_string(), message);
    }

    #[test]
    fn unknown_fields_are_reported_with_indices_and_dropped() {
        let (object, unknown) = read(
            "Pod",
            json!({"spec": {"containers": [{"name": "a", "imagge": "x"}]}, "extra": 1}),
        )
        .unwrap();
        assert_eq!(unknown, ["extra", "spec.containers[0].imagge"]);
        assert_eq!(object, json!({"spec": {"containers": [{"name": "a"}]}}));
    }

    #[test]
    fn quantities_become_canonical_and_empty_values_are_omitted() {
        let (object, _) = read("Pod", json!({
            "metadata": {"labels": {}, "creationTimestamp": null},
            "spec": {"nodeName": "", "hostNetwork": false, "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{"name": "a", "env": [], "resources": {"requests": {"cpu": 0.5, "memory": "1024Mi"}}}]}
        })).unwrap();
        assert_eq!(
            object,
            json!({
                "metadata": {},
                "spec": {"volumes": [{"name": "v", "emptyDir": {}}],
                    "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}
            })
        );
    }
}
