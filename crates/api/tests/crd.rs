//! The CRD of the kind that is not installed yet. Those that are installed are in `config/crd`.

use fedrs_api::crd;

#[test]
fn l6_the_crd_of_federated_deployments() {
    insta::assert_snapshot!(crd::as_yaml(&crd::federated_deployment()));
}

/// No controller acts on them.
#[test]
fn federated_deployments_are_not_installed() {
    let names = crd::all().into_iter().filter_map(|crd| crd.metadata.name);
    let names: Vec<_> = names.collect();
    let expected = ["federatedreplicasets.fedrs.dev", "memberclusters.fedrs.dev"];
    assert_eq!(names, expected);
}
