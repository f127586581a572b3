//! Which pods belong to a set (C1, C5, C6).

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::json;

use super::compare;
use crate::member_set::{MemberSet, name_of, owner, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    use super::ownership;
    vec![
        scenario!(
            ownership::c1_pods_that_match_and_belong_to_nobody_are_adopted,
            LocalReplicaSets
        ),
        scenario!(
            ownership::c1_surplus_pods_are_adopted_before_they_are_removed,
            LocalReplicaSets
        ),
        scenario!(
            ownership::c6_a_pod_that_no_longer_matches_is_released_and_replaced,
            LocalReplicaSets
        ),
    ]
}

async fn c1_pods_that_match_and_belong_to_nobody_are_adopted(env: &mut TestEnvironment) {
    let expected = [
        "labels-more: adopted true",
        "labels-other: adopted false",
        "orphan: adopted true",
        "owned: adopted false",
        "3 pods of the set",
    ];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        let namespace = set.env.namespace();
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        let map = json!({ "metadata": { "name": set.name() } });
        let map = set.request("POST", &maps, &map).await;
        let of_another = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": set.name(),
            "uid": map["metadata"]["uid"], "controller": true,
        }]);
        for (name, metadata) in [
            ("labels-more", json!({ "labels": { "more": "true" } })),
            ("labels-other", json!({ "labels": { "app": "other" } })),
            ("orphan", json!({})),
            ("owned", json!({ "ownerReferences": of_another })),
        ] {
            set.create_pod(name, json!({ "metadata": metadata })).await;
        }
        set.run(3).await;
        let uid = set.get().await["metadata"]["uid"].clone();
        let mut seen = Vec::new();
        for name in ["labels-more", "labels-other", "orphan", "owned"] {
            let is_adopted = owner(&set.pod(name).await)["uid"] == uid;
            seen.push(format!("{name}: adopted {is_adopted}"));
        }
        seen.push(format!("{} pods of the set", set.owned().await.len()));
        seen
    })
    .await;
}

async fn c1_surplus_pods_are_adopted_before_they_are_removed(env: &mut TestEnvironment) {
    let expected = ["2 pods in all, 2 of the set", "the set's own creations: 0"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        for name in ["one", "two", "three", "four"] {
            set.create_pod(name, json!({})).await;
        }
        set.run(2).await;
        set.until("the others are gone", async || set.pods().await.len() == 2)
            .await;
        let owned = set.owned().await;
        let created = owned
            .iter()
            .filter(|pod| name_of(pod).starts_with(set.name()));
        vec![
            format!(
                "{} pods in all, {} of the set",
                set.pods().await.len(),
                owned.len()
            ),
            format!("the set's own creations: {}", created.count()),
        ]
    })
    .await;
}

async fn c6_a_pod_that_no_longer_matches_is_released_and_replaced(env: &mut TestEnvironment) {
    let expected = [
        "owner of the released one: ",
        "4 pods in all, 3 of the set",
        "3 pods in all after it matches again, 3 of the set",
    ];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.run(3).await;
        let name = name_of(&set.owned().await[0]);
        let labels = json!({ "metadata": { "labels": { "app": "other" } } });
        set.patch_pod(&name, &labels).await;
        set.until("it is released", async || {
            owner(&set.pod(&name).await).is_null()
        })
        .await;
        set.settle(3).await;
        let released = set.pod(&name).await;
        let mut seen = vec![
            format!(
                "owner of the released one: {}",
                text(&owner(&released)["name"])
            ),
            format!(
                "{} pods in all, {} of the set",
                set.pods().await.len(),
                set.owned().await.len()
            ),
        ];
        let labels = json!({ "metadata": { "labels": { "app": set.name() } } });
        set.patch_pod(&name, &labels).await;
        set.until("one is removed", async || set.pods().await.len() == 3)
            .await;
        set.settle(3).await;
        seen.push(format!(
            "{} pods in all after it matches again, {} of the set",
            set.pods().await.len(),
            set.owned().await.len()
        ));
        seen
    })
    .await;
}
