//! The semantics of an API server without HTTP: identity, versions, generation, conflicts, finalizers, graceful
//! deletion. The HTTP handlers and the controllers in this process use it.
//!
//! ```text
//! create / update / modify / delete -> checks and defaults -> store -> log -> watches, controllers
//! ```
//!
//! Everything is synchronous under one short lock that is never held across an await.

mod admission;
mod authentication;
mod changes;
mod create;
mod delete;
mod eviction;
mod kind_rules;
mod lifecycle;
mod options;
mod patch;
mod quota;
mod request;
mod state;
mod subresources;
mod update;

pub use changes::{ChangeEvent, Changes};
pub use delete::Deleted;
pub use options::{DeleteOptions, FieldValidation, Preconditions, Propagation, WriteOptions};
pub(crate) use request::Target;
pub use request::{Patch, Written};
pub use state::Api;
pub(crate) use subresources::ScaleWrite;
