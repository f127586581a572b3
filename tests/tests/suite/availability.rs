//! AvailabilitySets: what they count, which evictions members grant, and what is left afterwards (A1, A2).

use control_plane::ProxyMode;
use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use crate::{
    availability,
    member_set::{IMAGE, Kind, MEMBER, MemberSet, name_of, text},
};

/// The name of the set, and the label `app` of its pods.
const NAME: &str = "spread";
const BUDGET: &str = "avset-spread";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!(availability::a1_members_grant_evictions_within_one_budget),
        scenario!(availability::m16_one_cluster_at_a_time_may_lose_pods),
        scenario!(
            availability::a1_local_replica_sets_keep_to_the_budget,
            LocalReplicaSets
        ),
        scenario!(
            availability::a1_pods_of_a_member_that_is_away_are_unreachable,
            NetworkFaults
        ),
        scenario!(availability::a1_what_can_never_be_available_is_rejected),
    ]
}

fn collection(env: &TestEnvironment) -> String {
    let namespace = env.namespace();
    format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/availabilitysets")
}

fn path(env: &TestEnvironment) -> String {
    format!("{}/{NAME}", collection(env))
}

async fn create(env: &TestEnvironment, app: &str, budget: Value) -> kube::Result<Value> {
    create_with(env, app, json!({ "budget": budget })).await
}

async fn create_with(env: &TestEnvironment, app: &str, mut spec: Value) -> kube::Result<Value> {
    spec["selector"] = json!({ "matchLabels": { "app": app } });
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "AvailabilitySet",
        "metadata": { "name": NAME }, "spec": spec,
    });
    env.on_host("POST", &collection(env), &object).await
}

async fn get(env: &TestEnvironment) -> Value {
    let found = env.on_host("GET", &path(env), &Value::Null).await;
    found.unwrap_or(Value::Null)
}

/// A condition as `STATUS REASON`; empty if it is absent.
async fn condition(env: &TestEnvironment, type_: &str) -> String {
    let object = get(env).await;
    let conditions = object["status"]["conditions"].as_array();
    let found = (conditions.into_iter().flatten()).find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |found| {
        format!("{} {}", text(&found["status"]), text(&found["reason"]))
    })
}

async fn until_condition(env: &TestEnvironment, type_: &str, expected: &str) {
    env.wait_until(&format!("{type_} is {expected}"), 90, async |env| {
        condition(env, type_).await == expected
    })
    .await;
}

async fn delete(env: &TestEnvironment) {
    env.on_host("DELETE", &path(env), &json!({})).await.unwrap();
    env.wait_until("the AvailabilitySet is gone", 60, async |env| {
        get(env).await.is_null()
    })
    .await;
}

/// A ReplicaSet in a member.
async fn run(env: &TestEnvironment, member: &str, replicas: usize) {
    let labels = json!({ "app": NAME });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": NAME },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": IMAGE }] },
            },
        },
    });
    let path = format!("/apis/apps/v1/namespaces/{}/replicasets", env.namespace());
    env.on_member(member, "POST", &path, &set).await.unwrap();
}

async fn remove(env: &TestEnvironment, member: &str) {
    let namespace = env.namespace();
    let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{NAME}");
    let options = json!({ "propagationPolicy": "Background" });
    env.on_member(member, "DELETE", &path, &options)
        .await
        .unwrap();
    env.wait_until("its pods are gone", 60, async |env| {
        pods(env, member).await.is_empty()
    })
    .await;
}

async fn pods(env: &TestEnvironment, member: &str) -> Vec<Value> {
    let path = format!("/api/v1/namespaces/{}/pods", env.namespace());
    let listed = env.on_member(member, "GET", &path, &Value::Null).await;
    let pods = listed.unwrap()["items"].as_array().cloned();
    pods.unwrap_or_default()
}

