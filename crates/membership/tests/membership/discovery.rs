//! The account of discovery in a member, created by join and removed by unjoin.

use fedrs_api::annotations;
use membership::{
    join::{JoinNamespaces, JoinRequest},
    unjoin::UnjoinMode,
};
use serde_json::{Value, json};

use crate::{
    clusters::{Cluster, NAMESPACE, wait_until},
    federation::{Federation, Outcome},
};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const SECRET: &str = "discovery-eu";

fn account(federation: &Federation) -> String {
    format!("fedrs-discovery-{}", &federation.host_id()[..8])
}

/// The objects of discovery in the member.
fn in_member(federation: &Federation) -> Vec<Option<Value>> {
    let (member, account) = (federation.member("eu"), account(federation));
    vec![
        member.get("v1", "ServiceAccount", NAMESPACE, &account),
        member.get(RBAC, "ClusterRole", "", &account),
        member.get(RBAC, "ClusterRoleBinding", "", &account),
        member.get(RBAC, "Role", NAMESPACE, &account),
        member.get(RBAC, "RoleBinding", NAMESPACE, &account),
    ]
}

/// The objects of discovery on the host.
fn on_host(host: &Cluster) -> Vec<Option<Value>> {
    vec![
        host.get("v1", "Secret", NAMESPACE, SECRET),
        host.get(RBAC, "Role", NAMESPACE, SECRET),
        host.get(RBAC, "RoleBinding", NAMESPACE, SECRET),
    ]
}

async fn join(federation: &Federation, namespaces: JoinNamespaces) -> Outcome {
    let request = JoinRequest {
        with_discovery: true,
        namespaces,
        ..federation.join_request("eu")
    };
    // No controller runs on the host.
    federation.join_as(request).await.failed()
}

async fn joined() -> Federation {
    let federation = Federation::start(&["eu"]).await;
    join(&federation, JoinNamespaces::default()).await;
    federation
}

#[tokio::test(flavor = "multi_thread")]
async fn join_creates_an_account_of_its_own_and_a_repeated_join_changes_nothing() {
    let federation = Federation::start(&["eu"]).await;
    let outcome = join(&federation, JoinNamespaces::default()).await;
    outcome.contains(&[
        &format!("member  serviceaccount/{} created", account(&federation)),
        &format!(
            "host    secret/{SECRET} created: new token for serviceaccount/{}",
            account(&federation)
        ),
        "host    membercluster/eu created",
    ]);
    let role = federation
        .member("eu")
        .get(RBAC, "ClusterRole", "", &federation.account())
        .unwrap();
    for object in in_member(&federation) {
        let object = object.unwrap();
        let owner = &object["metadata"]["ownerReferences"][0]["uid"];
        assert_eq!(*owner, role["metadata"]["uid"], "{}", object["kind"]);
    }
    let [Some(secret), Some(read), Some(_)] = &on_host(&federation.host)[..] else {
        panic!("a Secret, and who may read it");
    };
    let expected = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["list", "watch"],
    }]);
    assert_eq!(read["rules"], expected, "this Secret, and no other");
    assert_eq!(
        secret["metadata"]["annotations"][annotations::RENEW_TOKEN],
        "true"
    );
    let member = federation.host.member_cluster("eu").unwrap();
    assert_eq!(member["spec"]["discoverySecretRef"]["name"], SECRET);

    // Not all contents: the clusters complete new namespaces in their own time.
    let contents = || (in_member(&federation), on_host(&federation.host));
    let before = contents();
    let again = join(&federation, JoinNamespaces::default()).await;
    // Without the option what is there stays.
    let without = federation.join("eu").await.failed();
    for outcome in [again, without] {
        let written = outcome.count("created") + outcome.count("configured");
        assert_eq!(written, 0, "{}", outcome.text);
    }
    assert_eq!(contents(), before);
    assert_eq!(federation.host.member_cluster("eu").unwrap(), member);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_has_joined_gets_the_account_later_and_its_lost_token_is_replaced() {
    let federation = Federation::joined(&["eu"]).await;
    let token = federation.stored_token("eu");
    let outcome = join(&federation, JoinNamespaces::default()).await;
    outcome.contains(&["host    membercluster/eu configured"]);
    assert_eq!(federation.stored_token("eu"), token);
    let host = &federation.host;
    host.delete("v1", "Secret", NAMESPACE, SECRET);
    let outcome = join(&federation, JoinNamespaces::default()).await;
    outcome.contains(&[&format!("host    secret/{SECRET} created: new token")]);
    assert_eq!(federation.stored_token("eu"), token);
}

