//! The RBAC manifests in `config/rbac`: of the host, with a copy in the Helm chart, and of a member. That of the controller of
//! LocalReplicaSets is beside its CRD, with its Deployment. Those of discovery are of the host, with or without statuses, and for
//! authorization, with copies in the chart, and of a member.

use controller_base::rbac::to_yaml;
use federation_controller::rbac::ControllerAccount;
use fedrs_api::ClusterType::{Host, Member};

use crate::generated::{CHART, Generated, with_copy};

/// The files with their contents.
pub(crate) fn all() -> [Generated; 4] {
    [federation(), local(), deployment(), discovery()]
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
    let path = "replica-set-controller/rbac.yaml";
    Generated {
        task: "rbac",
        source: "crates/local-controller/src/rbac.rs",
        subject: "the rules",
        files: with_copy(path, path, &text).into(),
    }
}

fn discovery() -> Generated {
    use discovery::rbac::{authorizer_manifests, manifests, writer_manifests};
    let files = [
        ("host", manifests(Host, None, None)),
        ("writer", writer_manifests(None, None)),
        ("authorizer", authorizer_manifests(None, None)),
        ("member", manifests(Member, None, None)),
    ];
    let files = files.into_iter().flat_map(|(name, manifests)| {
        let path = format!("discovery/rbac-{name}.yaml");
        with_copy(&path, &path, &to_yaml(&manifests))
    });
    // Charts have nothing for members.
    let of_member = format!("{CHART}/discovery/rbac-member.yaml");
    Generated {
        task: "rbac",
        source: "crates/discovery/src/rbac.rs",
        subject: "the rules",
        files: files.filter(|(path, _)| *path != of_member).collect(),
    }
}

/// The Deployment of the controller of LocalReplicaSets, with the image of this version.
fn deployment() -> Generated {
    let image = concat!("fedrs:", env!("CARGO_PKG_VERSION"));
    let text = local_controller::deployment_as_yaml(image);
    let path = "replica-set-controller/deployment.yaml";
    Generated {
        task: "rbac",
        source: "crates/local-controller/src/deployment.rs",
        subject: "it",
        files: with_copy(path, path, &text).into(),
    }
}
