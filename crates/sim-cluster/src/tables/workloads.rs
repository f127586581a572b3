//! Tables of what makes pods: replica sets and their like.

use serde_json::{Value, json};

use super::pods::names_and_images;
use super::{Cells, Layout, age, columns, labels_text, name, number, or_none};
use crate::api::selector_text;
use crate::resources::Kind;

pub(super) fn layout(kind: &Kind) -> Option<Layout> {
    let layout = |names: &[&str], cells: fn(&Value, jiff::Timestamp) -> Cells| Layout {
        columns: columns(names),
        cells: Box::new(cells),
    };
    Some(match &*kind.storage {
        "replicasets.apps" | "replicationcontrollers" => layout(
            &[
                "Name",
                "#Desired",
                "#Current",
                "#Ready",
                "Age",
                "*Containers",
                "*Images",
                "*Selector",
            ],
            |object, now| {
                let cells = vec![
                    name(object),
                    json!(number(object, "/spec/replicas")),
                    json!(number(object, "/status/replicas")),
                    json!(number(object, "/status/readyReplicas")),
                    age(object, now),
                ];
                with_template(cells, object, true)
            },
        ),
        "deployments.apps" => layout(
            &[
                "Name",
                "Ready",
                "Up-to-date",
                "Available",
                "Age",
                "*Containers",
                "*Images",
                "*Selector",
            ],
            |object, now| {
                let cells = vec![
                    name(object),
                    ready_of(object),
                    json!(number(object, "/status/updatedReplicas")),
                    json!(number(object, "/status/availableReplicas")),
                    age(object, now),
                ];
                with_template(cells, object, true)
            },
        ),
        "statefulsets.apps" => layout(
            &["Name", "Ready", "Age", "*Containers", "*Images"],
            |object, now| {
                with_template(
                    vec![name(object), ready_of(object), age(object, now)],
                    object,
                    false,
                )
            },
        ),
        "daemonsets.apps" => layout(
            &[
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
            ],
            |object, now| {
                let status = |field: &str| json!(number(object, &format!("/status/{field}")));
                let cells = vec![
                    name(object),
                    status("desiredNumberScheduled"),
                    status("currentNumberScheduled"),
                    status("numberReady"),
                    status("updatedNumberScheduled"),
                    status("numberAvailable"),
                    labels_text(&object["spec"]["template"]["spec"]["nodeSelector"]),
                    age(object, now),
                ];
                with_template(cells, object, true)
            },
        ),
        _ => return None,
    })
}

fn ready_of(object: &Value) -> Value {
    let (ready, desired) = (
        number(object, "/status/readyReplicas"),
        number(object, "/spec/replicas"),
    );
    json!(format!("{ready}/{desired}"))
}

fn with_template(mut cells: Cells, object: &Value, selector: bool) -> Cells {
    cells.extend(names_and_images(&object["spec"]["template"]["spec"]));
    if selector {
        cells.push(or_none(&selector_text(&object["spec"]["selector"])));
    }
    cells
}
