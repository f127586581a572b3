//! What writes have in common: the object they are for, the form they come in, and what they return.

use serde_json::Value;

use crate::object::Object;
use crate::resources::Kind;

/// What is updated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a Kind,
    /// `status`, `finalize`, ... or the object itself.
    pub(crate) subresource: Option<&'a str>,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// A patch in one of the four forms.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own, for built-in kinds.
    Strategic(Value),
    /// Server-side apply.
    Apply(Value),
}

/// Where an object that is to be stored comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin<'a> {
    /// Its writer made all of it: what differs from before is the writer's.
    Written,
    /// The same by a patch other than apply, which is said in refusals.
    Patched(&'a Patch),
    /// Server-side apply made it and has recorded the owners.
    Applied,
}

/// What a write gave: the object and what the writer should be warned of.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object as stored, or as it would be stored in a dry run.
    pub object: Object,
    /// One text per `Warning` header.
    pub warnings: Vec<String>,
    /// Whether the object is new.
    pub created: bool,
}
