//! A Kubernetes cluster in this process: API server, nodes, scheduler, kubelets, controllers, and faults.
//!
//! ```text
//! tower service / HTTPS -> http (paths, verbs, negotiation) -> api (semantics) -> store -> log of changes
//!                                                                ^                          |
//!                                     controllers, kubelets -----'<------ changes, watches -'
//! ```
//!
//! # Modules
//!
//! The modules form layers; each uses only those below it. From the bottom to the top:
//!
//! 1. `clock`, `field` (errors of fields), `names`, `quantity`, `object`, `verb`, `version`, `kubeconfig`
//! 2. `schema` (types of objects)
//! 3. `patch`, `apply`, `openapi`, `builtin` (defaults and validation of built-in kinds), `resources` (kinds)
//! 4. `status` (errors of the API)
//! 5. `selectors`, `store`, `tables`
//! 6. `authentication`, then `authorization`
//! 7. `api` (what requests do to objects)
//! 8. `faults`, `controllers`
//! 9. `http`, then `service` and `server`
//! 10. `cluster`, which puts them together

mod api;
mod apply;
mod authentication;
mod authorization;
mod builtin;
mod certificates;
mod clock;
mod cluster;
mod controllers;
mod faults;
mod field;
mod http;
mod kubeconfig;
mod names;
mod object;
mod openapi;
mod patch;
mod quantity;
mod resources;
mod schema;
mod selectors;
mod server;
mod service;
mod status;
mod store;
mod tables;
mod verb;
mod version;

pub use api::{
    Api, ChangeEvent, Changes, DeleteOptions, Deleted, FieldValidation, Patch, Preconditions,
    Propagation, WriteOptions, Written,
};
pub use authentication::User;
pub use clock::Clock;
pub use cluster::{ClusterBuilder, SimCluster};
pub use controllers::{NodeSpec, Settings};
pub use faults::{ConnectionError, FaultCounts, Faults, RequestMatcher};
pub use http::Body;
pub use kubeconfig::Kubeconfig;
pub use object::Object;
pub use resources::{Kind, KindInfo, kinds};
pub use server::Server;
pub use service::ApiService;
pub use status::{Status, StatusCause, StatusDetails};
pub use store::Change;
pub use verb::Verb;
