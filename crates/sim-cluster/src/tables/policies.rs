//! Tables of policies for other objects: budgets, autoscalers, roles, leases, webhooks.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, name, number, or_none, text_cell};
use super::layout::{Cells, Columns, Layout, columns};
use crate::object::{list, text};
use crate::resources::{Kind, convert, kinds};

const DISRUPTION_BUDGET: &[&str] = &[
    "Name",
    "Min Available",
    "Max Unavailable",
    "#Allowed Disruptions",
    "Age",
];
const AUTOSCALER: &[&str] = &[
    "Name",
    "Reference",
    "Targets",
    "MinPods",
    "MaxPods",
    "Replicas",
    "Age",
];
const ROLE_BINDING: &[&str] = &[
    "Name",
    "Role",
    "Age",
    "*Users",
    "*Groups",
    "*ServiceAccounts",
];
const PRIORITY_CLASS: &[&str] = &["Name", "Value", "Global-Default", "Age", "PreemptionPolicy"];

pub(super) fn layout(kind: &Kind) -> Option<Layout> {
    let (names, cells): Columns = match &*kind.storage {
        "controllerrevisions.apps" => (&["Name", "Controller", "Revision", "Age"], revision),
        "leases.coordination.k8s.io" => (&["Name", "Holder", "Age"], lease),
        "poddisruptionbudgets.policy" => (DISRUPTION_BUDGET, disruption_budget),
        "horizontalpodautoscalers.autoscaling" => (AUTOSCALER, autoscaler),
        "rolebindings.rbac.authorization.k8s.io"
        | "clusterrolebindings.rbac.authorization.k8s.io" => (ROLE_BINDING, role_binding),
        "priorityclasses.scheduling.k8s.io" => (PRIORITY_CLASS, priority_class),
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        | "validatingwebhookconfigurations.admissionregistration.k8s.io" => {
            (&["Name", "#Webhooks", "Age"], webhooks)
        }
        "limitranges"
        | "roles.rbac.authorization.k8s.io"
        | "clusterroles.rbac.authorization.k8s.io"
        | "customresourcedefinitions.apiextensions.k8s.io" => (&["Name", "Created At"], created),
        _ => return None,
    };
    Some(Layout {
        columns: columns(names),
        cells: Box::new(cells),
    })
}

fn created(object: &Value, _: Timestamp) -> Cells {
    vec![
        name(object),
        text_cell(object, "/metadata/creationTimestamp"),
    ]
}

fn lease(object: &Value, now: Timestamp) -> Cells {
    vec![
        name(object),
        text_cell(object, "/spec/holderIdentity"),
        age(object, now),
    ]
}

fn webhooks(object: &Value, now: Timestamp) -> Cells {
    vec![
        name(object),
        json!(list(object, "/webhooks").len()),
        age(object, now),
    ]
}

/// A number or a percentage, or `N/A`.
fn number_or_text(value: &Value) -> Value {
    match value {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

fn revision(object: &Value, now: Timestamp) -> Cells {
    let owner = list(object, "/metadata/ownerReferences")
        .iter()
        .find(|each| each["controller"] == json!(true));
    let owner = owner.map(|owner| {
        let api_version = text(owner, "/apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = text(owner, "/kind").to_lowercase();
        let qualified = if group.is_empty() {
            kind
        } else {
            format!("{kind}.{group}")
        };
        format!("{qualified}/{}", text(owner, "/name"))
    });
    vec![
        name(object),
        or_none(&owner.unwrap_or_default()),
        json!(number(object, "/revision")),
        age(object, now),
    ]
}

fn disruption_budget(object: &Value, now: Timestamp) -> Cells {
    vec![
        name(object),
        number_or_text(&object["spec"]["minAvailable"]),
        number_or_text(&object["spec"]["maxUnavailable"]),
        json!(number(object, "/status/disruptionsAllowed")),
        age(object, now),
    ]
}

fn autoscaler(object: &Value, now: Timestamp) -> Cells {
    let mut newest = object.clone();
    convert::convert(&kinds::HORIZONTAL_POD_AUTOSCALERS, &mut newest);
    let object = &newest;
    let target = &object["spec"]["scaleTargetRef"];
    let reference = format!("{}/{}", text(target, "/kind"), text(target, "/name"));
    let targets: Vec<String> = list(object, "/spec/metrics")
        .iter()
        .map(|metric| {
            let resource = &metric["resource"];
            let wanted = match resource["target"]["averageUtilization"].as_i64() {
                Some(percent) => format!("{percent}%"),
                None => text(resource, "/target/averageValue").to_owned(),
            };
            let current = list(object, "/status/currentMetrics")
                .iter()
                .find(|each| each["resource"]["name"] == resource["name"])
                .and_then(|each| each["resource"]["current"]["averageUtilization"].as_i64());
            let current =
                current.map_or_else(|| "<unknown>".to_owned(), |percent| format!("{percent}%"));
            format!("{}: {current}/{wanted}", text(resource, "/name"))
        })
        .collect();
    vec![
        name(object),
        json!(reference),
        or_none(&targets.join(", ")),
        json!(
            object["spec"]["minReplicas"]
                .as_i64()
                .map_or("<unset>".to_owned(), |least| least.to_string())
        ),
        json!(number(object, "/spec/maxReplicas")),
        json!(number(object, "/status/currentReplicas")),
        age(object, now),
    ]
}

fn role_binding(object: &Value, now: Timestamp) -> Cells {
    let role = &object["roleRef"];
    let subjects = |kind: &str| -> Value {
        let of_kind = list(object, "/subjects")
            .iter()
            .filter(|each| each["kind"] == kind);
        let names: Vec<String> = of_kind
            .map(|each| match text(each, "/namespace") {
                "" => text(each, "/name").to_owned(),
                namespace => format!("{namespace}/{}", text(each, "/name")),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        name(object),
        json!(format!("{}/{}", text(role, "/kind"), text(role, "/name"))),
        age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn priority_class(object: &Value, now: Timestamp) -> Cells {
    vec![
        name(object),
        json!(number(object, "/value")),
        json!(object["globalDefault"] == json!(true)),
        age(object, now),
        text_cell(object, "/preemptionPolicy"),
    ]
}
