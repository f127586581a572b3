//! What a program that keeps clusters' credentials and takes turns with others relies on.

use serde_json::json;
use sim_cluster::SimCluster;

use crate::support::Client;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test(start_paused = true)]
async fn a_secret_has_a_type_and_accepts_string_data() {
    let cluster = SimCluster::builder("one").start();
    let client = Client::new(cluster.service());
    let secret = json!({"metadata": {"name": "a"}, "data": {"x": "b2xk", "y": "eQ=="}, "stringData": {"x": "new"}});
    let created = client.post(SECRETS, secret).await.expect(201);
    assert_eq!(created["type"], "Opaque");
    assert_eq!(created["data"], json!({"x": "bmV3", "y": "eQ=="}));
    assert!(created.get("stringData").is_none(), "it is only written");
    let typed = json!({"metadata": {"name": "b"}, "type": "example.org/kubeconfig", "stringData": {"k": "v"}});
    client.post(SECRETS, typed).await.expect(201);

    for (selector, names) in [
        ("type%3Dexample.org/kubeconfig", vec!["b"]),
        ("type!%3Dexample.org/kubeconfig", vec!["a"]),
        ("type%3DOpaque,metadata.name%3Db", vec![]),
    ] {
        let list = client
            .get(&format!("{SECRETS}?fieldSelector={selector}"))
            .await
            .expect(200);
        let items = list["items"].as_array().expect("items").iter();
        let found: Vec<&str> = items
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        assert_eq!(found, names, "{selector}");
    }

    let path = format!("{SECRETS}/b");
    client
        .patch(&path, "merge-patch+json", &json!({"type": "Opaque"}))
        .await
        .assert_status(
            422,
            "Invalid",
            "Secret \"b\" is invalid: type: Invalid value: \"Opaque\": field is immutable",
        );
    client
        .patch(
            &path,
            "merge-patch+json",
            &json!({"stringData": {"k": "w"}, "immutable": true}),
        )
        .await
        .expect(200);
    client
        .patch(
            &path,
            "merge-patch+json",
            &json!({"stringData": {"k": "x"}}),
        )
        .await
        .assert_status(
            422,
            "Invalid",
            "Secret \"b\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
        );
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    client
        .patch(&path, "merge-patch+json", &labelled)
        .await
        .expect(200);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_one_client_acquires_a_lease() {
    let cluster = SimCluster::builder("one").start();
    let client = Client::new(cluster.service());
    let lease = |holder: &str, version: &str| {
        json!({"metadata": {"name": "l", "resourceVersion": version}, "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 1,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:01.500000Z"}})
    };
    let created = client.post(LEASES, lease("one", "")).await.expect(201);
    assert_eq!(
        created["spec"],
        lease("one", "")["spec"],
        "times keep their parts of a second"
    );
    assert!(created["metadata"].get("generation").is_none());
    let version = created["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    let path = format!("{LEASES}/l");
    client.put(&path, lease("two", &version)).await.expect(200);
    client.put(&path, lease("three", &version)).await.assert_status(409, "Conflict", "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": the object has been modified");
    client.put(&path, lease("three", "")).await.assert_status(422, "Invalid", "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update");
    let wrong = json!({"metadata": {"name": "w"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
    client.post(LEASES, wrong).await.assert_status(
        422,
        "Invalid",
        "Lease.coordination.k8s.io \"w\" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater than \
         0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]",
    );
    cluster.stop().await;
}
