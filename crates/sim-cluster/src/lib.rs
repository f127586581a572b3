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
//! The modules form layers: each one uses only modules of the layers below it. From the bottom to the top:
//!
//! 1. `clock`, `field` and `validation` (errors of fields), `names`, `quantity`, `verb`, `version`, `kubeconfig`, `certificates`
//! 2. `object` (reading and editing JSON), `schema` (types of objects)
//! 3. `patch`, `apply`, `openapi`, `resources` (the kinds)
//! 4. `status` (errors of the API)
//! 5. `selectors`, `store`
//! 6. `builtin` (defaults and validation of built-in kinds), `tables`, `authentication`
//! 7. `authorization`
//! 8. `api` (the semantics of requests)
//! 9. `faults`, `controllers`
//! 10. `http`, then `service`, then `server`
//! 11. `cluster`, which assembles all of them

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
mod validation;
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
pub use service::{ApiService, AuditEvent};
pub use status::{Status, StatusCause, StatusDetails};
pub use store::{Change, Snapshot};
pub use verb::Verb;
