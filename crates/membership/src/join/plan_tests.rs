use fedrs_api::labels;
use rstest::rstest;
use serde_json::json;

use super::*;

fn membership() -> Membership {
    Membership {
        federation: String::new(),
        name: "eu".to_owned(),
        namespace: "system".to_owned(),
        host_id: "1a2b3c4d-host".to_owned(),
        cluster_id: "eu-uid".to_owned(),
    }
}

/// All that a join leaves, as an API server would show it.
fn complete() -> Found {
    let membership = membership();
    let seen = |mut object: Value| {
        object["metadata"]["uid"] = format!("uid of {}", object["kind"]).into();
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        object
    };
    let role = seen(membership.in_member("")[0].clone());
    let owner = role["metadata"]["uid"].as_str().unwrap().to_owned();
    let in_member = membership.in_member(&owner).into_iter();
    let member = seen(membership.object(&BTreeMap::new()));
    Found {
        member_namespace: Some(seen(membership.namespace_object())),
        in_member: in_member.map(|it| Some(seen(it))).collect(),
        host_namespace: Some(seen(membership.namespace_object())),
        secret: Some(seen(membership.secret_object(Some("kubeconfig")))),
        members: vec![serde_json::from_value(member).unwrap()],
    }
}

fn steps(found: &Found, labels: &BTreeMap<String, String>) -> Vec<Step> {
    let mut steps = in_member(&membership(), found, None);
    steps.extend(on_host(&membership(), labels, found, None));
    steps
}

/// Each step in two words: `created clusterrole`.
fn told(steps: &[Step]) -> Vec<String> {
    let changed = steps.iter().filter_map(|it| {
        let verb = match it.change {
            Change::None => return None,
            Change::Create(_) => "create",
            Change::Patch(_) => "patch",
        };
        Some(format!("{verb} {} {}", it.side, it.address.kind.plural))
    });
    changed.collect()
}

#[test]
fn everything_is_created_where_nothing_is_the_owner_first() {
    assert_eq!(
        told(&steps(&Found::default(), &BTreeMap::new())),
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
fn again_is_a_no_op() {
    assert_eq!(
        told(&steps(&complete(), &BTreeMap::new())),
        Vec::<String>::new()
    );
}

#[rstest]
#[case("an older fedrs gave fewer rights", |it: &mut Found| {
    it.in_member[0].as_mut().unwrap()["rules"] = json!([]);
}, &["patch member clusterroles"])]
#[case("the role was made anew, and the rest names the old one", |it: &mut Found| {
    it.in_member[0].as_mut().unwrap()["metadata"]["uid"] = "another".into();
}, &["patch member serviceaccounts", "patch member clusterrolebindings", "patch member roles", "patch member rolebindings"])]
#[case("it stopped in the member", |it: &mut Found| {
    it.in_member.truncate(3);
    (it.secret, it.members) = (None, Vec::new());
}, &["create member roles", "create member rolebindings", "create host secrets", "create host memberclusters"])]
#[case("it stopped before the end", |it: &mut Found| it.members.clear(), &["create host memberclusters"])]
#[case("the object was there without a Secret", |it: &mut Found| {
    it.members[0].spec.secret_ref = None;
}, &["patch host memberclusters"])]
fn what_is_missing_is_completed(
    #[case] why: &str,
    #[case] spoil: fn(&mut Found),
    #[case] expected: &[&str],
) {
    let mut found = complete();
    spoil(&mut found);
    assert_eq!(told(&steps(&found, &BTreeMap::new())), expected, "{why}");
}

#[test]
fn labels_are_added_and_none_is_taken_away() {
    let labels = |it: &[(&str, &str)]| -> BTreeMap<String, String> {
        let pairs = it.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let mut found = complete();
    found.members[0]
        .labels_mut()
        .extend(labels(&[("tier", "gold")]));
    assert!(told(&steps(&found, &labels(&[]))).is_empty());
    assert!(told(&steps(&found, &labels(&[("tier", "gold")]))).is_empty());
    let more = steps(&found, &labels(&[("region", "eu")]));
    let Change::Patch(patch) = &more.last().unwrap().change else {
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
    let found = Found::default();
    let mut steps = in_member(&membership, &found, None);
    steps.extend(on_host(&membership, &BTreeMap::new(), &found, None));
    let namespaces = steps.iter().filter(|it| it.address.kind == NAMESPACE);
    assert_eq!(namespaces.count(), 1);
}

#[test]
fn a_namespace_that_is_there_is_nobodys_to_change() {
    let mut found = complete();
    let bare = json!({ "metadata": { "name": "system" } });
    (found.member_namespace, found.host_namespace) = (Some(bare.clone()), Some(bare));
    assert!(told(&steps(&found, &BTreeMap::new())).is_empty());
}

#[rstest]
#[case("nothing is in the way", |_: &mut Found| {}, None)]
#[case("the cluster has another name already", |it: &mut Found| {
    it.members[0].metadata.name = Some("europe".to_owned());
}, Some("by the name europe"))]
#[case("another federation has it by another name", |it: &mut Found| {
    it.members[0].metadata.name = Some("europe".to_owned());
    it.members[0].spec.federation = "blue".to_owned();
}, None)]
#[case("the name is another federation's", |it: &mut Found| {
    it.members[0].spec.federation = "blue".to_owned();
}, Some("the member eu is the federation blue's"))]
#[case("the name is another cluster's", |it: &mut Found| {
    it.members[0].labels_mut().insert(labels::CLUSTER_ID.to_owned(), "us-uid".to_owned());
}, Some("the member eu is another cluster"))]
#[case("the Secret is a user's own", |it: &mut Found| {
    it.secret.as_mut().unwrap()["metadata"]["annotations"] = json!({});
}, Some("secret/member-eu in namespace system was not made by join"))]
#[case("the Secret is a user's own, and is to be renewed", |it: &mut Found| {
    it.secret.as_mut().unwrap()["metadata"]["labels"] = json!({ labels::MEMBER_CLUSTER: "eu" });
}, Some("secret/member-eu in namespace system was not made by join"))]
#[case("the member has another Secret", |it: &mut Found| {
    it.members[0].spec.secret_ref.as_mut().unwrap().name = "own".to_owned();
}, Some("has its kubeconfig from secret/own"))]
#[case("a namespace is leaving", |it: &mut Found| {
    it.member_namespace.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
}, Some("member: namespace/system is being deleted"))]
#[case("the member is in the folder of kubeconfigs", |it: &mut Found| of_folder(it, "Healthy"), Some("--members folder"))]
#[case("the member was in the folder of kubeconfigs", |it: &mut Found| of_folder(it, "Removed"), None)]
fn what_is_in_the_way_is_told(
    #[case] why: &str,
    #[case] spoil: fn(&mut Found),
    #[case] expected: Option<&str>,
) {
    let mut found = complete();
    spoil(&mut found);
    let told = conflicts(&membership(), &found);
    match expected {
        None => assert!(told.is_empty(), "{why}: {told:?}"),
        Some(words) => {
            assert_eq!(told.len(), 1, "{why}: {told:?}");
            assert!(told[0].contains(words), "{why}: {told:?}");
        }
    }
}

/// The member has no Secret, and the controller says so much of it.
fn of_folder(found: &mut Found, reason: &str) {
    let status = json!({ "conditions": [{
        "type": "Ready", "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] });
    found.members[0].spec.secret_ref = None;
    found.members[0].status = serde_json::from_value(status).unwrap();
}
