//! Deployments over time: rollouts, rollback, pausing, scaling, deadlines, adoption.

use crate::reference::script::{
    ApiRequest, KnownDifferenceRow, RequestScript, TABLE, delete, delete_with, get, json_patch,
    merge, post, put, script, steps, with_known_differences,
};
use serde_json::{Value, json};

use super::objects::deployment;

const DEPLOYMENTS: &str = "apps/v1:deployments";
const WEB: &str = "apps/v1:deployments/web";
const SETS: &str = "apps/v1:replicasets";

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "deployments::rollout_and_rollback",
        "columns",
        "table",
        "body/columnDefinitions/*/description",
    ),
    (
        "deployments::scaling",
        "unset-time",
        "up to three",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "deployments::invalid",
        "order",
        "an odd strategy",
        "body/message",
    ),
    (
        "deployments::invalid",
        "order",
        "an odd strategy",
        "body/details/causes/0/message",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        rollout_and_rollback(),
        scaling(),
        pausing(),
        a_stuck_rollout(),
        scaling_in_a_rollout(),
        recreating(),
        history(),
        adoption(),
        status(),
        invalid(),
    ]
}

fn progressing<'a>(object: &'a Value, field: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == "Progressing");
    found.map_or("", |found| found[field].as_str().unwrap_or_default())
}

