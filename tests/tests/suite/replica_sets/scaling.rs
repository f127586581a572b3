//! The number of pods (C1, C8), and the template of new ones (C4).

use std::collections::BTreeSet;

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use super::compare;
use crate::member_set::{MEMBER, MemberSet, is_live, name_of, owner, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    use super::scaling;
    vec![
        scenario!(scaling::c1_pods_are_created_and_removed, LocalReplicaSets),
        scenario!(scaling::c1_a_deleted_pod_is_replaced, LocalReplicaSets),
        scenario!(
            scaling::c1_a_pod_that_is_being_removed_is_replaced_at_once,
            LocalReplicaSets,
            Embedded
        ),
        scenario!(
            scaling::c8_terminated_pods_are_replaced_and_stay,
            LocalReplicaSets
        ),
        scenario!(
            scaling::c4_a_change_of_the_template_touches_no_pod,
            LocalReplicaSets
        ),
        scenario!(
            scaling::c1_a_quota_rejects_pods_until_it_is_lifted,
            LocalReplicaSets
        ),
    ]
}

fn names(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(name_of).collect()
}

async fn c1_pods_are_created_and_removed(env: &mut TestEnvironment) {
    let expected = [
        "3 pods, named after the set: true, labels of the template: true, controlled, and block its deletion: true",
        "5 pods, 3 of them as before",
        "2 pods, 2 of them as before",
        "0 pods, 0 of them as before",
        "4 pods, 0 of them as before",
    ];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.run(3).await;
        let pods = set.pods().await;
        let all = |holds: &dyn Fn(&Value) -> bool| pods.iter().all(holds);
        let prefix = format!("{}-", set.name());
        let labels = |pod: &Value| {
            let labels = &pod["metadata"]["labels"];
            labels["app"] == set.name() && labels["tier"] == "front"
        };
        let mut seen = vec![format!(
            "{} pods, named after the set: {}, labels of the template: {}, controlled, and block its deletion: {}",
            pods.len(),
            all(&|pod| name_of(pod).starts_with(&prefix)),
            all(&labels),
            all(&|pod| owner(pod)["blockOwnerDeletion"] == true),
        )];
        let mut before = pods;
        for replicas in [5, 2, 0, 4] {
            set.scale(replicas).await;
            set.settle(replicas).await;
            let pods = set.owned().await;
            let uids: BTreeSet<_> = before.iter().map(uid).collect();
            let kept = pods.iter().filter(|pod| uids.contains(&uid(pod))).count();
            seen.push(format!("{} pods, {kept} of them as before", pods.len()));
            before = pods;
        }
        seen
    })
    .await;
}

fn uid(pod: &Value) -> String {
    text(&pod["metadata"]["uid"]).to_owned()
}

async fn c1_a_deleted_pod_is_replaced(env: &mut TestEnvironment) {
    let expected = ["3 pods, 2 of them as before"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.run(3).await;
        let before: BTreeSet<_> = set.owned().await.iter().map(uid).collect();
        let pods = set.owned().await;
        set.delete_pod(&name_of(&pods[0])).await;
        set.until("it is gone", async || {
            !set.owned()
                .await
                .iter()
                .map(uid)
                .any(|found| found == uid(&pods[0]))
        })
        .await;
        set.settle(3).await;
        let pods = set.owned().await;
        let kept = pods.iter().filter(|pod| before.contains(&uid(pod))).count();
        vec![format!("{} pods, {kept} of them as before", pods.len())]
    })
    .await;
}

/// kwok removes finalizers of pods: none takes time to be removed.
async fn c1_a_pod_that_is_being_removed_is_replaced_at_once(env: &mut TestEnvironment) {
    let expected = ["3 live pods, and 1 that is being removed", "replicas: 3"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.run(3).await;
        let name = name_of(&set.owned().await[0]);
        let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
        set.patch_pod(&name, &held).await;
        set.delete_pod(&name).await;
        set.settle(3).await;
        let pods = set.pods().await;
        let live = pods.iter().filter(|pod| is_live(pod)).count();
        let seen = vec![
            format!(
                "{live} live pods, and {} that is being removed",
                pods.len() - live
            ),
            format!("replicas: {}", set.count("replicas").await),
        ];
        let free = json!({ "metadata": { "finalizers": null } });
        set.patch_pod(&name, &free).await;
        seen
    })
    .await;
}

async fn c8_terminated_pods_are_replaced_and_stay(env: &mut TestEnvironment) {
    let expected = ["Failed: 4 pods", "Succeeded: 5 pods", "replicas: 3"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.run(3).await;
        let mut seen = Vec::new();
        for phase in ["Failed", "Succeeded"] {
            let owned = set.owned().await;
            let name = name_of(owned.iter().find(|pod| is_live(pod)).unwrap());
            set.patch_pod_status(&name, &json!({ "phase": phase }))
                .await;
            set.until("it has terminated", async || {
                !is_live(&set.pod(&name).await)
            })
            .await;
            set.settle(3).await;
            seen.push(format!("{phase}: {} pods", set.pods().await.len()));
        }
        seen.push(format!("replicas: {}", set.count("replicas").await));
        seen
    })
    .await;
}

async fn c4_a_change_of_the_template_touches_no_pod(env: &mut TestEnvironment) {
    let expected = ["1 1 2", "3 pods, 2 of them as before"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.run(2).await;
        let before = names(&set.owned().await);
        let container = json!({ "name": "main", "image": "registry.example/main:2" });
        let template = json!({ "spec": { "containers": [container] } });
        set.patch(&json!({ "spec": { "template": template } }))
            .await;
        set.settle(2).await;
        set.scale(3).await;
        set.settle(3).await;
        let pods = set.owned().await;
        let images = pods.iter().map(|pod| {
            let image = text(&pod["spec"]["containers"][0]["image"]);
            image.rsplit(':').next().unwrap_or_default()
        });
        let mut images: Vec<_> = images.collect();
        images.sort_unstable();
        let kept = names(&pods).intersection(&before).count();
        vec![
            images.join(" "),
            format!("{} pods, {kept} of them as before", pods.len()),
        ]
    })
    .await;
}

async fn c1_a_quota_rejects_pods_until_it_is_lifted(env: &mut TestEnvironment) {
    let expected = [
        "replicas: 2, ReplicaFailure: True FailedCreate",
        "replicas: 4, ReplicaFailure: none",
    ];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.env.set_quota(MEMBER, "pods", 2).await;
        set.create(4, json!({})).await;
        set.until("the rejection is reported", async || {
            set.count("availableReplicas").await == 2
                && set.condition("ReplicaFailure").await != "none"
        })
        .await;
        let line = async || {
            let replicas = set.count("replicas").await;
            let failure = set.condition("ReplicaFailure").await;
            format!("replicas: {replicas}, ReplicaFailure: {failure}")
        };
        let mut seen = vec![line().await];
        set.env.remove_quota(MEMBER).await;
        set.settle(4).await;
        set.until("the rejection is over", async || {
            set.condition("ReplicaFailure").await == "none"
        })
        .await;
        seen.push(line().await);
        seen
    })
    .await;
}
