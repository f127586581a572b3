//! What the commands add to the operations: options, credentials, questions, and output.

use rstest::rstest;
use serde_json::{Value, json};
use sim_cluster::Kubeconfig;

use crate::federation::Federation;

#[rstest]
#[case("tokenFile: token")]
#[case(
    "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_may_get_its_credentials_from_a_file_or_a_program(#[case] user: &str) {
    let federation = Federation::start(&["eu"]).await;
    let Kubeconfig {
        server,
        authority_pem,
        token,
        ..
    } = federation.member("eu").server.kubeconfig().clone();
    federation.write("ca.crt", &authority_pem);
    federation.write("token", &token);
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": token },
    });
    federation.write_program("plugin", &format!("#!/bin/sh\necho '{credential}'\n"));
    let kubeconfig = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: '{server}', certificate-authority: ca.crt}}}}], \
         users: [{{name: a, user: {{{user}}}}}]}}"
    );
    federation.write("own.yaml", &kubeconfig);
    let outcome = federation
        .fedrs("join eu --member-kubeconfig own.yaml --timeout 0s")
        .await;
    outcome.failed().contains(&["membercluster/eu created"]);
    let stored = federation.host.stored_kubeconfig("eu").unwrap();
    let cluster = &stored["clusters"][0]["cluster"];
    assert!(
        cluster["certificate-authority-data"].is_string(),
        "{cluster}"
    );
    let user = stored["users"][0]["user"].as_object().unwrap();
    assert_eq!(user.keys().collect::<Vec<_>>(), ["token"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_unless_no_proxy_excludes_the_server() {
    let federation = Federation::start(&["eu"]).await;
    let proxy = ("HTTPS_PROXY", "http://127.0.0.1:1");
    let join = "join eu --member-kubeconfig eu.yaml --dry-run";
    let outcome = federation.fedrs_with(&[proxy], join).await.failed();
    outcome.contains(&["host: failed to connect", "member: failed to connect"]);
    let no_proxy = ("NO_PROXY", "127.0.0.0/8");
    let outcome = federation.fedrs_with(&[proxy, no_proxy], join).await;
    outcome.succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn join_takes_labels_and_requires_a_member() {
    let federation = Federation::start(&["eu"]).await;
    let outcome = federation.fedrs("join eu").await.failed();
    outcome.contains(&["--member-kubeconfig, --member-context, or both"]);
    let options = "--labels tier=gold,region=eu --timeout 0s";
    federation.join("eu", options).await.failed();
    let labels = &federation.member_cluster("eu").unwrap()["metadata"]["labels"];
    assert_eq!(
        (&labels["tier"], &labels["region"]),
        (&json!("gold"), &json!("eu"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_remove_members_ask_for_confirmation() {
    let federation = Federation::start(&["eu"]).await;
    let outcome = federation.fedrs("uninstall").await.succeeded();
    outcome.contains(&["has nothing to remove"]);
    federation.join("eu", "--timeout 0s").await.failed();
    let before = federation.contents();
    for (command, question) in [
        ("uninstall", "removes 1 member (eu)"),
        ("unjoin eu --force", "removes the member eu"),
    ] {
        let outcome = federation.fedrs(command).await.failed();
        outcome.contains(&[
            question,
            "standard input is not a terminal: confirm with --yes",
        ]);
        assert_eq!(federation.contents(), before);
    }
    let outcome = federation.fedrs("unjoin eu --force --yes").await;
    outcome.succeeded().contains(&["eu is no longer a member"]);
    let outcome = federation.fedrs("uninstall --yes").await;
    outcome
        .succeeded()
        .contains(&["namespace/fedrs-system deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_finds_a_set_by_the_namespace_of_the_context() {
    let federation = Federation::start(&[]).await;
    federation.create_web(4);
    for arguments in ["web", "default/web", "web -n default"] {
        let outcome = federation.fedrs(&format!("explain {arguments}")).await;
        let outcome = outcome.succeeded();
        outcome.contains(&["default/web: 4 replicas desired"]);
    }
    let outcome = federation.fedrs("explain web -o json").await.succeeded();
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        (&json["name"], &json["desiredReplicas"]),
        (&json!("web"), &json!(4))
    );
    let outcome = federation.fedrs("explain web -o yaml").await.succeeded();
    outcome.contains(&["name: web\ndesiredReplicas: 4\n"]);

    let kubeconfig = federation.host.server.kubeconfig().to_yaml();
    let mut kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    kubeconfig["contexts"][0]["context"]["namespace"] = "shop".into();
    federation.write("host.yaml", &kubeconfig.to_string());
    let outcome = federation.fedrs("explain web").await.failed();
    outcome.contains(&["federatedreplicaset or federateddeployment shop/web not found"]);
    let outcome = federation.fedrs("explain default/web -n shop").await;
    outcome.failed().contains(&["conflicting namespaces"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_both_kinds_have_needs_the_kind() {
    let federation = Federation::start(&[]).await;
    federation.create_web(4);
    federation.create_kind("FederatedDeployment", "web", 2);
    for command in ["explain web", "plan web"] {
        let outcome = federation.fedrs(command).await.failed();
        outcome.contains(&["choose one with frs/web or fdeploy/web"]);
    }
    for (name, expected) in [
        ("frs/web", "default/web: 4 replicas desired"),
        (
            "federatedreplicaset/default/web",
            "default/web: 4 replicas desired",
        ),
        (
            "fdeploy/web",
            "FederatedDeployment default/web: 2 replicas desired",
        ),
    ] {
        for command in ["explain", "plan"] {
            let outcome = federation.fedrs(&format!("{command} {name}")).await;
            outcome.succeeded().contains(&[expected]);
        }
    }
    let outcome = federation.fedrs("plan -A -o json").await.succeeded();
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let kinds = [&json["sets"][0]["kind"], &json["sets"][1]["kind"]];
    assert_eq!(kinds, ["FederatedReplicaSet", "FederatedDeployment"]);
}
