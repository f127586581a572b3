//! A release of the chart on a real API server.

use crate::{
    host::Host,
    render::{CHART, NAMESPACE},
};

/// Helm by itself does not upgrade CRDs in its `crds` directory, and deletes those in templates.
pub(crate) fn install_upgrade_and_uninstall_keep_the_crds(host: &Host) {
    // Objects that other tests applied would belong to no release.
    host.must(
        &[
            "delete",
            "--ignore-not-found",
            "--kustomize",
            "deploy/kustomize/overlays/one",
        ],
        "",
    );
    let helm = |arguments: &[&str]| {
        let output = host.helm(&[arguments, &["--namespace", NAMESPACE]].concat());
        assert!(output.succeeded, "helm {arguments:?}: {}", output.errors);
        output.out
    };
    let notes = helm(&["install", "fedrs", CHART, "--create-namespace"]);
    assert!(notes.contains("fedrs join"), "{notes}");
    let crd = "federatedreplicasets.fedrs.dev";
    let labels = |name: &str| host.get(&["crd", name])["metadata"]["labels"].clone();
    assert_eq!(labels(crd)["app.kubernetes.io/managed-by"], "Helm");

    // A field that an older version set otherwise.
    let older = r#"{"spec":{"names":{"shortNames":["old"]}}}"#;
    host.must(&["patch", "crd", crd, "--type=merge", "--patch", older], "");
    helm(&[
        "upgrade",
        "fedrs",
        CHART,
        "--set",
        "replicas=3",
        "--set",
        "labels.team=blue",
        "--force-conflicts",
    ]);
    assert_eq!(labels(crd)["team"], "blue");
    assert_eq!(
        host.get(&["crd", crd])["spec"]["names"]["shortNames"][0],
        "frs"
    );
    let budget = ["pdb", "fedrs-controller", "--namespace", NAMESPACE];
    assert!(!host.get(&budget).is_null());

    // As docs/operations.md describes it: given values are kept.
    helm(&["upgrade", "fedrs", CHART, "--reset-then-reuse-values"]);
    assert_eq!(labels(crd)["team"], "blue");
    assert!(!host.get(&budget).is_null());

    helm(&["uninstall", "fedrs"]);
    assert!(host.get(&budget).is_null());
    assert!(
        !host.get(&["crd", crd]).is_null(),
        "with it all FederatedReplicaSets would go"
    );
}
