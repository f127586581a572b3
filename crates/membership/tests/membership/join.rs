//! Join, without a controller.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use membership::{
    WriteMode,
    join::{JoinNamespaces, JoinRequest},
};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb, kinds};

use crate::{clusters::NAMESPACE, federation::Federation};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const FEDRS: &str = "fedrs.dev/v1alpha1";

/// The objects of the controller's ServiceAccount in `eu`.
fn account_objects(federation: &Federation) -> Vec<Option<Value>> {
    let (member, account) = (federation.member("eu"), federation.account());
    vec![
        member.get("v1", "ServiceAccount", NAMESPACE, &account),
        member.get(RBAC, "ClusterRole", "", &account),
        member.get(RBAC, "ClusterRoleBinding", "", &account),
        member.get(RBAC, "Role", NAMESPACE, &account),
        member.get(RBAC, "RoleBinding", NAMESPACE, &account),
    ]
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// A dry run of the join of `eu`.
fn dry_run(federation: &Federation) -> JoinRequest {
    JoinRequest {
        mode: WriteMode::DryRun,
        ..federation.join_request("eu")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_reports_each_object_and_the_missing_controller() {
    let federation = Federation::start(&["eu"]).await;
    let request = JoinRequest {
        labels: labels(&[("tier", "gold"), ("region", "eu")]),
        ..federation.join_request("eu")
    };
    let outcome = federation.join_as(request).await;
    let outcome = outcome.failed().contains(&[
        "eu is not ready",
        "Check that a controller runs on the host",
        "is reachable from this machine only",
        "secret/member-eu created: new token for serviceaccount/fedrs-controller-",
    ]);
    assert_eq!(outcome.count("created"), 9, "{}", outcome.text);
    assert!(account_objects(&federation).iter().all(Option::is_some));
    let member = federation.host.member_cluster("eu").unwrap();
    assert_eq!(
        member["spec"],
        json!({ "secretRef": { "name": "member-eu" } })
    );
    assert_eq!(member["metadata"]["labels"]["tier"], "gold");
    let stored = federation.host.stored_kubeconfig("eu").unwrap();
    let server = &stored["clusters"][0]["cluster"]["server"];
    assert_eq!(
        *server,
        federation.member("eu").server.kubeconfig().server.as_str()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_join_changes_nothing() {
    let federation = Federation::joined(&["eu"]).await;
    let (before, token) = (federation.contents(), federation.stored_token("eu"));
    let outcome = federation.join("eu").await.failed();
    assert_eq!(
        (outcome.count("unchanged"), outcome.count("created")),
        (9, 0),
        "{}",
        outcome.text
    );
    assert_eq!(
        (federation.contents(), federation.stored_token("eu")),
        (before, token)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_reports_each_object_and_changes_nothing() {
    let federation = Federation::start(&["eu"]).await;
    let before = federation.contents();
    let outcome = federation.join_as(dry_run(&federation)).await.succeeded();
    assert_eq!(outcome.count("created (dry run)"), 9, "{}", outcome.text);
    assert_eq!(federation.contents(), before);

    federation.join("eu").await.failed();
    let account = federation.account();
    federation
        .member("eu")
        .delete(RBAC, "Role", NAMESPACE, &account);
    let before = federation.contents();
    let request = JoinRequest {
        labels: labels(&[("tier", "gold")]),
        ..dry_run(&federation)
    };
    let outcome = federation.join_as(request).await.succeeded();
    let outcome = outcome.contains(&["membercluster/eu configured (dry run)"]);
    assert_eq!(
        (
            outcome.count("created (dry run)"),
            outcome.count("unchanged (dry run)")
        ),
        (1, 7),
        "{}",
        outcome.text
    );
    assert_eq!(federation.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_join_completes_an_interrupted_one() {
    let federation = Federation::joined(&["eu"]).await;
    let account = federation.account();
    federation
        .member("eu")
        .delete(RBAC, "RoleBinding", NAMESPACE, &account);
    let host = &federation.host;
    host.delete("v1", "Secret", NAMESPACE, "member-eu");
    host.delete(FEDRS, "MemberCluster", "", "eu");
    let outcome = federation.join("eu").await.failed();
    assert_eq!(
        (outcome.count("created"), outcome.count("unchanged")),
        (3, 6),
        "{}",
        outcome.text
    );
    assert!(account_objects(&federation).iter().all(Option::is_some));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_join_replaces_an_expired_token() {
    let federation = Federation::start(&["eu"]).await;
    let request = JoinRequest {
        token_duration: Duration::from_secs(3600),
        ..federation.join_request("eu")
    };
    federation.join_as(request).await.failed();
    let before = federation.stored_token("eu");
    let clock = federation.member("eu").sim.clock();
    clock.step(SignedDuration::from_hours(2));
    let outcome = federation.join("eu").await.failed();
    outcome.contains(&[
        "secret/member-eu configured: new token",
        "has expired or was revoked",
    ]);
    assert_ne!(federation.stored_token("eu"), before);
    let outcome = federation.join("eu").await;
    outcome.contains(&["secret/member-eu unchanged"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_join_replaces_a_revoked_token() {
    let federation = Federation::joined(&["eu"]).await;
    let account = federation.account();
    federation
        .member("eu")
        .delete("v1", "ServiceAccount", NAMESPACE, &account);
    let outcome = federation.join("eu").await.failed();
    outcome.contains(&[
        &format!("serviceaccount/{account} created"),
        "secret/member-eu configured: new token",
        "belongs to a deleted ServiceAccount",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_of_the_member_keeps_the_token() {
    let federation = Federation::joined(&["eu"]).await;
    let token = federation.stored_token("eu");
    let request = JoinRequest {
        member_server: Some("https://eu.example:6443".to_owned()),
        ..federation.join_request("eu")
    };
    let outcome = federation.join_as(request).await.failed();
    outcome.contains(&["secret/member-eu configured"]);
    let stored = federation.host.stored_kubeconfig("eu").unwrap();
    assert_eq!(
        stored["clusters"][0]["cluster"]["server"],
        "https://eu.example:6443"
    );
    assert_eq!(federation.stored_token("eu"), token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_one_name_and_a_name_one_cluster() {
    let federation = Federation::joined(&["eu", "us"]).await;
    let before = federation.contents();
    let request = JoinRequest {
        name: "europe".to_owned(),
        ..federation.join_request("eu")
    };
    let outcome = federation.join_as(request).await.failed();
    outcome.contains(&["already a member with the name eu", "No changes were made"]);
    let request = JoinRequest {
        name: "eu".to_owned(),
        ..federation.join_request("us")
    };
    let outcome = federation.join_as(request).await.failed();
    outcome.contains(&["member eu is another cluster", "No changes were made"]);
    assert_eq!(federation.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_can_be_a_member_of_itself() {
    let federation = Federation::start(&[]).await;
    let request = JoinRequest {
        member: federation.kubeconfig("host.yaml"),
        ..federation.join_request("self")
    };
    let outcome = federation.join_as(request).await.failed();
    outcome.contains(&[
        "The host becomes a member of itself",
        "membercluster/self created",
        "namespace/fedrs-system created",
    ]);
    assert!(federation.stored_token("self").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_missing_permissions_are_reported_at_once() {
    let federation = Federation::start(&["eu"]).await;
    federation.write_stranger("eu");
    let before = federation.contents();
    let request = JoinRequest {
        member: federation.kubeconfig("stranger.yaml"),
        ..federation.join_request("eu")
    };
    let outcome = federation.join_as(request).await.failed();
    outcome.contains(&[
        "member: missing permission to get namespaces kube-system",
        "member: missing permission to get clusterroles.rbac.authorization.k8s.io fedrs-controller-",
        "member: missing permission to create namespaces",
        "member: missing permission to create serviceaccounts/token",
        "member: missing permission to delete replicasets.apps, which join grants to the controller",
        "No changes were made",
    ]);
    assert_eq!(federation.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_to_a_host_without_crds_names_the_command_to_install_them() {
    let federation = Federation::without_crds(&["eu"]).await;
    let outcome = federation.join("eu").await.failed();
    outcome.contains(&["fedrs crds | kubectl apply"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_kubeconfig_is_not_quoted() {
    let federation = Federation::start(&["eu"]).await;
    for invalid in [
        "users: [{name: u, user: {token: s3cret]",
        "users: [{user: {token: [s3cret]}}]",
        "s3cret",
    ] {
        federation.write("eu.yaml", invalid);
        let outcome = federation.join("eu").await.failed();
        let outcome = outcome.contains(&["invalid kubeconfig", "eu.yaml"]);
        assert!(!outcome.text.contains("s3cret"), "{}", outcome.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_no_client_can_use_is_rejected() {
    let federation = Federation::start(&["eu"]).await;
    let server = federation.member("eu").server.kubeconfig().server.clone();
    let before = federation.contents();
    for (server, user) in [
        (&*server, "a"),
        (&*server, "other"),
        ("127.0.0.1:6443", "a"),
    ] {
        let kubeconfig = format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
             clusters: [{{name: a, cluster: {{server: '{server}'}}}}], users: [{{name: {user}, user: {{token: \"s3cret\\n\"}}}}]}}"
        );
        federation.write("eu.yaml", &kubeconfig);
        let request = JoinRequest {
            member_server: Some("https://eu:6443".to_owned()),
            ..federation.join_request("eu")
        };
        let outcome = federation.join_as(request).await.failed();
        let outcome = outcome.contains(&["member: invalid kubeconfig"]);
        assert!(!outcome.text.contains("s3cret"), "{}", outcome.text);
    }
    assert_eq!(federation.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_a_controller_creates_meanwhile_is_used() {
    let federation = Federation::start(&["eu"]).await;
    let exists = Status::already_exists(&kinds::NAMESPACES, NAMESPACE);
    let created = RequestMatcher::all()
        .resource("namespaces")
        .verb(Verb::Create);
    federation.host.sim.faults().refuse(created, 1, exists);
    // The join continues until it needs the namespace, which does not exist in this test.
    let outcome = federation.join("eu").await.failed();
    outcome.contains(&[
        "host    namespace/fedrs-system unchanged",
        "failed to create secret/member-eu",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_waits_for_crds_that_are_not_served_yet() {
    let federation = Federation::start(&["eu"]).await;
    let busy = Status::too_many_requests("storage is (re)initializing", 1);
    let members = RequestMatcher::all().resource("memberclusters");
    federation.host.sim.faults().refuse(members, 2, busy);
    federation.join_as(dry_run(&federation)).await.succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_cluster_fails_the_join_before_the_first_write() {
    let federation = Federation::start(&["eu"]).await;
    federation.member("eu").sim.faults().set_unreachable(true);
    let before = federation.contents();
    let outcome = federation.join("eu").await.failed();
    outcome.contains(&["member: failed to connect to https://127.0.0.1:"]);
    assert_eq!(federation.contents(), before);
    let request = JoinRequest {
        member: federation.kubeconfig("nowhere.yaml"),
        ..federation.join_request("eu")
    };
    let outcome = federation.join_as(request).await.failed();
    outcome.contains(&["nowhere.yaml"]);
}

/// A join of `eu` for these namespaces.
fn for_namespaces(federation: &Federation, names: &[&str]) -> JoinRequest {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    JoinRequest {
        namespaces: JoinNamespaces::Listed(names),
        ..federation.join_request("eu")
    }
}

/// The rules of the ClusterRole in `eu` about ReplicaSets.
fn rules_of_workloads(federation: &Federation) -> usize {
    let role = federation
        .member("eu")
        .get(RBAC, "ClusterRole", "", &federation.account())
        .unwrap();
    let rules = role["rules"].as_array().unwrap().iter();
    rules
        .filter(|rule| rule["resources"][0] == "replicasets")
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_join_for_namespaces_creates_them_and_grants_nothing_elsewhere() {
    let federation = Federation::start(&["eu"]).await;
    let request = for_namespaces(&federation, &["blog", "default"]);
    let outcome = federation
        .join_as(request)
        .await
        .failed()
        .contains(&["namespace/blog created", "namespace/default unchanged"]);
    // The nine of every join, and the namespace blog.
    assert_eq!(outcome.count("created"), 9 + 5, "{}", outcome.text);
    let (eu, account) = (federation.member("eu"), federation.account());
    for namespace in ["blog", "default"] {
        for kind in ["Role", "RoleBinding"] {
            assert!(eu.get(RBAC, kind, namespace, &account).is_some());
        }
    }
    assert_eq!(rules_of_workloads(&federation), 0);
    let member = federation.host.member_cluster("eu").unwrap();
    assert_eq!(
        member["spec"]["namespaces"],
        json!({ "names": ["blog", "default"] })
    );
    // A repeated join keeps them.
    let outcome = federation.join("eu").await.failed();
    assert_eq!(outcome.count("created"), 0, "{}", outcome.text);
    let member = federation.host.member_cluster("eu").unwrap();
    assert_eq!(
        member["spec"]["namespaces"]["names"],
        json!(["blog", "default"])
    );
    // And another one grants permissions in all.
    let request = JoinRequest {
        namespaces: JoinNamespaces::All,
        ..federation.join_request("eu")
    };
    federation.join_as(request).await.failed();
    assert!(rules_of_workloads(&federation) > 0);
    let member = federation.host.member_cluster("eu").unwrap();
    assert_eq!(member["spec"]["namespaces"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_join_for_fewer_namespaces_keeps_the_permissions_until_the_controller_follows() {
    let federation = Federation::joined(&["eu"]).await;
    let before = rules_of_workloads(&federation);
    let request = for_namespaces(&federation, &["blog"]);
    federation.join_as(request).await.failed();
    assert_eq!(rules_of_workloads(&federation), before);
    let member = federation.host.member_cluster("eu").unwrap();
    assert_eq!(member["spec"]["namespaces"]["names"], json!(["blog"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_dry_run_for_namespaces_changes_nothing() {
    let federation = Federation::start(&["eu"]).await;
    let before = federation.contents();
    let request = JoinRequest {
        mode: WriteMode::DryRun,
        ..for_namespaces(&federation, &["blog", "default"])
    };
    federation.join_as(request).await.succeeded();
    assert_eq!(federation.contents(), before);
}
