//! The types of objects: of the built-in kinds and of CustomResourceDefinitions.
//!
//! JSON schema -> [`TypeInfo`] (for merges, server-side apply and strict decoding).
//! Custom resources -> [`CustomSchema`] (prune, default, validate, rules); definitions -> [`validate_definition`].
//! Both sources are `OpenAPI` v3 schemas with Kubernetes' extensions, so one walk serves both.

mod cel_functions;
mod custom;
mod definition_rules;
mod definitions;
mod formats;
mod merge_keys;
mod prune;
mod rules;
mod strict;
mod type_info;
mod validate;

pub(crate) use custom::CustomSchema;
pub(crate) use definition_rules::{validate_definition, validate_definition_update};
pub(crate) use definitions::{REFERENCE_PREFIX, builtin_kind, definition};
pub(crate) use strict::{duplicate_fields, strict_error};
pub(crate) use type_info::{ListKind, Node, TypeInfo};
