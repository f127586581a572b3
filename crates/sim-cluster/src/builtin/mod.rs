//! The behavior of built-in kinds beyond their schema: decoding, defaults, admission, validation.
//!
//! body -> [`decode`] (types, unknown fields) -> [`defaults`] -> (field ownership) -> [`admit_create`] ->
//! [`prepare_create`] / [`prepare_update`] -> [`validate_create`] / [`validate_update`] -> the store.
//! Pure: no function reads a clock or a store.

pub(crate) mod admission;
mod checks;
mod data;
mod decode;
mod defaults;
mod metadata;
mod placement;
mod pod;
mod pod_resize;
mod pod_resources;
mod pod_update;
mod prepare;
mod replica_counts;
mod rights;
mod rollout;
mod selector;
mod templates;
mod validate;

pub(crate) use decode::{decode, decode_message, decode_metadata};
pub(crate) use defaults::defaults;
pub(crate) use metadata::{added_finalizers, validate_metadata, validate_metadata_update};
pub(crate) use prepare::{admit_create, admit_update, prepare_create, prepare_update};
pub(crate) use validate::{validate_create, validate_update};
