//! A Kubernetes cluster in this process: API server, nodes, scheduler, kubelet, and faults.
//!
//! ```text
//! tower service / HTTPS -> http (paths, verbs, negotiation) -> api (semantics) -> store -> log
//!                                                                 ^                        |
//!                                     controllers, kubelet -------'<--- changes, watches --'
//! ```

pub mod api;
pub mod apply;
mod authentication;
mod authorization;
pub mod builtin;
mod certificates;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod faults;
pub mod field;
mod hash;
pub mod http;
pub mod kubeconfig;
pub mod openapi;
pub mod patch;
pub mod quantity;
pub mod resources;
pub mod schema;
pub mod selectors;
pub mod server;
pub mod service;
pub mod status;
pub mod store;
pub mod tables;
mod version;

pub use api::Api;
pub use authentication::User;
pub use clock::Clock;
pub use cluster::{ClusterBuilder, SimCluster};
pub use controllers::{Controllers, NodeSpec, Settings};
pub use faults::Faults;
pub use kubeconfig::Kubeconfig;
pub use resources::{Kind, kinds};
pub use server::Server;
pub use service::ApiService;
pub use status::Status;
pub use store::{ChangeEvent, Changes, Object};
