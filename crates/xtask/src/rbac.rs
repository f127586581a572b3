//! The RBAC manifests in `config/rbac`: of the host, with a copy in the Helm chart, and of a member.

use federation_controller::rbac::{Access, Place};

use crate::generated::{Generated, with_copy};

/// The files with their contents.
pub(crate) fn generated() -> Generated {
    let text = |place| Access::usual(place).to_yaml();
    let mut files = vec![("config/rbac/member.yaml".to_owned(), text(Place::Member))];
    files.extend(with_copy("rbac/host.yaml", "rbac.yaml", &text(Place::Host)));
    Generated {
        task: "rbac",
        source: "crates/federation-controller/src/rbac",
        subject: "the rules",
        files,
    }
}
