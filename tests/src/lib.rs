//! End-to-end scenarios: a host, members, the real controller; driven and watched through the Kubernetes API.
//!
//! ```text
//! scenario --apply, scale, fault--> Fleet { host, members, controller } --observe--> Observation
//! ```
//!
//! On embedded clusters time is paused: a scenario takes milliseconds and repeats. Every wait has a deadline, and a
//! wait that fails prints what the clusters held and what was told.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what can't go on ends"
)]

mod changes;
mod connect;
mod fleet;
mod history;
mod joining;
mod judge;
mod link;
pub mod local;
mod observe;
pub mod scenario;
pub mod stage;
pub mod truth;
mod watcher;

pub use fleet::{Fleet, FleetSpec, MemberSpec, even, frs, linked, minutes};
pub use joining::{MEMBERS_PATH, SECRETS_PATH, kubeconfig};
pub use judge::{HOST, Judge};
pub use link::{CrashPoint, Life};
pub use observe::{Layout, SetState};
pub use watcher::ReadyWatcher;
