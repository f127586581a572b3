//! Bodies in protobuf: `kubectl create`, `auth` and `drain` post no other encoding.
//!
//! A body is `k8s\0`, then `runtime.Unknown { typeMeta = 1, raw = 2 }`; `raw` is the object, decoded by the tables of
//! [`messages`]. Answers are JSON, which these clients accept. Kinds without a table and bodies with unknown fields are
//! answered with 415, so that no field is lost silently.

mod messages;
mod wire;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use messages::{Field, Message, Type};
use wire::{Fields, Wire};

/// The object in a body; `None` if its kind has no table, or if it is malformed or has fields that the table does not have.
pub(crate) fn object(body: &[u8]) -> Option<Value> {
    let unknown = body.strip_prefix(b"k8s\0")?;
    let unknown = message(unknown, messages::UNKNOWN)?;
    let (api_version, kind) = (
        &unknown["typeMeta"]["apiVersion"],
        &unknown["typeMeta"]["kind"],
    );
    let table = messages::of_kind(api_version.as_str()?, kind.as_str()?)?;
    let raw = STANDARD.decode(unknown["raw"].as_str()?).ok()?;
    let mut object = message(&raw, table)?;
    object["apiVersion"] = api_version.clone();
    object["kind"] = kind.clone();
    Some(object)
}

/// Decodes a message by its table. Empty fields that Go omits from JSON are omitted.
fn message(bytes: &[u8], table: Message) -> Option<Value> {
    let mut object = Map::new();
    for entry in Fields(bytes) {
        let (number, wire) = entry?;
        match table.iter().find(|field| field.number == number) {
            Some(field) => read_field(&mut object, field, &wire)?,
            None if says_nothing(&wire) => {}
            None => return None,
        }
    }
    Some(Value::Object(object))
}

/// Whether a field has the encoding of one that is not set: zero, empty, or a message of such fields.
fn says_nothing(wire: &Wire<'_>) -> bool {
    match wire {
        Wire::Number(number) => *number == 0,
        Wire::Bytes(bytes) => {
            Fields(bytes).all(|entry| entry.is_some_and(|(_, wire)| says_nothing(&wire)))
        }
    }
}