/// What the account with the token in the Secret may do in the member, of some requests.
async fn allowed(federation: &Federation, secret: &str) -> Vec<&'static str> {
    let all = [
        ("list pods", "/api/v1/pods"),
        ("list nodes", "/api/v1/nodes"),
        ("list services", "/api/v1/services"),
        ("list secrets", "/api/v1/secrets"),
        ("list replicasets", "/apis/apps/v1/replicasets"),
        ("list namespaces", "/api/v1/namespaces"),
    ];
    let mut allowed = Vec::new();
    for (name, path) in all {
        if federation.get_as(secret, path).await.is_ok() {
            allowed.push(name);
        }
    }
    allowed
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_reads_three_kinds_and_the_controller_may_renew_its_token() {
    let federation = joined().await;
    assert_eq!(
        allowed(&federation, SECRET).await,
        ["list pods", "list nodes", "list services"]
    );
    let path =
        |account: &str| format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
    let renewal = path(&account(&federation));
    federation
        .request_token_as("member-eu", &renewal)
        .await
        .unwrap();
    let refused = federation.request_token_as(SECRET, &renewal).await;
    assert!(
        refused.unwrap_err().contains("forbidden"),
        "it writes nothing"
    );
    let of_controller = path(&federation.account());
    let refused = federation.request_token_as(SECRET, &of_controller).await;
    assert!(refused.unwrap_err().contains("forbidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_listed_namespaces_is_read_in_all() {
    let federation = Federation::start(&["eu"]).await;
    join(&federation, JoinNamespaces::Listed(vec!["shop".to_owned()])).await;
    assert_eq!(
        allowed(&federation, SECRET).await,
        ["list pods", "list nodes", "list services"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unjoin_removes_the_account_and_what_is_on_the_host() {
    for as_user in [true, false] {
        let federation = joined().await;
        let fedrs = "fedrs.dev/v1alpha1";
        federation.host.delete(fedrs, "MemberCluster", "", "eu");
        let mode = if as_user {
            federation.as_user("eu")
        } else {
            UnjoinMode::Drain
        };
        let outcome = federation.unjoin("eu", mode).await.succeeded();
        outcome.contains(&[&format!("host    secret/{SECRET} deleted")]);
        assert!(on_host(&federation.host).iter().all(Option::is_none));
        wait_until("the account is deleted", || {
            in_member(&federation).iter().all(Option::is_none)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstall_removes_what_is_on_the_host() {
    let federation = joined().await;
    let outcome = federation.uninstall("", NAMESPACE).await.succeeded();
    outcome.contains(&[&format!("secret/{SECRET} deleted")]);
    assert!(on_host(&federation.host).iter().all(Option::is_none));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_join_did_not_create_is_a_conflict() {
    let federation = Federation::joined(&["eu"]).await;
    federation.host.create(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "namespace": NAMESPACE, "name": SECRET },
    }));
    let contents = || {
        let host = &federation.host;
        (
            in_member(&federation),
            on_host(host),
            host.member_cluster("eu"),
        )
    };
    let before = contents();
    let outcome = join(&federation, JoinNamespaces::default()).await;
    outcome.contains(&[SECRET]);
    assert_eq!(contents(), before);
}
