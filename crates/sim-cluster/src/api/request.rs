//! The types that all writes share: their target, the formats of patches, the origin of an object, and the result.

use serde_json::Value;

use crate::object::Object;
use crate::resources::Kind;

/// The object, or the subresource of an object, that a write is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a Kind,
    /// `status`, `finalize`, ...; `None` for the object itself.
    pub(crate) subresource: Option<&'a str>,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// A patch in one of the four formats.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// JSON patch, RFC 6902.
    Json(Value),
    /// JSON merge patch, RFC 7386.
    Merge(Value),
    /// Strategic merge patch, for built-in kinds.
    Strategic(Value),
    /// Server-side apply.
    Apply(Value),
}

/// How an object that is to be stored was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin<'a> {
    /// By its writer, who owns what differs from before.
    Written,
    /// By a patch other than apply, which the messages of errors quote.
    Patched(&'a Patch),
    /// By server-side apply, which has recorded the owners.
    Applied,
}

/// The result of a write: the object and the warnings.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object as stored, or as it would be stored in a dry run.
    pub object: Object,
    /// One text per `Warning` header.
    pub warnings: Vec<String>,
    /// Whether the write created the object.
    pub created: bool,
}
