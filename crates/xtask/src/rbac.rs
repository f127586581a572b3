//! The RBAC manifests in `config/rbac`: of the host, with a copy in the Helm chart, and of a member. That of the controller of
//! LocalReplicaSets is beside its CRD.

use controller_base::rbac::to_yaml;
use federation_controller::rbac::ControllerAccount;
use fedrs_api::ClusterType::{Host, Member};

use crate::generated::{Generated, with_copy};

/// The files with their contents.
pub(crate) fn all() -> [Generated; 2] {
    [federation(), local()]
}

fn federation() -> Generated {
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

fn local() -> Generated {
    let text = to_yaml(&local_controller::rbac::manifests(None, None));
    let path = "config/replica-set-controller/rbac.yaml".to_owned();
    Generated {
        task: "rbac",
        source: "crates/local-controller/src/rbac.rs",
        subject: "the rules",
        files: vec![(path, text)],
    }
}
