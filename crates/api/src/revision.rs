//! The names of revisions: what was rolled out, is, or was approved (L2).

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// The hash of a template, never 0: identifies the pods that were created from it.
#[must_use]
pub fn template_hash(template: &impl Serialize) -> u32 {
    let text = serde_json::to_vec(template).expect("a template is JSON");
    u32::try_from(xxh3_64(&text) >> 32).map_or(1, |hash| hash.max(1))
}

/// The name of the revision of the FederatedDeployment `set` whose template has this hash, and of its ControllerRevision:
/// `web-0a1b2c3d`.
#[must_use]
pub fn revision_name(set: &str, template_hash: u32) -> String {
    format!("{set}-{template_hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::revision_name;

    #[test]
    fn l2_a_revision_is_named_after_its_set_and_its_template() {
        assert_eq!(revision_name("web", 0x00a1_b2c3), "web-00a1b2c3");
        assert_eq!(revision_name("web-1", u32::MAX), "web-1-ffffffff");
    }
}
