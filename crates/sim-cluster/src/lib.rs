//! A Kubernetes cluster in this process: API server, nodes, scheduler, kubelet, and faults.
//!
//! ```text
//! tower service / HTTPS -> http (paths, verbs, negotiation) -> api (semantics) -> store -> log
//!                                                                 ^                        |
//!                                     controllers, kubelet -------'<--- changes, watches --'
//! ```

pub mod api;
pub mod builtin;
pub mod clock;
pub mod controllers;
pub mod faults;
pub mod field;
pub mod http;
pub mod patch;
pub mod quantity;
pub mod resources;
pub mod schema;
pub mod selectors;
pub mod service;
pub mod status;
pub mod store;
pub mod tables;

pub use api::Api;
pub use clock::Clock;
pub use controllers::{Controllers, NodeSpec, Settings};
pub use resources::{Kind, kinds};
pub use status::Status;
pub use store::{ChangeEvent, Changes, Object};
