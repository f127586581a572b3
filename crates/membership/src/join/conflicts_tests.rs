use rstest::rstest;
use serde_json::json;

use super::*;
use crate::join::test_objects::{complete, membership};

#[rstest]
#[case("nothing conflicts", |_: &mut ExistingObjects| {}, None)]
#[case("the cluster is a member with another name", |existing: &mut ExistingObjects| {
    existing.members[0].metadata.name = Some("europe".to_owned());
}, Some("already a member with the name europe"))]
#[case("the cluster is a member of another federation with another name", |existing: &mut ExistingObjects| {
    existing.members[0].metadata.name = Some("europe".to_owned());
    existing.members[0].spec.federation = "blue".to_owned();
}, None)]
#[case("the name belongs to another federation", |existing: &mut ExistingObjects| {
    existing.members[0].spec.federation = "blue".to_owned();
}, Some("member eu belongs to the federation blue"))]
#[case("the name belongs to another cluster", |existing: &mut ExistingObjects| {
    existing.members[0].labels_mut().insert(labels::CLUSTER_ID.to_owned(), "us-uid".to_owned());
}, Some("member eu is another cluster"))]
#[case("a user created the Secret", |existing: &mut ExistingObjects| {
    existing.secret.as_mut().unwrap()["metadata"]["annotations"] = json!({});
}, Some("secret/member-eu in namespace system was not created by fedrs join"))]
#[case("a user created the Secret, with the annotation for renewal", |existing: &mut ExistingObjects| {
    existing.secret.as_mut().unwrap()["metadata"]["labels"] = json!({ labels::MEMBER_CLUSTER: "eu" });
}, Some("secret/member-eu in namespace system was not created by fedrs join"))]
#[case("the member has another Secret", |existing: &mut ExistingObjects| {
    existing.members[0].spec.secret_ref.as_mut().unwrap().name = "own".to_owned();
}, Some("membercluster/eu refers to secret/own"))]
#[case("a namespace is terminating", |existing: &mut ExistingObjects| {
    existing.member_namespace.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
}, Some("member: namespace/system is terminating"))]
#[case("the member has a kubeconfig file", |existing: &mut ExistingObjects| with_source(existing, Some("File")), Some("--members directory"))]
#[case("the member had a kubeconfig file", |existing: &mut ExistingObjects| with_source(existing, None), None)]
fn conflicts_are_found(
    #[case] why: &str,
    #[case] modify: fn(&mut ExistingObjects),
    #[case] expected: Option<&str>,
) {
    let mut existing = complete();
    modify(&mut existing);
    let found = conflicts(&membership(), &existing);
    match expected {
        None => assert!(found.is_empty(), "{why}: {found:?}"),
        Some(expected) => {
            assert_eq!(found.len(), 1, "{why}: {found:?}");
            let text = found[0].to_string();
            assert!(text.contains(expected), "{why}: {text}");
        }
    }
}

/// The member has no Secret, and the controller reports this source of its kubeconfig.
fn with_source(existing: &mut ExistingObjects, source: Option<&str>) {
    let status = json!({ "source": source });
    existing.members[0].spec.secret_ref = None;
    existing.members[0].status = serde_json::from_value(status).unwrap();
}
