//! The CRDs of a host in `config/crd`, one file each; the Helm chart contains copies. Those of clusters with LocalReplicaSets are in
//! `config/replica-set-controller`.

use fedrs_api::crd;

use crate::generated::{Generated, with_copy};

/// The files with their contents.
pub(crate) fn generated() -> Generated {
    let file = |crd| {
        let path = format!("crd/{}.yaml", file_name(&crd));
        with_copy(&path, &path, &crd::as_yaml(&crd))
    };
    let local = |crd| {
        let path = format!("replica-set-controller/crd/{}.yaml", file_name(&crd));
        with_copy(&path, &path, &crd::as_yaml(&crd))
    };
    Generated {
        task: "crds",
        source: "crates/api",
        subject: "the types",
        files: (crd::all().into_iter().flat_map(file))
            .chain(crd::local().into_iter().flat_map(local))
            .collect(),
    }
}

/// `fedrs.dev_federatedreplicasets`: controller-gen's naming.
fn file_name(crd: &crd::CustomResourceDefinition) -> String {
    format!("{}_{}", crd.spec.group, crd.spec.names.plural)
}
