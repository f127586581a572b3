//! A committed change of one object, and the JSON of it that watches share.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::object::Object;
use crate::resources::Kind;

/// One committed change of one object.
#[derive(Debug)]
pub struct Change {
    /// The version of the change.
    pub revision: u64,
    /// The kind in the version in which the object was written.
    pub kind: Kind,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The old state; `None` if the object was created.
    pub old: Option<Object>,
    /// The new state; `None` if the object was removed.
    pub new: Option<Object>,
    tombstone: OnceLock<Object>,
    new_json: OnceLock<Bytes>,
    tombstone_json: OnceLock<Bytes>,
}

impl Change {
    pub(crate) fn new(
        revision: u64,
        kind: &Kind,
        namespace: &str,
        name: &str,
        old: Option<Object>,
        new: Option<Object>,
    ) -> Self {
        Self {
            revision,
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            old,
            new,
            tombstone: OnceLock::new(),
            new_json: OnceLock::new(),
            tombstone_json: OnceLock::new(),
        }
    }

    /// An existing object as if it was created now: for readers that start with a list.
    pub(crate) fn found(kind: &Kind, object: Object) -> Self {
        let place = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let revision = place("resourceVersion").parse().unwrap_or_default();
        let (namespace, name) = (place("namespace"), place("name"));
        Self::new(revision, kind, &namespace, &name, None, Some(object))
    }

    /// The old state with the resource version of this change: watches show it for an object that was removed or is no longer
    /// selected.
    pub fn tombstone(&self) -> Option<&Object> {
        let old = self.old.as_ref()?;
        Some(self.tombstone.get_or_init(|| {
            let mut last = Value::clone(old);
            last["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
            Arc::new(last)
        }))
    }

    /// The JSON of the new state, encoded once for all watches.
    pub(crate) fn new_json(&self) -> Option<Bytes> {
        let new = self.new.as_ref()?;
        Some(self.new_json.get_or_init(|| to_json(new)).clone())
    }

    /// The JSON of the tombstone, encoded once for all watches.
    pub(crate) fn tombstone_json(&self) -> Option<Bytes> {
        let tombstone = self.tombstone()?;
        Some(
            self.tombstone_json
                .get_or_init(|| to_json(tombstone))
                .clone(),
        )
    }
}

/// The object of a JSON text.
pub(crate) fn from_json(json: &Bytes) -> Object {
    Arc::new(serde_json::from_slice(json).expect("JSON that was written here can be read"))
}

/// The JSON of a value.
pub(crate) fn to_json(value: &Value) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("a JSON value can be written as JSON"))
}