fn is_observed(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

fn is_rolled_out(object: &Value) -> bool {
    let status = &object["status"];
    let replicas = object["spec"]["replicas"].as_u64().unwrap_or_default();
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    is_observed(object)
        && counts
            .iter()
            .all(|count| status[count].as_u64().unwrap_or_default() == replicas)
        && status["terminatingReplicas"] == 0
        && progressing(object, "reason") == "NewReplicaSetAvailable"
}

/// All pods of all ReplicaSets are counted, and no more than specified.
fn are_settled(sets: &Value) -> bool {
    let sets = sets["items"].as_array();
    sets.into_iter().flatten().all(|set| {
        let count = |of: &Value| of.as_u64().unwrap_or_default();
        is_observed(set)
            && count(&set["spec"]["replicas"]) == count(&set["status"]["replicas"])
            && set["status"]["terminatingReplicas"] == 0
    })
}

fn rolled_out(label: &str) -> ApiRequest {
    get(WEB).until(60, is_rolled_out).called(label)
}

fn sets(label: &str) -> ApiRequest {
    get(SETS).until(30, are_settled).called(label)
}

fn set_image(image: &str) -> ApiRequest {
    let containers = json!([{ "name": "main", "image": image }]);
    merge(
        WEB,
        json!({ "spec": { "template": { "spec": { "containers": containers } } } }),
    )
    .called(image)
    .spec()
}

fn count(list: &Value) -> usize {
    list["items"].as_array().map_or(0, Vec::len)
}

fn events(label: &str) -> ApiRequest {
    get("events?fieldSelector=involvedObject.kind%3DDeployment").called(label)
}

fn rollout_and_rollback() -> RequestScript {
    let mut web = deployment("web", 2);
    web["metadata"]["annotations"] = json!({ "kubernetes.io/change-cause": "first" });
    script(
        "deployments::rollout_and_rollback",
        steps![
            post(DEPLOYMENTS, web).called("create"),
            rolled_out("created"),
            sets("one set"),
            get("pods")
                .called("pods")
                .only("/items/0/metadata/labels")
                .only("/items/0/metadata/generateName")
                .only("/items/0/metadata/ownerReferences"),
            events("first events").until(20, |list| count(list) == 1),
            set_image("registry.example/app:2"),
            rolled_out("updated"),
            sets("two sets"),
            events("all events").until(20, |list| count(list) == 5),
            merge(
                WEB,
                json!({ "metadata": { "annotations": { "kubernetes.io/change-cause": "third" } } }),
            )
            .called("annotate")
            .spec(),
            rolled_out("annotated"),
            set_image("registry.example/app:1"),
            rolled_out("rolled back"),
            sets("with a history"),
            get(DEPLOYMENTS).accept(TABLE).called("table"),
            merge(
                WEB,
                json!({ "spec": { "minReadySeconds": 1, "template": { "metadata": { "annotations": { "a": "b" } } } } }),
            )
            .called("slowly")
            .spec(),
            rolled_out("available later"),
            sets("three sets"),
            delete(WEB).called("delete").only("/status"),
            get(SETS).until(30, |list| count(list) == 0).called("no sets"),
            get("pods").until(30, |list| count(list) == 0).called("no pods"),
        ],
    )
}

fn scaling() -> RequestScript {
    script(
        "deployments::scaling",
        steps![
            post(DEPLOYMENTS, deployment("web", 1)).called("create"),
            rolled_out("created"),
            merge(
                "apps/v1:deployments/web/scale",
                json!({ "spec": { "replicas": 3 } })
            )
            .called("up")
            .only("/spec")
            .only("/kind"),
            rolled_out("up to three"),
            sets("scaled"),
            get("apps/v1:deployments/web/scale").called("scale"),
            merge(WEB, json!({ "spec": { "replicas": 0 } }))
                .called("to zero")
                .spec(),
            rolled_out("down to zero"),
            sets("empty"),
            events("events").until(20, |list| count(list) == 3),
        ],
    )
}

fn pausing() -> RequestScript {
    script(
        "deployments::pausing",
        steps![
            post(DEPLOYMENTS, deployment("web", 1)).called("create"),
            rolled_out("created"),
            merge(WEB, json!({ "spec": { "paused": true } }))
                .called("pause")
                .spec(),
            get(WEB)
                .until(20, |object| {
                    is_observed(object) && progressing(object, "reason") == "DeploymentPaused"
                })
                .called("paused"),
            set_image("registry.example/app:2"),
            merge(WEB, json!({ "spec": { "replicas": 2 } }))
                .called("scale")
                .spec(),
            get(WEB)
                .until(30, |object| {
                    is_observed(object) && object["status"]["availableReplicas"] == 2
                })
                .called("scaled"),
            sets("the old set only"),
            merge(WEB, json!({ "spec": { "paused": false } }))
                .called("resume")
                .spec(),
            rolled_out("resumed"),
            sets("two sets"),
        ],
    )
}

fn a_stuck_rollout() -> RequestScript {
    let mut web = deployment("web", 2);
    web["spec"]["progressDeadlineSeconds"] = json!(3);
    script(
        "deployments::a_stuck_rollout",
        steps![
            post(DEPLOYMENTS, web).called("create"),
            rolled_out("created"),
            merge(
                WEB,
                json!({ "spec": { "template": { "spec": { "nodeSelector": { "nowhere": "1" } } } } }),
            )
            .called("break")
            .spec(),
            get(WEB)
                .until(30, |object| {
                    progressing(object, "reason") == "ProgressDeadlineExceeded"
                })
                .called("exceeded"),
            sets("a surge"),
            json_patch(
                WEB,
                json!([{ "op": "remove", "path": "/spec/template/spec/nodeSelector" }]),
            )
            .called("undo")
            .spec(),
            rolled_out("undone"),
            sets("as before"),
        ],
    )
}

fn scaling_in_a_rollout() -> RequestScript {
    let mut web = deployment("web", 10);
    web["spec"]["strategy"]["rollingUpdate"] = json!({ "maxSurge": 3, "maxUnavailable": "20%" });
    let stuck =
        json!({ "spec": { "template": { "spec": { "nodeSelector": { "nowhere": "1" } } } } });
    script(
        "deployments::scaling_in_a_rollout",
        steps![
            post(DEPLOYMENTS, web).called("create"),
            rolled_out("created"),
            merge(WEB, stuck).called("break").spec(),
            get(WEB)
                .until(30, |object| {
                    is_observed(object)
                        && object["status"]["updatedReplicas"] == 5
                        && object["status"]["replicas"] == 13
                        && object["status"]["unavailableReplicas"] == 5
                        && object["status"]["terminatingReplicas"] == 0
                })
                .called("stuck"),
            sets("stuck sets"),
            merge(WEB, json!({ "spec": { "replicas": 15 } }))
                .called("scale")
                .spec(),
            get(WEB)
                .until(30, |object| {
                    is_observed(object)
                        && object["status"]["replicas"] == 18
                        && object["status"]["availableReplicas"] == 11
                        && object["status"]["unavailableReplicas"] == 7
                })
                .called("scaled"),
            sets("scaled sets"),
            merge(WEB, json!({ "spec": { "replicas": 5 } }))
                .called("down")
                .spec(),
            get(WEB)
                .until(30, |object| {
                    is_observed(object)
                        && object["status"]["terminatingReplicas"] == 0
                        && object["status"]["replicas"] == 8
                        && object["status"]["updatedReplicas"] == 4
                })
                .called("scaled down"),
            sets("small sets"),
        ],
    )
}

fn recreating() -> RequestScript {
    let mut web = deployment("web", 2);
    web["spec"]["strategy"] = json!({ "type": "Recreate" });
    script(
        "deployments::recreating",
        steps![
            post(DEPLOYMENTS, web).called("create"),
            rolled_out("created"),
            set_image("registry.example/app:2"),
            rolled_out("updated"),
            sets("two sets"),
            events("events").until(20, |list| count(list) == 3),
            merge(
                WEB,
                json!({ "spec": { "strategy": { "type": "RollingUpdate" } } })
            )
            .called("rolling")
            .spec(),
            merge(
                WEB,
                json!({ "spec": { "strategy": { "type": "Recreate" } } })
            )
            .called("with limits"),
        ],
    )
}

fn history() -> RequestScript {
    let mut web = deployment("web", 1);
    web["spec"]["revisionHistoryLimit"] = json!(1);
    script(
        "deployments::history",
        steps![
            post(DEPLOYMENTS, web).called("create"),
            rolled_out("first"),
            set_image("registry.example/app:2"),
            rolled_out("second"),
            set_image("registry.example/app:3"),
            rolled_out("third"),
            get(SETS)
                .until(20, |list| count(list) == 2 && are_settled(list))
                .called("two sets"),
            merge(WEB, json!({ "spec": { "revisionHistoryLimit": 0 } }))
                .called("forget")
                .spec(),
            get(SETS)
                .until(20, |list| count(list) == 1)
                .called("one set"),
        ],
    )
}

fn adoption() -> RequestScript {
    script(
        "deployments::adoption",
        steps![
            post(DEPLOYMENTS, deployment("web", 2)).called("create"),
            rolled_out("created"),
            delete_with(WEB, json!({ "propagationPolicy": "Orphan" }))
                .called("orphan")
                .only("/metadata/finalizers"),
            get(WEB)
                .until(20, |object| object["code"] == 404)
                .called("gone"),
            sets("an orphan"),
            post(DEPLOYMENTS, deployment("web", 2)).called("again"),
            rolled_out("adopted"),
            sets("an adopted set"),
            get(SETS)
                .called("its name")
                .keep("set", "/items/0/metadata/name")
                .only("/kind"),
            merge(
                "apps/v1:replicasets/${set}",
                json!({ "metadata": { "labels": { "app": "other" } } }),
            )
            .called("relabel")
            .only("/metadata/labels/app"),
            get(SETS)
                .until(20, |list| count(list) == 2)
                .called("another")
                .only("/kind"),
            rolled_out("with another set"),
            sets("released"),
        ],
    )
}

fn status() -> RequestScript {
    script(
        "deployments::status",
        steps![
            post(DEPLOYMENTS, deployment("web", 0)).called("create"),
            rolled_out("created"),
            merge(
                "apps/v1:deployments/web/status",
                json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "paused": true }, "status": { "collisionCount": 3 } }),
            )
            .called("a status")
            .only("/metadata/labels")
            .only("/metadata/generation")
            .only("/spec")
            .only("/status/collisionCount"),
            merge(
                "apps/v1:deployments/web/status",
                json!({ "status": { "collisionCount": 2 } }),
            )
            .called("fewer collisions"),
            merge(
                "apps/v1:deployments/web/status",
                json!({ "status": { "replicas": 1, "updatedReplicas": 2, "readyReplicas": -1 } }),
            )
            .called("too many"),
        ],
    )
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut web = deployment("invalid", 1);
    change(&mut web["spec"]);
    web
}