fn read_field(object: &mut Map<String, Value>, field: &Field, wire: &Wire<'_>) -> Option<()> {
    match field.form {
        Type::List(item) => {
            let value = value_of(wire, item)?;
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut()?.push(value);
        }
        Type::Map(item) => {
            let Wire::Bytes(entry) = wire else {
                return None;
            };
            let (mut key, mut value) = (String::new(), json!(""));
            for part in Fields(entry) {
                match part? {
                    (1, Wire::Bytes(bytes)) => key = text(bytes)?,
                    (2, wire) => value = value_of(&wire, item)?,
                    _ => {}
                }
            }
            let map = object.entry(field.name).or_insert_with(|| json!({}));
            map.as_object_mut()?.insert(key, value);
        }
        form => {
            let value = value_of(wire, &form)?;
            let empty = value == json!("")
                || value == json!({}) && field.name != "spec"
                || value == json!(0) && matches!(form, Type::Port);
            if !empty {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Some(())
}

fn value_of(wire: &Wire<'_>, form: &Type) -> Option<Value> {
    Some(match (form, wire) {
        (Type::Text, Wire::Bytes(bytes)) => json!(text(bytes)?),
        (Type::Bytes, Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Type::Message(table), Wire::Bytes(bytes)) => message(bytes, table)?,
        // `resource.Quantity { string = 1 }`.
        (Type::Quantity, Wire::Bytes(bytes)) => message(bytes, messages::QUANTITY)?["text"].clone(),
        (Type::IntOrString, Wire::Bytes(bytes)) => {
            let either = message(bytes, messages::INT_OR_STRING)?;
            let is_text = either["type"] == json!(1);
            either[if is_text { "text" } else { "number" }].clone()
        }
        (Type::Number | Type::Port, Wire::Number(number)) => json!(number.cast_signed()),
        (Type::Flag, Wire::Number(number)) => json!(*number != 0),
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimited(number: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).expect("short in tests");
        [&[number << 3 | 2, length], value].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [
            delimited(1, api_version.as_bytes()),
            delimited(2, kind.as_bytes()),
        ]
        .concat();
        [
            b"k8s\0".to_vec(),
            delimited(1, &type_meta),
            delimited(2, raw),
        ]
        .concat()
    }

    #[test]
    fn reads_an_autoscaler() {
        let target = [
            delimited(1, b"WidgetSet"),
            delimited(2, b"web"),
            delimited(3, b"example.org/v1"),
        ]
        .concat();
        let metric_target = [delimited(1, b"Utilization"), vec![4 << 3, 80]].concat();
        let resource = [delimited(1, b"cpu"), delimited(2, &metric_target)].concat();
        let metric = [delimited(1, b"Resource"), delimited(4, &resource)].concat();
        let spec = [
            delimited(1, &target),
            vec![2 << 3, 2, 3 << 3, 5],
            delimited(4, &metric),
        ]
        .concat();
        // An empty status.
        let status = delimited(3, &[3 << 3, 0, 4 << 3, 0]);
        let raw = [
            delimited(1, &delimited(1, b"web")),
            delimited(2, &spec),
            status,
        ]
        .concat();
        assert_eq!(
            object(&body("autoscaling/v2", "HorizontalPodAutoscaler", &raw)).unwrap()["spec"],
            json!({
                "scaleTargetRef": {
                    "apiVersion": "example.org/v1", "kind": "WidgetSet", "name": "web",
                },
                "minReplicas": 2,
                "maxReplicas": 5,
                "metrics": [{
                    "type": "Resource",
                    "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } },
                }],
            })
        );
    }

    #[test]
    fn reads_a_review() {
        let attributes = [
            delimited(1, b"default"),
            delimited(2, b"list"),
            delimited(5, b"pods"),
        ]
        .concat();
        let raw = delimited(2, &delimited(1, &attributes));
        let object = object(&body(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            &raw,
        ))
        .unwrap();
        assert_eq!(
            object["spec"],
            json!({"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "pods"}})
        );
    }

    #[test]
    fn reads_maps_and_numbers() {
        let entry = [delimited(1, b"key"), delimited(2, b"value")].concat();
        let metadata = [delimited(1, b"a"), delimited(11, &entry)].concat();
        let raw = [
            delimited(1, &metadata),
            delimited(2, &entry),
            vec![4 << 3, 1],
        ]
        .concat();
        assert_eq!(
            object(&body("v1", "ConfigMap", &raw)).unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}, "immutable": true,
                "metadata": {"name": "a", "labels": {"key": "value"}}})
        );
    }

    #[test]
    fn a_host_port_of_0_is_no_port() {
        let port = |number: u8| [vec![3 << 3, 80], vec![5 << 3, number]].concat();
        let ports = [delimited(1, &port(0)), delimited(1, &port(9))].concat();
        let service = object(&body("v1", "Service", &delimited(2, &ports))).unwrap();
        assert_eq!(
            service["spec"]["ports"],
            json!([{"port": 80}, {"port": 80, "nodePort": 9}])
        );
    }

    #[test]
    fn rejects_bodies_with_unknown_fields() {
        let with = |field: Vec<u8>| {
            let metadata = delimited(1, &[delimited(1, b"a"), field].concat());
            object(&body("v1", "ConfigMap", &metadata)).is_some()
        };
        assert!(with(delimited(8, b"")), "no creationTimestamp");
        assert!(with(delimited(8, &delimited(1, b""))), "nothing in it");
        assert!(with(vec![7 << 3, 0]), "generation 0");
        assert!(!with(vec![7 << 3, 1]), "generation 1");
        assert!(!with(delimited(13, &delimited(3, b"owner"))), "an owner");
    }

    #[test]
    fn rejects_other_messages() {
        assert!(object(b"k8s\0\x0a\xff").is_none());
        assert!(object(b"{}").is_none());
        assert!(object(&body("v1", "Node", b"")).is_none());
    }
}
