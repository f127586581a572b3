//! The names of revisions: what was rolled out, is, or was approved.

/// The name of the revision of the FederatedDeployment `set` whose template has this hash, and of its ControllerRevision.
#[must_use]
pub fn revision_name(set: &str, template_hash: u32) -> String {
    format!("{set}-{template_hash:08x}")
}
