//! Notifications of migrations (M8).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    migrations::{POLICIES, REQUESTS, phase, policy, reaches, request, status},
    test_webhook::Answer,
    world::{NAMESPACE, World, seconds, text},
};

/// A policy that names the webhook.
fn notifying(spec: &Value) -> Value {
    let mut object = policy(spec);
    object["spec"]["notify"] = json!({ "webhook": "https://tickets.example.com/hooks/SECRET" });
    object
}

async fn cordon_and_move(world: &World, name: &str) -> String {
    let pod = world.pods().await.remove(0);
    let node = format!("/api/v1/nodes/{}", pod.node);
    let cordon = json!({ "spec": { "unschedulable": true } });
    world.patch(&node, &cordon).await;
    world.create(REQUESTS, &request(name, &pod.name)).await;
    pod.name
}

async fn is_told(world: &World, types: &[&str]) {
    let what = format!("the webhook has {types:?}");
    world
        .wait_until(&what, 200, async |world: &World| {
            world.webhook.types() == types
        })
        .await;
}

async fn is_closed(world: &World, name: &str) {
    world
        .wait_until("the ticket is closed", 200, async |world: &World| {
            !status(world, name).await["notified"]["closed"].is_null()
        })
        .await;
}

/// A set whose policy waits for a person, with a pod of a lost node. Returns the request.
async fn with_lost_pod() -> (World, String) {
    let spec = json!({ "nodeTimeoutSeconds": 120, "removalTimeoutSeconds": 3000 });
    let world = World::running(3, &spec).await;
    let shutdown = json!({ "timeoutSeconds": 600, "onTimeout": "HandsUp" });
    let mut spec = notifying(&json!({ "shutdown": shutdown }));
    spec["spec"]["notify"]["remindSeconds"] = 7200.into();
    world.create(POLICIES, &spec).await;
    seconds(30).await;
    let lost = world.pods().await.remove(0);
    world.cluster.fail_node(&lost.node);
    let name = async |world: &World| {
        let requests = world.get(REQUESTS).await;
        let first = &requests["items"][0];
        text(&first["metadata"]["name"])
    };
    world
        .wait_until("a person is asked", 1200, async |world: &World| {
            let name = name(world).await;
            !name.is_empty() && phase(world, &name).await == "HandsUp"
        })
        .await;
    let name = name(&world).await;
    (world, name)
}

