//! The permissions of the controller on the host and in members: a rule for each kind of request, with its reason.
//!
//! ```text
//! rules (beside the code that needs them) --> manifests --> config/rbac, `fedrs rbac`, `fedrs join`
//! ```
//!
//! This is the only list of permissions: a new kind of request needs a rule here.

mod account;
mod rules;

pub use account::ControllerAccount;
pub use controller_base::rbac::{Grant, Manifest};
