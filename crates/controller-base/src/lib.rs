//! What the controllers of fedrs have in common, whatever they control.
//!
//! ```text
//! election  --Term, Fence--> a controller: tasks that a watchdog watches
//!                              |-- list_progress  whether what it watches is listed --> readiness
//!                              |-- calls          single requests, each within limits
//!                              |-- event_recorder events about objects
//!                              |-- object_tasks   a task for each object of a kind
//!                              |-- members        how members are reached; limited_list reads one
//!                              '-- history        ControllerRevisions of sets
//! ```
//!
//! Knows neither FederatedReplicaSets nor pods, and decides nothing about them.

pub mod answers;
pub mod calls;
pub mod clock;
pub mod duration;
pub mod election;
pub mod error_text;
pub mod event;
pub mod event_recorder;
pub mod field_errors;
pub mod finalizer;
pub mod history;
pub mod limited_list;
pub mod list_progress;
pub mod listing;
pub mod members;
pub mod object_tasks;
pub mod rbac;
pub mod readiness;
pub mod required_labels;
pub mod retry;
pub mod running;
pub mod selector_index;
pub mod short_list;
pub mod watchdog;

mod config_error;

pub use config_error::ConfigError;
