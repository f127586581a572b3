//! A Kubernetes cluster in this process: API server, nodes, scheduler, kubelet, and faults.
//!
//! ```text
//! tower service / HTTPS -> http (paths, verbs, negotiation) -> api (semantics) -> store -> log
//!                                                                 ^                        |
//!                                     controllers, kubelet -------'<--- changes, watches --'
//! ```

pub mod api;
pub mod apply;
pub mod builtin;
pub mod clock;
pub mod field;
pub mod openapi;
pub mod patch;
pub mod quantity;
pub mod resources;
pub mod schema;
pub mod status;
pub mod store;

pub use api::Api;
pub use clock::Clock;
pub use resources::{Kind, kinds};
pub use status::Status;
pub use store::{ChangeEvent, Changes, Object};