/// What the PodDisruptionBudget in a member lends; null if there is none.
async fn lent(env: &TestEnvironment, member: &str) -> Value {
    let namespace = env.namespace();
    let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{BUDGET}");
    let found = env.on_member(member, "GET", &path, &Value::Null).await;
    found.map_or(Value::Null, |found| found["spec"]["maxUnavailable"].clone())
}

/// The code of an eviction of a pod in a member.
async fn evict(env: &TestEnvironment, member: &str, pod: &str) -> u16 {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod },
    });
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", env.namespace());
    match env.on_member(member, "POST", &path, &eviction).await {
        Ok(_) => 201,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

async fn a1_members_grant_evictions_within_one_budget(env: &mut TestEnvironment) {
    let members = env.member_names();
    for member in &members {
        run(env, member, 2).await;
    }
    create(env, NAME, json!(1)).await.unwrap();
    until_condition(env, "Available", "True WithinBudget").await;
    env.wait_until("the budget is lent to one member", 90, async |env| {
        let mut all = 0;
        for member in &members {
            let Some(lent) = lent(env, member).await.as_u64() else {
                return false;
            };
            all += lent;
        }
        assert!(all <= 1, "{all}");
        all == 1 && get(env).await["status"]["pods"] == members.len() * 2
    })
    .await;
    let status = get(env).await["status"].clone();
    assert_eq!(status["budgetLeft"], 1, "{status}");
    let domains = status["domains"].as_array().unwrap();
    let cluster = domains.iter().find(|domain| domain["type"] == "Cluster");
    assert_eq!(cluster.unwrap()["breakingTotal"], members.len(), "{status}");
    // Where nothing is lent, nothing is evicted.
    let mut other = String::new();
    for member in &members {
        if lent(env, member).await == 0 {
            other.clone_from(member);
        }
    }
    let pod = pods(env, &other).await[0].clone();
    assert_eq!(evict(env, &other, &name_of(&pod)).await, 429);
    // The budget goes where pods have to leave.
    let node = format!("/api/v1/nodes/{}", text(&pod["spec"]["nodeName"]));
    let cordon = |is: Value| json!({ "spec": { "unschedulable": is } });
    env.on_member(&other, "PATCH", &node, &cordon(true.into()))
        .await
        .unwrap();
    env.wait_until("the pod is evicted", 90, async |env| {
        evict(env, &other, &name_of(&pod)).await == 201
    })
    .await;
    env.on_member(&other, "PATCH", &node, &cordon(Value::Null))
        .await
        .unwrap();
    delete(env).await;
    for member in &members {
        assert_eq!(lent(env, member).await, Value::Null);
        remove(env, member).await;
    }
}

/// The whole budget is in one member, and what is left of it does no other one any good.
async fn m16_one_cluster_at_a_time_may_lose_pods(env: &mut TestEnvironment) {
    let members = env.member_names();
    for member in &members {
        run(env, member, 2).await;
    }
    let spec = json!({ "budget": 2, "oneClusterAtATime": true });
    create_with(env, NAME, spec).await.unwrap();
    until_condition(env, "Available", "True WithinBudget").await;
    let holders = async |env: &TestEnvironment| {
        let mut holders = Vec::new();
        for member in &members {
            match lent(env, member).await.as_u64() {
                None => return Vec::new(),
                Some(0) => {}
                Some(pods) => holders.push((member.clone(), pods)),
            }
        }
        holders
    };
    env.wait_until("one member has the whole budget", 90, async |env| {
        matches!(&holders(env).await[..], [(_, 2)])
    })
    .await;
    let (first, _) = holders(env).await.remove(0);
    let other = members.iter().find(|member| **member != first).unwrap();
    let pod = pods(env, other).await[0].clone();
    assert_eq!(evict(env, other, &name_of(&pod)).await, 429);
    // The turn passes on.
    let node = format!("/api/v1/nodes/{}", text(&pod["spec"]["nodeName"]));
    let cordon = |is: Value| json!({ "spec": { "unschedulable": is } });
    env.on_member(other, "PATCH", &node, &cordon(true.into()))
        .await
        .unwrap();
    env.wait_until("the pod is evicted", 90, async |env| {
        evict(env, other, &name_of(&pod)).await == 201
    })
    .await;
    assert_eq!(lent(env, &first).await, 0);
    env.on_member(other, "PATCH", &node, &cordon(Value::Null))
        .await
        .unwrap();
    delete(env).await;
    for member in &members {
        remove(env, member).await;
    }
}

async fn a1_local_replica_sets_keep_to_the_budget(env: &mut TestEnvironment) {
    env.start_local_controller(MEMBER).await;
    let set = MemberSet {
        env,
        kind: Kind::Local,
    };
    set.run(4).await;
    create(env, set.name(), json!(1)).await.unwrap();
    until_condition(env, "Available", "True WithinBudget").await;
    env.wait_until("the set has the budget", 90, async |env| {
        let status = get(env).await["status"].clone();
        let set = set.get().await;
        set["status"]["limits"][0]["maxUnavailable"] == 1
            && status["clusters"][0]["loans"][0]["maxUnavailable"] == 1
    })
    .await;
    assert_eq!(lent(env, MEMBER).await, Value::Null);
    // A set that can't be available lends nothing.
    let more = json!({ "spec": { "budget": 2 } });
    env.on_host("PATCH", &path(env), &more).await.unwrap();
    set.scale(2).await;
    until_condition(env, "Satisfiable", "False TooFewPods").await;
    set.until("nothing may be unavailable", async || {
        set.get().await["status"]["maxUnavailable"] == 0
    })
    .await;
    delete(env).await;
    let annotations = set.get().await["metadata"]["annotations"].clone();
    assert_eq!(annotations["availability.fedrs.dev/spread"], Value::Null);
    set.remove().await;
}

async fn a1_pods_of_a_member_that_is_away_are_unreachable(env: &mut TestEnvironment) {
    for member in ["a", "b"] {
        run(env, member, 2).await;
    }
    create(env, NAME, json!(1)).await.unwrap();
    until_condition(env, "Available", "True WithinBudget").await;
    env.wait_until("all pods are seen", 60, async |env| {
        get(env).await["status"]["available"] == 4
    })
    .await;
    env.set_network("b", ProxyMode::Blackhole);
    until_condition(env, "Available", "False BudgetExceeded").await;
    until_condition(env, "MembersReachable", "False MembersUnreachable").await;
    assert_eq!(get(env).await["status"]["unreachable"], 2);
    env.wait_until("nothing is lent to others", 60, async |env| {
        lent(env, "a").await == 0
    })
    .await;
    env.set_network("b", ProxyMode::Forward(std::time::Duration::ZERO));
    until_condition(env, "Available", "True WithinBudget").await;
    delete(env).await;
    for member in ["a", "b"] {
        remove(env, member).await;
    }
}

async fn a1_what_can_never_be_available_is_rejected(env: &mut TestEnvironment) {
    for (app, budget, part) in [
        ("x", json!(0), "spec.budget"),
        ("x", json!("0%"), "spec.budget"),
        ("x", json!("101%"), "spec.budget"),
        ("x", json!(-1), "spec.budget"),
    ] {
        let error = create(env, app, budget).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let empty = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "AvailabilitySet",
        "metadata": { "name": NAME }, "spec": { "selector": {}, "budget": 1 },
    });
    let error = env.on_host("POST", &collection(env), &empty).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("spec.selector"), "{error}");
    create(env, NAME, json!("3%")).await.unwrap();
    until_condition(env, "Satisfiable", "False TooFewPods").await;
    until_condition(env, "Available", "False NotSatisfiable").await;
    let key = json!({ "spec": { "domainLabels": { "rack": "a b" } } });
    env.on_host("PATCH", &path(env), &key).await.unwrap();
    until_condition(env, "Accepted", "False InvalidSpec").await;
    delete(env).await;
}
