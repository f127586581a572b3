//! `fedrs join`, up to where the controller takes over.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use sim_cluster::{Kubeconfig, RequestMatcher, Status, Verb, kinds};

use crate::fleet::{Fleet, NAMESPACE};

/// Nobody is there to make the member ready: the join ends at once, with all in place.
const AT_ONCE: &str = "--timeout 0s";

fn in_member(fleet: &Fleet) -> Vec<Option<Value>> {
    let (member, account) = (fleet.member("eu"), fleet.account());
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        member.get("v1", "ServiceAccount", NAMESPACE, &account),
        member.get(rbac, "ClusterRole", "", &account),
        member.get(rbac, "ClusterRoleBinding", "", &account),
        member.get(rbac, "Role", NAMESPACE, &account),
        member.get(rbac, "RoleBinding", NAMESPACE, &account),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_says_each_step_and_what_is_missing_without_a_controller() {
    let fleet = Fleet::start(&["eu"]).await;
    let told = fleet
        .join("eu", "--labels tier=gold,region=eu --timeout 0s")
        .await;
    let told = told.badly().telling(&[
        "eu is not ready",
        "Does a controller run on this host",
        "can be reached from this machine alone",
        "secret/member-eu created: with a token of fedrs-controller-",
    ]);
    assert_eq!(told.steps("created"), 9, "{}", told.out);
    assert!(in_member(&fleet).iter().all(Option::is_some));
    let member = fleet.member_cluster("eu").unwrap();
    assert_eq!(
        member["spec"],
        json!({ "secretRef": { "name": "member-eu" } })
    );
    assert_eq!(member["metadata"]["labels"]["tier"], "gold");
    let stored = fleet.stored("eu").unwrap();
    let server = &stored["clusters"][0]["cluster"]["server"];
    assert_eq!(
        *server,
        fleet.member("eu").server.kubeconfig().server.as_str()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn again_is_a_no_op() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.join("eu", AT_ONCE).await.badly();
    let (before, token) = (fleet.contents(), fleet.stored_token("eu"));
    let told = fleet.join("eu", AT_ONCE).await.badly();
    assert_eq!(
        (told.steps("unchanged"), told.steps("created")),
        (9, 0),
        "{}",
        told.out
    );
    assert_eq!(
        (fleet.contents(), fleet.stored_token("eu")),
        (before, token)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_would_be_done_and_changes_nothing() {
    let fleet = Fleet::start(&["eu"]).await;
    let before = fleet.contents();
    let told = fleet.join("eu", "--dry-run").await.well();
    assert_eq!(told.steps("would be created"), 9, "{}", told.out);
    assert_eq!(fleet.contents(), before);

    fleet.join("eu", AT_ONCE).await.badly();
    let rbac = "rbac.authorization.k8s.io/v1";
    fleet
        .member("eu")
        .delete(rbac, "Role", NAMESPACE, &fleet.account());
    let before = fleet.contents();
    let told = fleet
        .join("eu", "--dry-run --labels tier=gold")
        .await
        .well();
    let told = told.telling(&["would be created", "membercluster/eu would be updated"]);
    assert_eq!(
        (told.steps("would be created"), told.steps("unchanged")),
        (1, 7),
        "{}",
        told.out
    );
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_done_join_is_completed() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.join("eu", AT_ONCE).await.badly();
    let rbac = "rbac.authorization.k8s.io/v1";
    fleet
        .member("eu")
        .delete(rbac, "RoleBinding", NAMESPACE, &fleet.account());
    fleet.host.delete("v1", "Secret", NAMESPACE, "member-eu");
    fleet
        .host
        .delete("fedrs.dev/v1alpha1", "MemberCluster", "", "eu");
    let told = fleet.join("eu", AT_ONCE).await.badly();
    assert_eq!(
        (told.steps("created"), told.steps("unchanged")),
        (3, 6),
        "{}",
        told.out
    );
    assert!(in_member(&fleet).iter().all(Option::is_some));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_healed() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet
        .join("eu", "--token-duration 1h --timeout 0s")
        .await
        .badly();
    let before = fleet.stored_token("eu");
    fleet
        .member("eu")
        .sim
        .clock()
        .step(SignedDuration::from_hours(2));
    let told = fleet.join("eu", AT_ONCE).await.badly();
    told.telling(&[
        "secret/member-eu updated: renewed token",
        "had expired or was revoked",
    ]);
    assert_ne!(fleet.stored_token("eu"), before);
    fleet
        .join("eu", AT_ONCE)
        .await
        .telling(&["secret/member-eu unchanged"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_healed() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.join("eu", AT_ONCE).await.badly();
    fleet
        .member("eu")
        .delete("v1", "ServiceAccount", NAMESPACE, &fleet.account());
    let told = fleet.join("eu", AT_ONCE).await.badly();
    told.telling(&[
        "serviceaccount/",
        "created",
        "secret/member-eu updated: renewed token",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_way_to_the_member_keeps_the_token() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.join("eu", AT_ONCE).await.badly();
    let token = fleet.stored_token("eu");
    let elsewhere = "--member-server https://eu.example:6443 --timeout 0s";
    let told = fleet.join("eu", elsewhere).await.badly();
    told.telling(&["secret/member-eu updated"]);
    let stored = fleet.stored("eu").unwrap();
    assert_eq!(
        stored["clusters"][0]["cluster"]["server"],
        "https://eu.example:6443"
    );
    assert_eq!(fleet.stored_token("eu"), token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_one_name() {
    let fleet = Fleet::start(&["eu", "us"]).await;
    fleet.join("eu", AT_ONCE).await.badly();
    let before = fleet.contents();
    let told = fleet
        .fedrs("join europe --member-kubeconfig eu.yaml")
        .await
        .badly();
    told.telling(&["a member already, by the name eu", "Nothing was changed"]);
    let told = fleet
        .fedrs("join eu --member-kubeconfig us.yaml")
        .await
        .badly();
    told.telling(&["the member eu is another cluster", "Nothing was changed"]);
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_can_be_a_member_of_itself() {
    let fleet = Fleet::start(&[]).await;
    let told = fleet
        .fedrs("join self --member-kubeconfig host.yaml --timeout 0s")
        .await;
    told.badly().telling(&[
        "the host becomes a member of itself",
        "membercluster/self created",
        "namespace/fedrs-system created",
    ]);
    assert!(fleet.stored_token("self").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_not_allowed_is_told_at_once() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.write(
        "stranger.yaml",
        &fleet.member("eu").kubeconfig_of_a_stranger(),
    );
    let before = fleet.contents();
    let told = fleet
        .fedrs("join eu --member-kubeconfig stranger.yaml")
        .await
        .badly();
    told.telling(&[
        "not allowed: member: get namespaces kube-system",
        "not allowed: member: get clusterroles.rbac.authorization.k8s.io fedrs-controller-",
        "not allowed: member: create namespaces",
        "not allowed: member: create serviceaccounts/token",
        "not allowed: member: delete replicasets.apps (to give it to the controller)",
        "Nothing was changed",
    ]);
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_crds_says_what_to_do() {
    let fleet = Fleet::without_crds(&["eu"]).await;
    let told = fleet.join("eu", AT_ONCE).await.badly();
    told.telling(&["fedrs crds | kubectl apply"]);
}

#[rstest]
#[case("tokenFile: token")]
#[case(
    "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_users_kubeconfig_may_get_its_credentials_from_elsewhere(#[case] user: &str) {
    let fleet = Fleet::start(&["eu"]).await;
    let Kubeconfig {
        server,
        authority_pem,
        token,
        ..
    } = fleet.member("eu").server.kubeconfig().clone();
    fleet.write("ca.crt", &authority_pem);
    fleet.write("token", &token);
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": token },
    });
    fleet.write_program("plugin", &format!("#!/bin/sh\necho '{credential}'\n"));
    let kubeconfig = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: '{server}', certificate-authority: ca.crt}}}}], \
         users: [{{name: a, user: {{{user}}}}}]}}"
    );
    fleet.write("own.yaml", &kubeconfig);
    let told = fleet
        .fedrs("join eu --member-kubeconfig own.yaml --timeout 0s")
        .await;
    told.badly().telling(&["membercluster/eu created"]);
    let stored = fleet.stored("eu").unwrap();
    let cluster = &stored["clusters"][0]["cluster"];
    assert!(
        cluster["certificate-authority-data"].is_string(),
        "{cluster}"
    );
    assert_eq!(
        stored["users"][0]["user"].as_object().unwrap().len(),
        1,
        "a token alone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_but_for_what_it_is_not_for() {
    let fleet = Fleet::start(&["eu"]).await;
    let nobody = ("HTTPS_PROXY", "http://127.0.0.1:1");
    let join = "join eu --member-kubeconfig eu.yaml --dry-run";
    let told = fleet.fedrs_with(&[nobody], join).await.badly();
    told.telling(&["host: failed to reach", "member: failed to reach"]);
    let not_here = ("NO_PROXY", "127.0.0.0/8");
    fleet.fedrs_with(&[nobody, not_here], join).await.well();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_kubeconfig_is_not_quoted() {
    let fleet = Fleet::start(&["eu"]).await;
    for broken in [
        "users: [{name: u, user: {token: s3cret]",
        "users: [{user: {token: [s3cret]}}]",
        "s3cret",
    ] {
        fleet.write("broken.yaml", broken);
        let told = fleet
            .fedrs("join eu --member-kubeconfig broken.yaml")
            .await
            .badly();
        let told = told.telling(&["broken.yaml can't be used"]);
        assert!(!told.errors.contains("s3cret"), "{}", told.errors);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_client_can_be_made_of_is_told() {
    let fleet = Fleet::start(&["eu"]).await;
    let server = fleet.member("eu").server.kubeconfig().server.clone();
    let before = fleet.contents();
    for (server, name, why) in [
        (
            &*server,
            "a",
            "its token has characters that can't be in a token",
        ),
        (&*server, "other", "there is no user \"a\" in it"),
        (
            "127.0.0.1:6443",
            "a",
            "its cluster's server is not an address of the form https://HOST:PORT",
        ),
    ] {
        let kubeconfig = format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
             clusters: [{{name: a, cluster: {{server: '{server}'}}}}], users: [{{name: {name}, user: {{token: \"s3cret\\n\"}}}}]}}"
        );
        fleet.write("own.yaml", &kubeconfig);
        let told = fleet
            .fedrs("join eu --member-kubeconfig own.yaml --member-server https://eu:6443")
            .await;
        let told = told.badly().telling(&["member: ", why]);
        assert!(!told.errors.contains("s3cret"), "{}", told.errors);
    }
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_a_controller_makes_meanwhile_is_as_good_as_our_own() {
    let fleet = Fleet::start(&["eu"]).await;
    let there = Status::already_exists(&kinds::NAMESPACES, NAMESPACE);
    let created = RequestMatcher::all()
        .resource("namespaces")
        .verb(Verb::Create);
    fleet.host.sim.faults().refuse(created, 1, there);
    // It goes on, to where the namespace is needed, which nobody made after all.
    let told = fleet.join("eu", AT_ONCE).await.badly();
    told.telling(&[
        "host    namespace/fedrs-system unchanged",
        "failed to create secret/member-eu",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_that_are_not_served_yet_are_waited_for() {
    let fleet = Fleet::start(&["eu"]).await;
    let busy = Status::too_many_requests("storage is (re)initializing", 1);
    let members = RequestMatcher::all().resource("memberclusters");
    fleet.host.sim.faults().refuse(members, 2, busy);
    fleet.join("eu", "--dry-run").await.well();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_answer_is_told_before_anything_is_done() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.member("eu").sim.faults().set_unreachable(true);
    let before = fleet.contents();
    let told = fleet.join("eu", AT_ONCE).await.badly();
    told.telling(&["member: failed to reach https://127.0.0.1:"]);
    assert_eq!(fleet.contents(), before);
    let told = fleet
        .fedrs("join eu --member-kubeconfig nowhere.yaml")
        .await
        .badly();
    told.telling(&["nowhere.yaml"]);
    let told = fleet.fedrs("join eu").await.badly();
    told.telling(&["--member-kubeconfig, --member-context, or both"]);
}
