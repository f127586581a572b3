//! The kinds a cluster serves: what they are called and which subresources they have.
//!
//! Built-in kinds are in [`kinds`]; those of `CustomResourceDefinition`s come and go in the [`Registry`].
//! How objects of a kind behave (defaults, validation) is not said here.

mod autoscaler;
mod builtin;
pub(crate) mod convert;
mod kind;
mod registry;

pub use builtin::kinds;
pub(crate) use kind::{CustomVersion, ScalePaths, Subresource};
pub use kind::{Kind, KindInfo};
pub(crate) use registry::Registry;
