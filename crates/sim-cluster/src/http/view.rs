//! Objects and lists in the representation that a client requests.

use std::borrow::Cow;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::negotiate::Shape;
use super::query::Query;
use crate::clock::Clock;
use crate::object::Object;
use crate::resources::Kind;
use crate::status::Status;
use crate::tables::{self, RowObject};

/// The representation that a client requests of objects of a kind.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) row_object: RowObject,
}

/// `metadata` of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<usize>,
}

impl View {
    /// # Errors
    /// 400 for an invalid `includeObject`.
    pub(crate) fn new(kind: &Kind, shape: Shape, query: &Query) -> Result<Self, Status> {
        let row_object = match query.get("includeObject") {
            "None" => RowObject::None,
            "Object" => RowObject::Object,
            "" | "Metadata" => RowObject::Metadata,
            _ if shape != Shape::Table => RowObject::Metadata,
            other => {
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
                     'Metadata', 'Object', 'None', or empty"
                )));
            }
        };
        Ok(Self {
            kind: kind.clone(),
            shape,
            row_object,
        })
    }

    /// One object.
    pub(crate) fn object<'a>(&self, object: &'a Object, clock: &Clock) -> Cow<'a, Value> {
        match self.shape {
            Shape::Plain | Shape::Discovery => Cow::Borrowed(object),
            Shape::Metadata => Cow::Owned(metadata_only(object)),
            Shape::Table => {
                let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let objects = std::slice::from_ref(object);
                Cow::Owned(tables::table(
                    &self.kind,
                    objects,
                    &meta,
                    self.row_object,
                    true,
                    clock.now(),
                ))
            }
        }
    }

    /// One object of a watch; only the first row has the column definitions.
    pub(crate) fn event_object<'a>(
        &self,
        object: &'a Object,
        clock: &Clock,
        first: bool,
    ) -> Cow<'a, Value> {
        if self.shape != Shape::Table {
            return self.object(object, clock);
        }
        let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let objects = std::slice::from_ref(object);
        Cow::Owned(tables::table(
            &self.kind,
            objects,
            &meta,
            self.row_object,
            first,
            clock.now(),
        ))
    }
}

impl ListMeta {
    pub(crate) fn to_value(&self) -> Value {
        let mut meta = json!({"resourceVersion": self.revision.to_string()});
        if !self.continue_token.is_empty() {
            meta["continue"] = json!(self.continue_token);
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = json!(remaining);
        }
        meta
    }
}

/// An object as `PartialObjectMetadata`.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// A list of complete objects, serialized without a copy. Items of built-in kinds omit kind and API version.
pub(crate) struct PlainList<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) meta: Value,
    pub(crate) items: &'a [Object],
}

impl PlainList<'_> {
    /// Lists of custom resources have an empty `continue`.
    fn listed_meta(&self) -> Value {
        let mut meta = self.meta.clone();
        if self.kind.is_custom() && meta.get("continue").is_none() {
            meta["continue"] = "".into();
        }
        meta
    }
}

impl Serialize for PlainList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", &self.kind.list_kind)?;
        map.serialize_entry("apiVersion", &self.kind.api_version())?;
        map.serialize_entry("metadata", &self.listed_meta())?;
        let items = Items {
            items: self.items,
            typed: self.kind.is_custom(),
        };
        map.serialize_entry("items", &items)?;
        map.end()
    }
}

struct Items<'a> {
    items: &'a [Object],
    typed: bool,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.items.len()))?;
        for object in self.items {
            if self.typed {
                sequence.serialize_element(&**object)?;
            } else {
                sequence.serialize_element(&Untyped(object))?;
            }
        }
        sequence.end()
    }
}

/// An object without `kind` and `apiVersion`.
struct Untyped<'a>(&'a Value);

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer
            .collect_map(fields.filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion")))
    }
}
