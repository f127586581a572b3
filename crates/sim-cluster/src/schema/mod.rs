//! Types of objects: the built-in kinds' and those of custom resource definitions.
//!
//! JSON schema -> [`TypeInfo`] (what a merge, server-side apply or a strict decode has to know).
//! Both sources are `OpenAPI` v3 schemas with Kubernetes' extensions, so one walk serves both.

mod definitions;
mod merge_keys;
mod type_info;

pub use definitions::{
    BuiltinKind, KINDS, REFERENCE_PREFIX, builtin_kind, definition, definitions,
};
pub use type_info::{ListKind, Node, TypeInfo};
