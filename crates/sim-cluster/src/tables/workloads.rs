//! Tables of workloads: ReplicaSets, Deployments and others.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, labels_text, name, number, or_none};
use super::layout::{Cells, Columns, Layout, columns};
use super::pods::names_and_images;
use crate::resources::Kind;
use crate::selectors::object as selector;

const REPLICA_SET: &[&str] = &[
    "Name",
    "#Desired",
    "#Current",
    "#Ready",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];
const DEPLOYMENT: &[&str] = &[
    "Name",
    "Ready",
    "Up-to-date",
    "Available",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];
const STATEFUL_SET: &[&str] = &["Name", "Ready", "Age", "*Containers", "*Images"];
const DAEMON_SET: &[&str] = &[
    "Name",
    "#Desired",
    "#Current",
    "#Ready",
    "#Up-to-date",
    "#Available",
    "Node Selector",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];

pub(super) fn layout(kind: &Kind) -> Option<Layout> {
    let (names, cells): Columns = match &*kind.storage {
        "replicasets.apps" | "replicationcontrollers" => (REPLICA_SET, replica_set),
        "deployments.apps" => (DEPLOYMENT, deployment),
        "statefulsets.apps" => (STATEFUL_SET, stateful_set),
        "daemonsets.apps" => (DAEMON_SET, daemon_set),
        _ => return None,
    };
    Some(Layout {
        columns: columns(names),
        cells: Box::new(cells),
    })
}

fn replica_set(object: &Value, now: Timestamp) -> Cells {
    let mut cells = vec![
        name(object),
        json!(number(object, "/spec/replicas")),
        status(object, "replicas"),
        status(object, "readyReplicas"),
        age(object, now),
    ];
    cells.extend(containers(object));
    cells.push(selector(object));
    cells
}

fn deployment(object: &Value, now: Timestamp) -> Cells {
    let mut cells = vec![
        name(object),
        ready_of(object),
        status(object, "updatedReplicas"),
        status(object, "availableReplicas"),
        age(object, now),
    ];
    cells.extend(containers(object));
    cells.push(selector(object));
    cells
}

fn stateful_set(object: &Value, now: Timestamp) -> Cells {
    let mut cells = vec![name(object), ready_of(object), age(object, now)];
    cells.extend(containers(object));
    cells
}

fn daemon_set(object: &Value, now: Timestamp) -> Cells {
    let mut cells = vec![
        name(object),
        status(object, "desiredNumberScheduled"),
        status(object, "currentNumberScheduled"),
        status(object, "numberReady"),
        status(object, "updatedNumberScheduled"),
        status(object, "numberAvailable"),
        labels_text(&object["spec"]["template"]["spec"]["nodeSelector"]),
        age(object, now),
    ];
    cells.extend(containers(object));
    cells.push(selector(object));
    cells
}

fn status(object: &Value, field: &str) -> Value {
    json!(number(object, &format!("/status/{field}")))
}

fn ready_of(object: &Value) -> Value {
    let (ready, desired) = (
        number(object, "/status/readyReplicas"),
        number(object, "/spec/replicas"),
    );
    json!(format!("{ready}/{desired}"))
}

fn containers(object: &Value) -> [Value; 2] {
    names_and_images(&object["spec"]["template"]["spec"])
}

fn selector(object: &Value) -> Value {
    or_none(&selector::to_query(&object["spec"]["selector"]))
}
