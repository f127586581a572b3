//! Rollouts of FederatedDeployments: how far one is, its history, and the changes of it that a user makes.
//!
//! ```text
//! FederatedDeployment, ControllerRevisions --> RolloutProgress, History
//!                                          --> undo, pause, resume, restart, approve --conditional patch--> host
//! ```
//!
//! The controller carries a rollout out. Here its status is read, and the spec is changed.

mod approve;
mod edit;
mod error;
mod history;
mod progress;
mod target;
mod undo;
mod wait;

pub use approve::{Approval, approve};
pub(crate) use edit::RESTARTED_AT;
pub use edit::{pause, restart, resume};
pub use error::Error;
pub use history::{History, Revision, Template, history};
pub use progress::{ClusterProgress, RolloutProgress, RolloutState};
pub use target::Target;
pub use undo::{Undo, undo};
pub use wait::{progress, wait};
