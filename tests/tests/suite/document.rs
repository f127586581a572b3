//! The document's own scenarios, as cases/seed-scenarios.json has them.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_tests::{
    frs,
    scenario::Scenario,
    stage::{Stage, StageSpec},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The names of the document's clusters are capital letters; those of members can't be.
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
        .filter(|it| case.clusters.contains(&it.to_uppercase()));
    let spec = StageSpec {
        members: known.copied().collect(),
        ..StageSpec::default()
    };
    Scenario {
        name: format!("document::{}", case.name.replace(' ', "_")),
        needs: Vec::new(),
        spec,
        run: Arc::new(move |stage| {
            let case = Arc::clone(&case);
            Box::pin(async move { play(&case, stage).await })
        }),
    }
}

async fn play(case: &Case, stage: &mut Stage) {
    for (cluster, room) in &case.capacity {
        stage.limit(&cluster.to_lowercase(), "pods", *room).await;
    }
    let placement = lowercase(&case.preferences);
    let there: u64 = case.current.values().sum();
    if there == 0 {
        stage.create(&frs("web", case.replicas, &placement)).await;
    } else {
        // What is there at first was asked for by name.
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
        stage
            .run(&frs("web", u32::try_from(there).unwrap(), &first))
            .await;
        let forget: BTreeMap<_, _> = named.keys().map(|name| (name, Value::Null)).collect();
        let mut all = json!({ "clusters": forget });
        merge(&mut all, &placement);
        let patch = json!({ "spec": { "replicas": case.replicas, "placement": all } });
        stage.patch("web", &patch).await;
    }
    let expected = comparable(&case.layout, &case.ties);
    stage
        .wait_until("the document's layout runs", 90, async |it| {
            let unplaced = &it.frs("web").await["status"]["unplacedReplicas"];
            comparable(&running(it).await, &case.ties) == expected && *unplaced == case.unplaced
        })
        .await;
}

/// Available replicas by the document's name of each cluster that has, or should have, any.
async fn running(stage: &Stage) -> BTreeMap<String, u64> {
    let sets = stage.sets("web").await.into_iter();
    sets.map(|(member, set)| (member.to_uppercase(), set.available))
        .collect()
}

/// A layout without zeros, up to which of the tied clusters got what.
fn comparable(layout: &BTreeMap<String, u64>, ties: &[Vec<String>]) -> BTreeMap<String, Vec<u64>> {
    let mut groups = BTreeMap::<String, Vec<u64>>::new();
    for (cluster, n) in layout.iter().filter(|(_, n)| **n > 0) {
        let tied = ties.iter().find(|it| it.contains(cluster));
        let group = tied.map_or(cluster.clone(), |it| it.join(","));
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
            .map(|(name, it)| (name.to_lowercase(), it))
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
