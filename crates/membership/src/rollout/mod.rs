//! Rollouts of FederatedDeployments and LocalReplicaSets: how far one is, its history, and the changes of it that a user makes.
//!
//! ```text
//! object, ControllerRevisions --> RolloutProgress, History
//!                             --> undo, pause, resume, restart, approve --conditional patch--> cluster
//! ```
//!
//! The controller carries a rollout out. Here its status is read, and the spec is changed.

mod approve;
mod edit;
mod error;
mod federated;
mod history;
mod kind;
mod local;
mod progress;
mod target;
mod undo;
mod wait;

pub use approve::{Approval, approve};
pub use edit::{pause, restart, resume};
pub use error::Error;
pub use federated::ClusterProgress;
pub use history::{History, Revision, Template, history};
pub use kind::{Observed, RolloutKind, Users};
pub use progress::{RolloutProgress, RolloutState};
pub use target::Target;
pub use undo::{Undo, undo};
pub use wait::{progress, wait};
