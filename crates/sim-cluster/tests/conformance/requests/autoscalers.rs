//! HorizontalPodAutoscalers in both of their versions. Their controller writes the status when it gets to it, so that after
//! the creation only the specification is compared.

use crate::reference::script::{
    RequestScript, delete, get, json_patch, merge, post, put, script, steps,
};
use serde_json::{Value, json};

const V1: &str = "autoscaling/v1:horizontalpodautoscalers";
const V2: &str = "autoscaling/v2:horizontalpodautoscalers";

pub(crate) fn all() -> Vec<RequestScript> {
    let web_v1 = format!("{V1}/web");
    let web_v2 = format!("{V2}/web");
    let memory = json!({ "type": "Resource", "resource": { "name": "memory", "target": { "type": "AverageValue", "averageValue": "1Gi" } } });
    vec![
        script(
            "autoscalers::v1",
            steps![
                post(
                    V1,
                    autoscaler(
                        "autoscaling/v1",
                        &json!({ "minReplicas": 1, "targetCPUUtilizationPercentage": 50 })
                    )
                ),
                get(&web_v1).only("/spec").only("/apiVersion"),
                get(&web_v2).only("/spec").only("/apiVersion"),
                merge(&web_v1, json!({ "spec": { "maxReplicas": 5 } })).only("/spec"),
                put(
                    &web_v1,
                    autoscaler(
                        "autoscaling/v1",
                        &json!({ "targetCPUUtilizationPercentage": 60 })
                    )
                )
                .only("/spec"),
                get(&web_v2).only("/spec").called("after the put"),
                delete(&web_v1).only("/status"),
            ],
        ),
        script(
            "autoscalers::v2",
            steps![
                post(
                    V2,
                    autoscaler(
                        "autoscaling/v2",
                        &json!({ "metrics": [memory], "behavior": { "scaleDown": { "stabilizationWindowSeconds": 5 } } })
                    )
                ),
                get(&web_v2).only("/spec"),
                get(&web_v1).only("/spec"),
                merge(&web_v1, json!({ "spec": { "maxReplicas": 5 } })).only("/spec"),
                get(&web_v2).only("/spec").called("after a patch in v1"),
                json_patch(
                    &web_v2,
                    json!([{ "op": "remove", "path": "/spec/metrics" }])
                )
                .only("/spec"),
                get(&web_v1).only("/spec").called("without metrics"),
            ],
        ),
        script(
            "autoscalers::defaults",
            steps![
                post(V1, autoscaler("autoscaling/v1", &json!({}))),
                get(&web_v2).only("/spec"),
                delete(&web_v2).only("/status"),
                post(V2, autoscaler("autoscaling/v2", &json!({}))).called("post v2"),
                get(&web_v1).only("/spec"),
            ],
        ),
    ]
}

fn autoscaler(api_version: &str, more: &Value) -> Value {
    let mut autoscaler = json!({ "apiVersion": api_version, "kind": "HorizontalPodAutoscaler", "metadata": { "name": "web" },
        "spec": { "maxReplicas": 3, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web" } } });
    for (field, value) in more.as_object().into_iter().flatten() {
        autoscaler["spec"][field] = value.clone();
    }
    autoscaler
}
