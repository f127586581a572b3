//! The CRDs of a host in `config/crd`, one file each; the Helm chart contains copies. Those of clusters with LocalReplicaSets are in
//! `config/replica-set-controller`.

use fedrs_api::crd;

use crate::generated::{Generated, with_copy};

/// The files with their contents.
pub(crate) fn generated() -> Generated {
    let host = crd::all().into_iter().map(|crd| ("crd", crd));
    let local = crd::local().into_iter();
    let local = local.map(|crd| ("replica-set-controller/crd", crd));
    let files = host.chain(local).flat_map(|(directory, crd)| {
        let path = format!("{directory}/{}.yaml", file_name(&crd));
        with_copy(&path, &path, &crd::as_yaml(&crd))
    });
    Generated {
        task: "crds",
        source: "crates/api",
        subject: "the types",
        files: files.collect(),
    }
}

/// `fedrs.dev_federatedreplicasets`: controller-gen's naming.
fn file_name(crd: &crd::CustomResourceDefinition) -> String {
    format!("{}_{}", crd.spec.group, crd.spec.names.plural)
}
