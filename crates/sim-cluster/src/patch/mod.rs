//! The three patch formats other than server-side apply.
//!
//! body -> patch of its format -> the patched object, which the server treats as an update.

mod error;
mod json;
mod merge;
mod order;
mod strategic;

pub(crate) use error::PatchError;
pub(crate) use json::json_patch;
pub(crate) use merge::merge_patch;
pub(crate) use strategic::strategic_patch;
