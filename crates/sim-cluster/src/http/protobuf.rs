//! Just enough protobuf for `SelfSubjectAccessReview`, which `kubectl auth can-i` posts in it.
//!
//! A message is `k8s\0`, then `runtime.Unknown { typeMeta = 1, raw = 2 }`; `raw` is the review:
//! `spec = 2 { resourceAttributes = 1 { namespace .. name = 1..7 }, nonResourceAttributes = 2 { path, verb } }`.

use serde_json::{Map, Value, json};

/// Length-delimited fields of a message, by number.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let tag = varint(&mut self.0)?;
            match tag & 7 {
                0 => {
                    varint(&mut self.0)?;
                }
                2 => {
                    let length = usize::try_from(varint(&mut self.0)?).ok()?;
                    let (value, rest) = self.0.split_at_checked(length)?;
                    self.0 = rest;
                    return Some((tag >> 3, value));
                }
                // Fixed-width numbers and groups don't occur in these messages.
                _ => return None,
            }
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn field(message: &[u8], number: u64) -> Option<&[u8]> {
    Fields(message)
        .find(|(at, _)| *at == number)
        .map(|(_, value)| value)
}

fn texts(message: &[u8], names: &[&str]) -> Value {
    let mut object = Map::new();
    for (number, value) in Fields(message) {
        let index = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
        if let (Some(name), Ok(text)) = (names.get(index), std::str::from_utf8(value))
            && !text.is_empty()
        {
            object.insert((*name).to_owned(), json!(text));
        }
    }
    Value::Object(object)
}

/// The review in a body; `None` if it is something else.
pub(crate) fn access_review(body: &[u8]) -> Option<Value> {
    let unknown = body.strip_prefix(b"k8s\0")?;
    let type_meta = texts(field(unknown, 1)?, &["apiVersion", "kind"]);
    if type_meta["kind"] != "SelfSubjectAccessReview" {
        return None;
    }
    let review = field(unknown, 2)?;
    let spec = field(review, 2).unwrap_or_default();
    let mut value =
        json!({"apiVersion": type_meta["apiVersion"], "kind": type_meta["kind"], "spec": {}});
    if let Some(attributes) = field(spec, 1) {
        let names = [
            "namespace",
            "verb",
            "group",
            "version",
            "resource",
            "subresource",
            "name",
        ];
        value["spec"]["resourceAttributes"] = texts(attributes, &names);
    }
    if let Some(attributes) = field(spec, 2) {
        value["spec"]["nonResourceAttributes"] = texts(attributes, &["path", "verb"]);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimited(number: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).expect("short in tests");
        [&[number << 3 | 2, length], value].concat()
    }

    #[test]
    fn reads_a_review() {
        let attributes = [
            delimited(1, b"default"),
            delimited(2, b"list"),
            delimited(5, b"pods"),
        ]
        .concat();
        let review = delimited(2, &delimited(1, &attributes));
        let type_meta = [
            delimited(1, b"authorization.k8s.io/v1"),
            delimited(2, b"SelfSubjectAccessReview"),
        ];
        let body = [
            b"k8s\0".to_vec(),
            delimited(1, &type_meta.concat()),
            delimited(2, &review),
        ]
        .concat();
        assert_eq!(
            access_review(&body).unwrap()["spec"],
            json!({"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "pods"}})
        );
        assert!(access_review(b"k8s\0\x0a\xff").is_none());
        assert!(access_review(b"{}").is_none());
    }
}
