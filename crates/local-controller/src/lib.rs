//! The controller of LocalReplicaSets in one cluster: the edge around the decisions of `replica-set-controller`.
//!
//! ```text
//! watches of sets, pods, nodes and PodDisruptionBudgets --> Store --> queue --> reconcile: Snapshot --> step() --> Plan
//!                                       ^                    |-- what begins: published in the status first (L14, L15)
//!                                       |                    |-- requests, each conditional
//!                                       '---- responses -----+-- status, events, ControllerRevisions
//! ```
//!
//! Responses go into the store at once, and what is older than the store is ignored: a step never decides from a view that lacks
//! what the controller has done. So a late watch neither creates nor deletes twice. Beside that, webhooks are notified of migrations, and pods of native
//! ReplicaSets are evicted for MigrationRequests (`native`).

mod backoff;
mod config;
mod controller;
mod deployment;
mod disruption;
mod entry;
mod events;
mod execute;
mod handler;
mod key;
mod memory;
mod metrics;
mod migration_object;
mod migrations;
mod native;
mod notify;
mod publish;
mod queue;
pub mod rbac;
mod reconcile;
mod rejected;
mod report;
mod revisions;
mod store;
mod sweep;
mod template_change;
mod waiting;

pub use config::{LocalControllerConfig, MigrationConfig};
pub use controller::{COMPONENT, LEASE, LocalController};
pub use controller_base::running::Running;
pub use deployment::{deployment, deployment_as_yaml};
pub use metrics::LocalMetrics;
pub use notify::{NotificationMetrics, NotifyConfig, Webhooks};
pub use replica_set_controller::{Change, ContainerResize, Patch};
pub use template_change::TemplateOfPods;
