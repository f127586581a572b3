//! Who may come in, and what they may do there: tokens of accounts, RBAC, reviews; in process and over HTTPS.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use sim_cluster::{SimCluster, User};

use crate::support::Client;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A cluster with the account `robot`, which may read config maps of its namespace.
async fn cluster() -> (SimCluster, Client) {
    let cluster = SimCluster::builder("one").start();
    let admin = Client::new(cluster.service());
    let named = |name: &str| json!({"metadata": {"name": name}});
    admin.post(ACCOUNTS, named("robot")).await.expect(201);
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "patch"]}]});
    let path = format!("{RBAC}/namespaces/default");
    admin.post(&format!("{path}/roles"), role).await.expect(201);
    let binding = json!({"metadata": {"name": "robot"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}});
    admin
        .post(&format!("{path}/rolebindings"), binding)
        .await
        .expect(201);
    (cluster, admin)
}

async fn token(admin: &Client, spec: Value) -> String {
    let path = format!("{ACCOUNTS}/robot/token");
    let request = admin.post(&path, json!({"spec": spec})).await.expect(201);
    request["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).expect("a JSON web token");
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64");
    serde_json::from_slice(&claims).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn a_token_has_a_user_and_an_expiry() {
    let (cluster, admin) = cluster().await;
    let account = admin.get(&format!("{ACCOUNTS}/robot")).await.expect(200);
    let uid = &account["metadata"]["uid"];
    let path = format!("{ACCOUNTS}/robot/token");
    let answer = admin
        .post(&path, json!({"spec": {"expirationSeconds": 7200}}))
        .await;
    let answer = answer.expect(201);
    assert_eq!(
        answer["spec"],
        json!({"audiences": ["https://kubernetes.default.svc.cluster.local"], "expirationSeconds": 7200})
    );
    assert_eq!(answer["metadata"]["uid"], *uid);
    assert_eq!(
        answer["status"]["expirationTimestamp"],
        "2026-01-01T02:00:00Z"
    );
    let claims = claims(answer["status"]["token"].as_str().expect("a token"));
    assert_eq!(
        claims,
        json!({
            "aud": ["https://kubernetes.default.svc.cluster.local"], "exp": 1_767_232_800, "iat": 1_767_225_600,
            "iss": "https://kubernetes.default.svc.cluster.local", "jti": claims["jti"],
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}},
            "nbf": 1_767_225_600, "sub": "system:serviceaccount:default:robot",
        })
    );
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn token_requests_are_checked() {
    let (cluster, admin) = cluster().await;
    let request = |name: &'static str, body: Value| {
        let admin = &admin;
        async move { admin.post(&format!("{ACCOUNTS}/{name}/token"), body).await }
    };
    request("nobody", json!({})).await.assert_status(
        404,
        "NotFound",
        "serviceaccounts \"nobody\" not found",
    );
    for (body, code, reason, message) in [
        (
            json!({"spec": {"expirationSeconds": 599}}),
            422,
            "Invalid",
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 599: \
             may not specify a duration less than 10 minutes",
        ),
        (
            json!({"metadata": {"name": "other"}}),
            422,
            "Invalid",
            "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": \
             must match the service account name if specified",
        ),
        (
            json!({"metadata": {"uid": "other"}}),
            409,
            "Conflict",
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"robot\": the UID in the token \
             request (other) does not match",
        ),
        (
            json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}}),
            404,
            "NotFound",
            "secrets \"s\" not found",
        ),
        (
            json!({"spec": {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s"}}}),
            400,
            "BadRequest",
            "cannot bind token to object of type apps/v1, Kind=ReplicaSet",
        ),
    ] {
        request("robot", body)
            .await
            .assert_status(code, reason, message);
    }
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_valid_until_it_expires_or_its_account_is_deleted() {
    let (cluster, admin) = cluster().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let token = token(&admin, json!({"expirationSeconds": 600})).await;
    let robot = Client::with_token(cluster.service(), &token);
    robot.get(maps).await.expect(200);
    tokio::time::advance(Duration::from_secs(655)).await;
    robot.get(maps).await.expect(200);
    tokio::time::advance(Duration::from_secs(10)).await;
    robot
        .get(maps)
        .await
        .assert_status(401, "Unauthorized", "Unauthorized");

    let token = self::token(&admin, json!({})).await;
    let robot = Client::with_token(cluster.service(), &token);
    robot.get(maps).await.expect(200);
    admin
        .delete(&format!("{ACCOUNTS}/robot"), None)
        .await
        .expect(200);
    robot
        .get(maps)
        .await
        .assert_status(401, "Unauthorized", "Unauthorized");
    let again = json!({"metadata": {"name": "robot"}});
    admin.post(ACCOUNTS, again).await.expect(201);
    // An account of that name, and not the one the token was for.
    robot
        .get(maps)
        .await
        .assert_status(401, "Unauthorized", "Unauthorized");
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_token_ends_with_its_secret() {
    let (cluster, admin) = cluster().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}});
    admin.post(secrets, secret).await.expect(201);
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": "s"});
    let token = token(&admin, json!({"boundObjectRef": reference})).await;
    assert_eq!(claims(&token)["kubernetes.io"]["secret"]["name"], "s");
    let robot = Client::with_token(cluster.service(), &token);
    robot.get("/api").await.expect(200);
    admin
        .delete(&format!("{secrets}/s"), None)
        .await
        .expect(200);
    robot
        .get("/api")
        .await
        .assert_status(401, "Unauthorized", "Unauthorized");
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_account_has_the_permissions_of_its_roles() {
    let (cluster, admin) = cluster().await;
    let token = token(&admin, json!({})).await;
    let robot = Client::with_token(cluster.service(), &token);
    let maps = "/api/v1/namespaces/default/configmaps";
    robot.get(maps).await.expect(200);
    robot.get("/api/v1/configmaps").await.assert_status(
        403,
        "Forbidden",
        "configmaps is forbidden: User \"system:serviceaccount:default:robot\" cannot list resource \"configmaps\" \
         in API group \"\" at the cluster scope",
    );
    // Before it is found out whether there is such a thing.
    robot
        .get("/apis/none.example.org/v1/things")
        .await
        .assert_status(403, "Forbidden", "things.none.example.org is forbidden: ");
    // Apply creates what is not there, which patching does not cover.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let apply = format!("{maps}/a?fieldManager=robot");
    robot
        .patch(&apply, "apply-patch+yaml", &map)
        .await
        .assert_status(
            403,
            "Forbidden",
            "configmaps \"a\" is forbidden: User \"system:serviceaccount:default:robot\" cannot create resource",
        );
    admin.post(maps, map.clone()).await.expect(201);
    robot
        .patch(&apply, "apply-patch+yaml", &map)
        .await
        .expect(200);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn reviews_answer_for_the_user_of_the_request() {
    let (cluster, admin) = cluster().await;
    let token = token(&admin, json!({})).await;
    let robot = Client::with_token(cluster.service(), &token);
    let reviews = "/apis/authorization.k8s.io/v1";
    let ask = |verb: &str, namespace: &str| json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": namespace}}});
    let path = format!("{reviews}/selfsubjectaccessreviews");
    for (verb, namespace, allowed) in [
        ("get", "default", true),
        ("get", "", false),
        ("delete", "default", false),
    ] {
        let answer = robot.post(&path, ask(verb, namespace)).await.expect(201);
        assert_eq!(answer["status"]["allowed"], allowed, "{verb} {namespace:?}");
        let answer = admin.post(&path, ask(verb, namespace)).await.expect(201);
        assert_eq!(answer["status"]["allowed"], true);
    }
    robot.post(&path, json!({"spec": {}})).await.assert_status(
        422,
        "Invalid",
        "SelfSubjectAccessReview.",
    );
    let mut of_robot = ask("get", "default");
    of_robot["spec"]["user"] = json!("system:serviceaccount:default:robot");
    let path = format!("{reviews}/subjectaccessreviews");
    let answer = admin.post(&path, of_robot.clone()).await.expect(201);
    assert_eq!(answer["status"]["allowed"], true);
    robot
        .post(&path, of_robot)
        .await
        .assert_status(403, "Forbidden", "subjectaccessreviews.");
    let path = format!("{reviews}/selfsubjectrulesreviews");
    let rules = robot
        .post(&path, json!({"spec": {"namespace": "default"}}))
        .await;
    let rules = rules.expect(201)["status"]["resourceRules"].clone();
    let own =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "patch"]});
    assert!(rules.as_array().expect("rules").contains(&own), "{rules}");
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let user = robot.post(who, json!({})).await.expect(201)["status"]["userInfo"].clone();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        user["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn other_tokens_can_be_added_and_removed() {
    let (cluster, _) = cluster().await;
    let api = cluster.api();
    api.admit_token("of-alice", User::named("alice", &["team"]));
    let alice = Client::with_token(cluster.service(), "of-alice");
    alice.get("/api").await.expect(200);
    alice.get("/api/v1/nodes").await.assert_status(
        403,
        "Forbidden",
        "nodes is forbidden: User \"alice\"",
    );
    api.dismiss_token("of-alice");
    alice
        .get("/api")
        .await
        .assert_status(401, "Unauthorized", "Unauthorized");
    cluster.stop().await;
}

