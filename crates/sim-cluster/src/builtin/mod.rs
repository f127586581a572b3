//! What the API server knows about built-in kinds beyond their schema.
//!
//! body -> [`decode`] (types, unknown fields) -> [`defaults`] -> (field ownership) -> [`admit_create`] ->
//! [`prepare_create`] / [`prepare_update`] -> [`validate_create`] / [`validate_update`] -> the store.
//! Pure: nothing here reads a clock or a store.

pub mod admission;
mod data;
mod decode;
mod defaults;
mod metadata;
mod placement;
mod pod;
mod pod_resources;
mod pod_update;
mod prepare;
mod rights;
mod templates;
mod validate;

pub use decode::{DecodeError, decode, decode_message, decode_metadata};
pub use defaults::{default_pod_spec, defaults};
pub(crate) use metadata::is_dns1035_label;
pub use metadata::{
    NameRule, is_dns1123_label, is_dns1123_subdomain, validate_label_value, validate_metadata,
    validate_metadata_update, validate_qualified_name,
};
pub use pod::validate_pod_spec;
pub use pod_resources::qos_class;
pub use pod_update::validate_pod_update;
pub use prepare::{admit_create, admit_update, prepare_create, prepare_update};
pub use templates::validate_label_selector;
pub use validate::{validate_create, validate_update};
