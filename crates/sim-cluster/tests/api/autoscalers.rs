//! HorizontalPodAutoscalers in `autoscaling/v1` and `autoscaling/v2`: one object in two forms.

use serde_json::{Value, json};
use sim_cluster::SimCluster;

use crate::support::Client;

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// What `kubectl autoscale replicaset web --min=1 --max=3 --cpu-percent=50` of kubectl 1.32 posts.
fn posted_by_kubectl() -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
        "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}})
}

fn start() -> (SimCluster, Client) {
    let cluster = SimCluster::builder("one").start();
    let client = Client::new(cluster.service());
    (cluster, client)
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_of_v1_is_one_of_v2() {
    let (_cluster, client) = start();
    let created = client.post(V1, posted_by_kubectl()).await.expect(201);
    assert_eq!(created["spec"], posted_by_kubectl()["spec"]);
    assert_eq!(
        created["status"],
        json!({"currentReplicas": 0, "desiredReplicas": 0})
    );
    let owner = &created["metadata"]["managedFields"][0];
    assert_eq!(owner["apiVersion"], "autoscaling/v1");
    assert_eq!(
        owner["fieldsV1"]["f:spec"]["f:targetCPUUtilizationPercentage"],
        json!({})
    );

    let newer = client.get(&format!("{V2}/web")).await.expect(200);
    assert_eq!(newer["apiVersion"], "autoscaling/v2");
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    assert_eq!(
        newer["spec"]["metrics"],
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
    );
    assert!(
        newer["spec"]
            .get("targetCPUUtilizationPercentage")
            .is_none()
    );
    for list in [V1, V2] {
        let list = client.get(list).await.expect(200);
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_v1_has_no_field_for_survives_a_write_in_v1() {
    let (_cluster, client) = start();
    client.post(V1, posted_by_kubectl()).await.expect(201);
    let memory = json!({"type": "Resource", "resource": {"name": "memory",
        "target": {"type": "AverageValue", "averageValue": "1Gi"}}});
    let patch = json!([{"op": "add", "path": "/spec/metrics/-", "value": memory}]);
    let patched = client
        .patch(&format!("{V2}/web"), "json-patch+json", &patch)
        .await;
    patched.expect(200);

    let older = client.get(&format!("{V1}/web")).await.expect(200);
    assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 50);
    assert_eq!(
        older["metadata"]["annotations"][METRICS],
        r#"[{"resource":{"name":"memory","targetAverageValue":"1Gi"},"type":"Resource"}]"#
    );
    let patch = json!({"spec": {"maxReplicas": 5}});
    let path = format!("{V1}/web");
    let form = "strategic-merge-patch+json";
    client.patch(&path, form, &patch).await.expect(200);
    let unchanged = client.patch(&path, form, &patch).await.expect(200);

    let newer = client.get(&format!("{V2}/web")).await.expect(200);
    assert_eq!(newer["spec"]["maxReplicas"], 5);
    assert_eq!(newer["spec"]["metrics"][0], memory);
    assert!(newer["metadata"].get("annotations").is_none());
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(
        version(&unchanged),
        version(&newer),
        "a patch that changes nothing writes nothing, whatever the version it is sent in"
    );
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_without_metrics_aims_at_80_percent_of_the_cpu() {
    let (_cluster, client) = start();
    let mut plain = posted_by_kubectl();
    plain["spec"] = json!({"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}});
    let older = client.post(V1, plain.clone()).await.expect(201);
    assert_eq!(older["spec"]["minReplicas"], 1);
    assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 80);
    plain["apiVersion"] = json!("autoscaling/v2");
    plain["metadata"]["name"] = json!("other");
    let newer = client.post(V2, plain).await.expect(201);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    assert_eq!(
        newer["spec"]["metrics"],
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_documents_and_tables_show_both_versions() {
    let (_cluster, client) = start();
    let group = client.get("/apis/autoscaling").await.expect(200);
    assert_eq!(
        group["versions"],
        json!([{"groupVersion": "autoscaling/v2", "version": "v2"}, {"groupVersion": "autoscaling/v1", "version": "v1"}])
    );
    assert_eq!(group["preferredVersion"]["version"], "v2");
    let resources = client.get("/apis/autoscaling/v1").await.expect(200);
    let names = resources["resources"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|resource| &resource["name"]).collect();
    assert_eq!(
        names,
        [
            "horizontalpodautoscalers",
            "horizontalpodautoscalers/status"
        ]
    );
    let document = client.get("/openapi/v3/apis/autoscaling/v1").await;
    let document = document.expect(200);
    let spec = "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec";
    let fields = &document["components"]["schemas"][spec]["properties"];
    assert_eq!(fields["targetCPUUtilizationPercentage"]["type"], "integer");

    client.post(V1, posted_by_kubectl()).await.expect(201);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for path in [V1, V2] {
        let table = client.get_as(path, table).await.expect(200);
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        assert_eq!(
            cells[..6],
            [
                json!("web"),
                json!("ReplicaSet/web"),
                json!("cpu: <unknown>/50%"),
                json!("1"),
                json!(3),
                json!(0)
            ]
        );
    }
}
