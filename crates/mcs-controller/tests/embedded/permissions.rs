//! The rules of the manifests are those that the controller needs: it works with them, and uses each.

use std::collections::BTreeSet;

use mcs_controller::rbac;

use crate::world::{EXPORT, IMPORT, SLICES, Sent, World};

/// A verb, a group, and a resource with its subresource.
type Permission = (String, String, String);

/// The permission that a request needs.
fn needed((_, method, uri, _): &Sent) -> Permission {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, rest) = match parts[0] {
        "api" => ("", &parts[2..]),
        _ => (parts[1], &parts[3..]),
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let resource = match rest {
        [resource, _, subresource] => format!("{resource}/{subresource}"),
        [resource, ..] => (*resource).to_owned(),
        [] => panic!("{uri}"),
    };
    let is_collection = rest.len() == 1;
    let verb = match (&**method, is_collection) {
        ("GET", true) if query.contains("watch=") => "watch",
        ("GET", true) => "list",
        ("GET", false) => "get",
        ("POST", _) => "create",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => panic!("{method} {uri}"),
    };
    (verb.to_owned(), group.to_owned(), resource)
}

fn granted() -> BTreeSet<Permission> {
    let mut granted = BTreeSet::new();
    for manifest in rbac::member_manifests(None, None) {
        for grant in manifest.grants() {
            let rule = &grant.rule;
            for verb in &rule.verbs {
                for group in rule.api_groups.iter().flatten() {
                    for resource in rule.resources.iter().flatten() {
                        granted.insert((verb.clone(), group.clone(), resource.clone()));
                    }
                }
            }
        }
    }
    granted
}

#[tokio::test(start_paused = true)]
async fn no_rule_is_missing_and_each_is_used() {
    let mut world = World::start().await;
    world.export("eu", "10.0.0.1").await;
    world.export("us", "10.1.0.1").await;
    world
        .until_imported("ap", &[("eu", "10.0.0.1"), ("us", "10.1.0.1")])
        .await;
    let changed = serde_json::json!({ "ports": [{ "name": "http", "port": 8081 }] });
    world
        .patch("us", &format!("{SLICES}/web-1"), &changed)
        .await;
    world.until_condition("eu", "Ready", "Exported").await;
    let port = serde_json::json!({ "spec": { "ports": [{ "name": "http", "port": 81 }] } });
    world
        .patch("eu", "/api/v1/namespaces/shop/services/web", &port)
        .await;
    world
        .until_condition("us", "Conflict", "PortConflict")
        .await;
    for name in ["eu", "us"] {
        world.delete(name, EXPORT).await;
    }
    world.until_exists("ap", IMPORT, false).await;
    let requests = world.requests();
    let refused = requests.iter().find(|(.., code)| *code == 403);
    assert_eq!(refused, None);
    let used: BTreeSet<_> = requests.iter().map(needed).collect();
    assert_eq!(used, granted());
    world.stop_controller().await;
}
