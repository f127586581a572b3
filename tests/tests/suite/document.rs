//! The scenarios of the requirements document, from cases/seed-scenarios.json.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_tests::{
    frs,
    scenario::Scenario,
    test_environment::{TestEnvironment, TestEnvironmentSpec},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The names of the members; those of the document's clusters are capital letters, which names of members can't be.
const MEMBERS: [&str; 3] = ["a", "b", "c"];

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    replicas: u32,
    preferences: Value,
    clusters: Vec<String>,
    current: BTreeMap<String, u64>,
    capacity: BTreeMap<String, u64>,
    layout: BTreeMap<String, u64>,
    #[serde(default)]
    unplaced: u64,
    #[serde(default)]
    ties: Vec<Vec<String>>,
}

/// One scenario per case.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let file: File =
        serde_json::from_str(include_str!("../../../cases/seed-scenarios.json")).unwrap();
    file.cases
        .into_iter()
        .map(|case| scenario(Arc::new(case)))
        .collect()
}

fn scenario(case: Arc<Case>) -> Scenario {
    let known = MEMBERS
        .iter()
        .filter(|member| case.clusters.contains(&member.to_uppercase()));
    let spec = TestEnvironmentSpec {
        members: known.copied().collect(),
        ..TestEnvironmentSpec::default()
    };
    Scenario {
        name: format!("document::{}", case.name.replace(' ', "_")),
        requires: Vec::new(),
        spec,
        run: Arc::new(move |env| {
            let case = Arc::clone(&case);
            Box::pin(async move { play(&case, env).await })
        }),
    }
}

async fn play(case: &Case, env: &mut TestEnvironment) {
    for (cluster, capacity) in &case.capacity {
        env.set_quota(&cluster.to_lowercase(), "pods", *capacity)
            .await;
    }
    let placement = lowercase(&case.preferences);
    let there: u64 = case.current.values().sum();
    if there == 0 {
        env.create(&frs("web", case.replicas, &placement)).await;
    } else {
        // The initial replicas are placed by name.
        let named = case.current.iter();
        let named: BTreeMap<_, _> = named
            .map(|(cluster, n)| {
                (
                    cluster.to_lowercase(),
                    json!({ "minReplicas": n, "maxReplicas": n }),
                )
            })
            .collect();
        let first = json!({ "clusters": named });
        env.run(&frs("web", u32::try_from(there).unwrap(), &first))
            .await;
        let forget: BTreeMap<_, _> = named.keys().map(|name| (name, Value::Null)).collect();
        let mut all = json!({ "clusters": forget });
        merge(&mut all, &placement);
        let patch = json!({ "spec": { "replicas": case.replicas, "placement": all } });
        env.patch("web", &patch).await;
    }
    let expected = comparable(&case.layout, &case.ties);
    env.wait_until("the expected layout is available", 90, async |env| {
        let unplaced = &env.frs("web").await["status"]["unplacedReplicas"];
        comparable(&running(env).await, &case.ties) == expected && *unplaced == case.unplaced
    })
    .await;
}

/// The available replicas by the document's names of the clusters.
async fn running(env: &TestEnvironment) -> BTreeMap<String, u64> {
    let sets = env.sets("web").await.into_iter();
    sets.map(|(member, set)| (member.to_uppercase(), set.available))
        .collect()
}

/// A layout without zeros, which treats tied clusters as interchangeable.
fn comparable(layout: &BTreeMap<String, u64>, ties: &[Vec<String>]) -> BTreeMap<String, Vec<u64>> {
    let mut groups = BTreeMap::<String, Vec<u64>>::new();
    for (cluster, n) in layout.iter().filter(|(_, n)| **n > 0) {
        let tied = ties.iter().find(|tied| tied.contains(cluster));
        let group = tied.map_or(cluster.clone(), |tied| tied.join(","));
        groups.entry(group).or_default().push(*n);
    }
    for group in groups.values_mut() {
        group.sort_unstable();
    }
    groups
}

fn lowercase(preferences: &Value) -> Value {
    let mut preferences = preferences.clone();
    if let Some(clusters) = preferences["clusters"].as_object_mut() {
        *clusters = std::mem::take(clusters)
            .into_iter()
            .map(|(name, placement)| (name.to_lowercase(), placement))
            .collect();
    }
    preferences
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
