use k8s_openapi::api::core::v1::Namespace;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::join::test_objects::{complete, membership};

fn steps(existing: &ExistingObjects, labels: &BTreeMap<String, String>) -> Vec<Step> {
    let mut steps = member_steps(&membership(), existing, None);
    steps.extend(host_steps(&membership(), labels, existing, None));
    steps
}

/// The writes of `steps`: `create member clusterroles`.
fn writes(steps: &[Step]) -> Vec<String> {
    let changed = steps.iter().filter_map(|step| {
        let verb = match step.write {
            Write::None => return None,
            Write::Create(_) => "create",
            Write::Patch(_) => "patch",
        };
        Some(format!(
            "{verb} {} {}",
            step.cluster, step.object.kind.plural
        ))
    });
    changed.collect()
}

#[test]
fn everything_is_created_and_the_owner_is_first() {
    assert_eq!(
        writes(&steps(&ExistingObjects::default(), &BTreeMap::new())),
        [
            "create member namespaces",
            "create member clusterroles",
            "create member serviceaccounts",
            "create member clusterrolebindings",
            "create member roles",
            "create member rolebindings",
            "create host namespaces",
            "create host secrets",
            "create host memberclusters",
        ]
    );
}

#[test]
fn a_repeated_join_writes_nothing() {
    assert_eq!(
        writes(&steps(&complete(), &BTreeMap::new())),
        Vec::<String>::new()
    );
}

#[rstest]
#[case("an older version granted fewer permissions", |existing: &mut ExistingObjects| {
    existing.member_objects[0].as_mut().unwrap()["rules"] = json!([]);
}, &["patch member clusterroles"])]
#[case("the role was recreated, and the other objects refer to the old one", |existing: &mut ExistingObjects| {
    existing.member_objects[0].as_mut().unwrap()["metadata"]["uid"] = "another".into();
}, &["patch member serviceaccounts", "patch member clusterrolebindings", "patch member roles", "patch member rolebindings"])]
#[case("the join was interrupted in the member", |existing: &mut ExistingObjects| {
    existing.member_objects.truncate(3);
    (existing.secret, existing.members) = (None, Vec::new());
}, &["create member roles", "create member rolebindings", "create host secrets", "create host memberclusters"])]
#[case("the join was interrupted before the last write", |existing: &mut ExistingObjects| existing.members.clear(), &["create host memberclusters"])]
#[case("the MemberCluster existed without a Secret", |existing: &mut ExistingObjects| {
    existing.members[0].spec.secret_ref = None;
}, &["patch host memberclusters"])]
fn an_interrupted_join_is_completed(
    #[case] why: &str,
    #[case] modify: fn(&mut ExistingObjects),
    #[case] expected: &[&str],
) {
    let mut existing = complete();
    modify(&mut existing);
    assert_eq!(
        writes(&steps(&existing, &BTreeMap::new())),
        expected,
        "{why}"
    );
}

#[test]
fn labels_are_added_and_none_is_removed() {
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let mut existing = complete();
    existing.members[0]
        .labels_mut()
        .extend(labels(&[("tier", "gold")]));
    assert!(writes(&steps(&existing, &labels(&[]))).is_empty());
    assert!(writes(&steps(&existing, &labels(&[("tier", "gold")]))).is_empty());
    let more = steps(&existing, &labels(&[("region", "eu")]));
    let Write::Patch(patch) = &more.last().unwrap().write else {
        panic!("{more:?}")
    };
    assert_eq!(patch["metadata"]["labels"], json!({ "region": "eu" }));
}

#[test]
fn a_host_that_is_a_member_of_itself_has_one_namespace() {
    let membership = Membership {
        cluster_id: membership().host_id,
        ..membership()
    };
    let existing = ExistingObjects::default();
    let mut steps = member_steps(&membership, &existing, None);
    steps.extend(host_steps(&membership, &BTreeMap::new(), &existing, None));
    let namespaces = steps.iter().filter(|step| step.object.is::<Namespace>());
    assert_eq!(namespaces.count(), 1);
}

#[test]
fn an_existing_namespace_is_never_changed() {
    let mut existing = complete();
    let bare = json!({ "metadata": { "name": "system" } });
    (existing.member_namespace, existing.host_namespace) = (Some(bare.clone()), Some(bare));
    assert!(writes(&steps(&existing, &BTreeMap::new())).is_empty());
}