fn rolling(limits: [Value; 2]) -> Value {
    let [surge, unavailable] = limits;
    with(|spec| {
        spec["strategy"]["rollingUpdate"] =
            json!({ "maxSurge": surge, "maxUnavailable": unavailable });
    })
}

fn invalid() -> RequestScript {
    let post = |label: &str, object: Value| post(DEPLOYMENTS, object).called(label);
    let changed = |change: fn(&mut Value)| with(change);
    let mut other = deployment("web", 0);
    other["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    other["spec"]["template"]["metadata"]["labels"]["app"] = json!("other");
    script(
        "deployments::invalid",
        steps![
            post("both zero", rolling([json!(0), json!("0%")])),
            post("a negative surge", rolling([json!(-1), json!(1)])),
            post("no percentage", rolling([json!("5"), json!("x")])),
            post("more than all", rolling([json!("200%"), json!("101%")])),
            post(
                "an odd strategy",
                changed(|spec| spec["strategy"] = json!({ "type": "Odd" }))
            ),
            post(
                "recreate with limits",
                changed(|spec| spec["strategy"]["type"] = json!("Recreate"))
            ),
            post(
                "a short deadline",
                changed(|spec| {
                    spec["minReadySeconds"] = json!(5);
                    spec["progressDeadlineSeconds"] = json!(5);
                })
            ),
            post(
                "negative numbers",
                changed(|spec| {
                    for field in [
                        "replicas",
                        "minReadySeconds",
                        "revisionHistoryLimit",
                        "progressDeadlineSeconds",
                    ] {
                        spec[field] = json!(-1);
                    }
                })
            ),
            post(
                "no selector",
                changed(|spec| spec["selector"] = Value::Null)
            ),
            post(
                "another selector",
                changed(|spec| spec["selector"]["matchLabels"]["app"] = json!("x"))
            ),
            post(
                "a pod that ends",
                changed(|spec| {
                    spec["template"]["spec"]["restartPolicy"] = json!("Never");
                    spec["template"]["spec"]["activeDeadlineSeconds"] = json!(9);
                })
            ),
            post("a valid one", deployment("web", 0)).spec(),
            put(WEB, other).called("a changed selector"),
        ],
    )
}
