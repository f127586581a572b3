//! The kinds that a cluster serves: their names and subresources.
//!
//! [`kinds`] has the built-in kinds; the [`Registry`] adds those of `CustomResourceDefinition`s. The behavior of objects
//! (defaults, validation) is in `builtin` and `schema`.

mod autoscaler;
mod builtin;
pub(crate) mod convert;
mod kind;
mod registry;

pub use builtin::kinds;
pub(crate) use kind::{CustomVersion, ScalePaths, Subresource};
pub use kind::{Kind, KindInfo};
pub(crate) use registry::Registry;