#[tokio::test(start_paused = true)]
async fn m8_a_ticket_is_opened_and_closed_for_each_request() {
    let mut world = World::running(3, &json!({})).await;
    world.create(POLICIES, &notifying(&json!({}))).await;
    let pod = cordon_and_move(&world, "one").await;
    is_told(&world, &["opened", "closed"]).await;
    is_closed(&world, "one").await;
    let object = world.get(&format!("{REQUESTS}/one")).await;
    let uid = text(&object["metadata"]["uid"]);
    let kept = world.webhook.kept();
    for (event, kind) in kept.iter().zip(["opened", "closed"]) {
        for (field, expected) in [
            ("specversion", "1.0"),
            ("id", &*format!("{uid}.{kind}")),
            ("source", "/fedrs.dev/replica-set-controller/test"),
            ("subject", "shop/one"),
        ] {
            assert_eq!(event[field], expected, "{field}");
        }
        for (field, expected) in [
            ("cluster", "test"),
            ("namespace", "shop"),
            ("name", "one"),
            ("pod", &*pod),
            ("replicaSet", "web"),
            ("node", &*text(&object["status"]["node"])),
            ("cause", "Person"),
            ("reason", "the disk makes noises"),
            ("needs", "Nothing"),
        ] {
            assert_eq!(event["data"][field], expected, "{field}");
        }
    }
    assert_eq!(kept[1]["data"]["phase"], "Done");
    assert_eq!(kept[1]["data"]["newPod"], *pod);
    // Neither time nor another leader sends it again.
    world.stop_controller().await;
    world.start_controller();
    seconds(3 * 3600).await;
    assert_eq!(world.webhook.attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn m8_a_person_is_reminded_until_the_confirmation() {
    let (mut world, name) = with_lost_pod().await;
    // Once when the pod had to leave its node, and at once when a person is needed.
    is_told(&world, &["opened", "reminder"]).await;
    let reminder = &world.webhook.kept()[1];
    assert_eq!(reminder["data"]["needs"], "ConfirmDestroyed");
    assert_eq!(reminder["data"]["reminder"], 1);
    seconds(3600).await;
    world.stop_controller().await;
    world.start_controller();
    seconds(3000).await;
    assert_eq!(world.webhook.types().len(), 2, "not before its time");
    seconds(700).await;
    is_told(&world, &["opened", "reminder", "reminder"]).await;
    seconds(7200 + 60).await;
    is_told(&world, &["opened", "reminder", "reminder", "reminder"]).await;
    let ids: BTreeSet<_> = (world.webhook.kept().iter())
        .map(|event| text(&event["id"]))
        .collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    let confirmation = json!({ "confirmedBy": "jane", "machineIsDestroyed": true });
    let patch = json!({ "spec": { "confirmation": confirmation } });
    world.patch(&format!("{REQUESTS}/{name}"), &patch).await;
    reaches(&world, &name, "Done").await;
    is_closed(&world, &name).await;
    assert_eq!(world.webhook.types().len(), 5);
    assert_eq!(world.webhook.types().last().unwrap(), "closed");
}

#[tokio::test(start_paused = true)]
async fn m8_migrations_go_on_while_the_webhook_is_away_and_nothing_is_lost() {
    for away in [Answer::Refused(503), Answer::Refused(422), Answer::Lost] {
        let world = World::running(3, &json!({})).await;
        let policy = notifying(&json!({ "minSecondsBetween": { "hardware": 0 } }));
        world.create(POLICIES, &policy).await;
        world.webhook.answer(away);
        cordon_and_move(&world, "one").await;
        let two = world.pods().await.remove(1);
        world.create(REQUESTS, &request("two", &two.name)).await;
        reaches(&world, "one", "Done").await;
        reaches(&world, "two", "Done").await;
        // It has ended long ago when the webhook is back.
        seconds(2 * 3600 - 600).await;
        let expected = match away {
            Answer::Refused(status) => {
                format!("webhook tickets.example.com:443: HTTP status {status}")
            }
            _ => "webhook tickets.example.com:443: no answer within 10s".to_owned(),
        };
        // One is tried, and the other one waits with it.
        let mut failures = Vec::new();
        for name in ["one", "two"] {
            failures.push(text(&status(&world, name).await["notified"]["failure"]));
        }
        assert!(failures.contains(&expected), "{failures:?}");
        assert!(!failures.contains(&String::new()), "{failures:?}");
        let events = world.get(&format!("{NAMESPACE}/events")).await;
        let events = events["items"].as_array().unwrap().iter();
        let failed: Vec<_> = events
            .filter(|event| event["reason"] == "FailedNotification")
            .collect();
        assert!(!failed.is_empty());
        assert_eq!(failed[0]["involvedObject"]["kind"], "MigrationRequest");
        let attempts = world.webhook.attempts();
        assert!((50..400).contains(&attempts), "{attempts} attempts");
        let shown = format!("{failed:?} {}", status(&world, "one").await);
        assert!(!shown.contains("SECRET"), "{shown}");
        world.webhook.answer(Answer::Taken);
        for name in ["one", "two"] {
            is_closed(&world, name).await;
            let mut kept = world.webhook.kept();
            kept.retain(|event| event["data"]["name"] == name);
            kept.dedup_by(|a, b| a["id"] == b["id"]);
            let types: Vec<_> = kept.iter().map(|event| text(&event["type"])).collect();
            let expected = ["dev.fedrs.migration.opened", "dev.fedrs.migration.closed"];
            assert_eq!(types, expected, "{away:?} {name}");
        }
        let notified = status(&world, "one").await["notified"].clone();
        assert_eq!(notified["failure"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn m8_a_ticket_is_closed_if_its_request_is_deleted() {
    let (world, name) = with_lost_pod().await;
    is_told(&world, &["opened", "reminder"]).await;
    let path = format!("{REQUESTS}/{name}");
    let uid = text(&world.get(&path).await["metadata"]["uid"]);
    // Otherwise another one is made for the pod at once, which has a ticket of its own.
    let policies = world.get(POLICIES).await;
    let policy = text(&policies["items"][0]["metadata"]["name"]);
    world
        .delete(&format!("{POLICIES}/{policy}"), &json!({}))
        .await;
    world.delete(&path, &json!({})).await;
    is_told(&world, &["opened", "reminder", "closed"]).await;
    let closed = &world.webhook.kept()[2];
    assert_eq!(closed["id"], format!("{uid}.closed"));
    assert_eq!(
        closed["data"]["message"],
        "the MigrationRequest was deleted"
    );
}

#[tokio::test(start_paused = true)]
async fn m8_a_policy_that_gets_a_webhook_opens_no_tickets_of_its_history() {
    let world = World::running(3, &json!({})).await;
    world.create(POLICIES, &policy(&json!({}))).await;
    cordon_and_move(&world, "one").await;
    reaches(&world, "one", "Done").await;
    seconds(3700).await;
    let notify = notifying(&json!({}))["spec"].clone();
    let policy = format!("{POLICIES}/all");
    world.patch(&policy, &json!({ "spec": notify })).await;
    seconds(600).await;
    assert_eq!(world.webhook.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn m8_hands_up_without_a_webhook_is_a_condition() {
    let world = World::running(3, &json!({})).await;
    let shutdown = json!({ "shutdown": { "onTimeout": "HandsUp" } });
    world.create(POLICIES, &policy(&shutdown)).await;
    let policy = format!("{POLICIES}/all");
    for (webhook, expected) in [
        (None, "True NoWebhook"),
        (
            Some("https://elsewhere.example.com/"),
            "True WebhookNotAllowed",
        ),
        (Some("https://tickets.example.com/"), ""),
    ] {
        let notify = webhook.map(|webhook| json!({ "webhook": webhook }));
        let patch = json!({ "spec": { "notify": notify } });
        world.patch(&policy, &patch).await;
        seconds(5).await;
        let condition = world.condition("NotificationsMissing").await;
        assert_eq!(condition, expected, "{webhook:?}");
        assert!(world.condition("Ready").await.starts_with("True"));
    }
}
