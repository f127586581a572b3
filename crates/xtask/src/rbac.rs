//! The RBAC manifests in `config/rbac`: of the host, with a copy in the Helm chart, and of a member.

use federation_controller::rbac::ControllerAccount;
use fedrs_api::ClusterType::{Host, Member};

use crate::generated::{Generated, with_copy};

/// The files with their contents.
pub(crate) fn generated() -> Generated {
    let text = |cluster| ControllerAccount::usual(cluster).to_yaml();
    let mut files = vec![("config/rbac/member.yaml".to_owned(), text(Member))];
    files.extend(with_copy("rbac/host.yaml", "rbac.yaml", &text(Host)));
    Generated {
        task: "rbac",
        source: "crates/federation-controller/src/rbac",
        subject: "the rules",
        files,
    }
}
