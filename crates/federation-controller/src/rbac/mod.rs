//! What the controller may do, on the host and in members: a rule for each kind of request it makes, with its reason.
//!
//! ```text
//! rules (beside the code that needs them) --> manifests --> config/rbac, `fedrs rbac`, `fedrs join`
//! ```
//!
//! Nothing else says what the controller needs: whoever adds a request adds its rule here.

mod manifest;
mod rules;

pub use manifest::{Access, Manifest, Place};
pub use rules::Grant;
