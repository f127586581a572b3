//! The example of two release tracks in the documentation (C10).

use serde_json::Value;

use crate::world::{BUDGETS, NAMESPACE, PODS, SETS, World, text};

const DOCUMENTATION: &str = include_str!("../../../../docs/local-replica-set.md");

/// The objects of the example.
fn example() -> Vec<Value> {
    let (_, section) = DOCUMENTATION.split_once("## Two sets").unwrap();
    let (_, yaml) = section.split_once("```yaml\n").unwrap();
    let (yaml, _) = yaml.split_once("```").unwrap();
    let documents = yaml.split("---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn c10_a_stable_and_a_canary_set_are_under_one_service() {
    let world = World::start().await;
    let objects = example();
    let mut labels = Vec::new();
    for object in &objects {
        let is_service = object["kind"] == "Service";
        if is_service {
            let selector = object["spec"]["selector"].as_object().unwrap();
            labels = selector
                .iter()
                .map(|(key, value)| format!("{key}%3D{}", text(value)))
                .collect();
        }
        let path = if is_service {
            format!("{NAMESPACE}/services")
        } else {
            SETS.to_owned()
        };
        world.create(&path, object).await;
    }
    world
        .wait_until("both are ready", 120, async |world: &World| {
            let sets = world.get(SETS).await;
            let sets = sets["items"].as_array().unwrap();
            sets.iter().all(|set| {
                set["status"]["availableReplicas"] == set["spec"]["replicas"]
                    && set["status"]["conditions"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .all(|condition| condition["type"] != "SelectorOverlap")
            })
        })
        .await;
    let selected = format!("{PODS}?labelSelector={}", labels.join(","));
    let pods = world.get(&selected).await;
    let pods = pods["items"].as_array().unwrap();
    let tracks = ["stable", "canary"].map(|track| {
        let of_track = pods
            .iter()
            .filter(|pod| pod["metadata"]["labels"]["track"] == track);
        of_track.count()
    });
    assert_eq!((pods.len(), tracks), (4, [3, 1]));
    let budgets = world.get(BUDGETS).await;
    assert_eq!(budgets["items"].as_array().unwrap().len(), 2);
}