/// What a program that joins clusters does: an account with rights by roles, a token for it, a client with that.
#[tokio::test]
async fn a_service_account_authenticates_over_https() {
    let (cluster, admin) = cluster().await;
    let server = cluster.serve(None).await.expect("a port");
    let kubeconfig = server.kubeconfig().clone();
    let client = async |token: String| {
        let kubeconfig = sim_cluster::Kubeconfig {
            token,
            ..kubeconfig.clone()
        };
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&kubeconfig.to_yaml()).expect("valid");
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        kube::Client::try_from(config.expect("usable")).expect("a client")
    };
    let api = |client: kube::Client, kind: &str| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        Api::<DynamicObject>::default_namespaced_with(client, &resource)
    };
    let code = |error: kube::Error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer: {other}"),
    };
    let root = client(kubeconfig.token.clone()).await;
    let accounts = api(root, "ServiceAccount");
    let request = json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": 3600}});
    let answer: Value = accounts
        .create_subresource("token", "robot", &PostParams::default(), &request)
        .await
        .expect("a token");
    let token = answer["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned();
    let robot = client(token.clone()).await;
    let list = ListParams::default();
    api(robot.clone(), "ConfigMap")
        .list(&list)
        .await
        .expect("allowed");
    let refused = api(robot.clone(), "Secret")
        .list(&list)
        .await
        .expect_err("not allowed");
    assert_eq!(code(refused), 403);
    admin
        .delete(&format!("{ACCOUNTS}/robot"), None)
        .await
        .expect(200);
    let refused = api(robot, "ConfigMap")
        .list(&list)
        .await
        .expect_err("the account is gone");
    assert_eq!(code(refused), 401);
    let wrong = client(format!("{token}x")).await;
    let refused = wrong.apiserver_version().await.expect_err("a wrong token");
    assert_eq!(code(refused), 401, "even for what is public");
    server.stop().await;
    cluster.stop().await;
}
