//! Tables of the other built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, join, labels_text, name, number, or_none, since, text_cell};
use super::layout::{Cells, Columns, Layout, columns};
use super::pods::names_and_images;
use crate::object::{condition, list, text};
use crate::resources::Kind;

pub(super) fn layout(kind: &Kind) -> Layout {
    let (names, cells) = printer(kind);
    Layout {
        columns: columns(names),
        cells: Box::new(cells),
    }
}

fn printer(kind: &Kind) -> Columns {
    match &*kind.storage {
        "namespaces" => (&["Name", "Status", "Age"], namespace),
        "nodes" => (NODE, node),
        "events" => (EVENT, event),
        "configmaps" => (&["Name", "Data", "Age"], config_map),
        "secrets" => (&["Name", "Type", "Data", "Age"], secret),
        "serviceaccounts" => (&["Name", "Age"], |object, now| {
            vec![name(object), age(object, now)]
        }),
        "services" => (SERVICE, service),
        "endpoints" => (&["Name", "Endpoints", "Age"], endpoints),
        "endpointslices.discovery.k8s.io" => (
            &["Name", "AddressType", "Ports", "Endpoints", "Age"],
            endpoint_slice,
        ),
        "resourcequotas" => (&["Name", "Request", "Limit", "Age"], quota),
        "podtemplates" => (
            &["Name", "Containers", "Images", "Pod Labels"],
            pod_template,
        ),
        _ => (&["Name", "Age"], |object, now| {
            vec![name(object), age(object, now)]
        }),
    }
}

fn namespace(object: &Value, now: Timestamp) -> Cells {
    vec![
        name(object),
        text_cell(object, "/status/phase"),
        age(object, now),
    ]
}

fn config_map(object: &Value, now: Timestamp) -> Cells {
    let entries = count(&object["data"]) + count(&object["binaryData"]);
    vec![name(object), json!(entries), age(object, now)]
}

fn secret(object: &Value, now: Timestamp) -> Cells {
    vec![
        name(object),
        text_cell(object, "/type"),
        json!(count(&object["data"])),
        age(object, now),
    ]
}

fn pod_template(object: &Value, _: Timestamp) -> Cells {
    let [names, images] = names_and_images(&object["template"]["spec"]);
    let labels = labels_text(&object["template"]["metadata"]["labels"]);
    vec![name(object), names, images, labels]
}

fn count(fields: &Value) -> usize {
    fields.as_object().map_or(0, serde_json::Map::len)
}

const NODE: &[&str] = &[
    "Name",
    "Status",
    "Roles",
    "Age",
    "Version",
    "*Internal-IP",
    "*External-IP",
    "*OS-Image",
    "*Kernel-Version",
    "*Container-Runtime",
];

fn node(object: &Value, now: Timestamp) -> Cells {
    let ready = condition(object, "Ready");
    let mut status = match ready.map(|ready| text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == json!(true) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = (object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten())
    .filter_map(
        |(label, value)| match label.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => (label == "kubernetes.io/role")
                .then_some(value.as_str())
                .flatten(),
        },
    )
    .filter(|role| !role.is_empty())
    .collect();
    roles.sort_unstable();
    let address = |wanted: &str| {
        let mut addresses = list(object, "/status/addresses").iter();
        let found = addresses.find(|each| each["type"] == wanted);
        or_none(found.map_or("", |each| text(each, "/address")))
    };
    let info = |field: &str| match text(object, &format!("/status/nodeInfo/{field}")) {
        "" => json!("<unknown>"),
        text => json!(text),
    };
    vec![
        name(object),
        json!(status),
        or_none(&roles.join(",")),
        age(object, now),
        text_cell(object, "/status/nodeInfo/kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

const EVENT: &[&str] = &[
    "Last Seen",
    "Type",
    "Reason",
    "Object",
    "*Subobject",
    "*Source",
    "Message",
    "*First Seen",
    "*Count",
    "*Name",
];

fn event(object: &Value, now: Timestamp) -> Cells {
    let first_of = |pointers: &[&str]| -> String {
        let texts = pointers.iter().map(|pointer| text(object, pointer));
        texts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let first_seen = first_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let in_series = text(object, "/series/lastObservedTime");
    let last_seen = match first_of(&["/lastTimestamp", "/deprecatedLastTimestamp"]) {
        _ if !in_series.is_empty() => in_series.to_owned(),
        time if time.is_empty() => first_seen.clone(),
        time => time,
    };
    let times = match number(object, "/series/count") {
        0 => number(object, "/count")
            .max(number(object, "/deprecatedCount"))
            .max(1),
        times => times,
    };
    let regarding = if object["involvedObject"].is_object() {
        "involvedObject"
    } else {
        "regarding"
    };
    let about = |field: &str| text(object, &format!("/{regarding}/{field}")).to_owned();
    let kind = about("kind").to_lowercase();
    let named = about("name");
    let shown = if named.is_empty() {
        kind
    } else {
        format!("{kind}/{named}")
    };
    let component = first_of(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first_of(&["/source/host", "/reportingInstance"]);
    let source = if host.is_empty() {
        component
    } else {
        format!("{component}, {host}")
    };
    let message = first_of(&["/message", "/note"]);
    vec![
        since(&last_seen, now),
        text_cell(object, "/type"),
        text_cell(object, "/reason"),
        json!(shown),
        json!(about("fieldPath")),
        json!(source),
        json!(message.trim()),
        since(&first_seen, now),
        json!(times),
        name(object),
    ]
}

const SERVICE: &[&str] = &[
    "Name",
    "Type",
    "Cluster-IP",
    "External-IP",
    "Port(s)",
    "Age",
    "*Selector",
];

fn service(object: &Value, now: Timestamp) -> Cells {
    let service_type = text(object, "/spec/type");
    let external =
        match service_type {
            "ExternalName" => or_none(text(object, "/spec/externalName")),
            "LoadBalancer" => {
                let addresses = join(list(object, "/status/loadBalancer/ingress").iter().map(
                    |each| match text(each, "/ip") {
                        "" => text(each, "/hostname"),
                        address => address,
                    },
                ));
                json!(if addresses.is_empty() {
                    "<pending>"
                } else {
                    &addresses
                })
            }
            _ => or_none(&join(
                list(object, "/spec/externalIPs")
                    .iter()
                    .filter_map(Value::as_str),
            )),
        };
    let ports: Vec<String> = list(object, "/spec/ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (&port["port"], text(port, "/protocol"));
            match port["nodePort"].as_i64() {
                Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        name(object),
        json!(service_type),
        or_none(text(object, "/spec/clusterIP")),
        external,
        or_none(&ports.join(",")),
        age(object, now),
        labels_text(&object["spec"]["selector"]),
    ]
}

/// The first three, and the number of the others.
fn shortened(texts: &[String]) -> Value {
    const SHOWN: usize = 3;
    let shown = texts.get(..SHOWN).unwrap_or(texts).join(",");
    if texts.len() > SHOWN {
        json!(format!("{shown} + {} more...", texts.len() - SHOWN))
    } else {
        or_none(&shown)
    }
}

fn endpoints(object: &Value, now: Timestamp) -> Cells {
    let mut all = Vec::new();
    for subset in list(object, "/subsets") {
        for port in list(subset, "/ports") {
            for address in list(subset, "/addresses") {
                all.push(format!("{}:{}", text(address, "/ip"), port["port"]));
            }
        }
    }
    vec![name(object), shortened(&all), age(object, now)]
}

fn endpoint_slice(object: &Value, now: Timestamp) -> Cells {
    let ports: Vec<String> = list(object, "/ports")
        .iter()
        .map(|port| port["port"].to_string())
        .collect();
    let addresses: Vec<String> = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses").iter())
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    let ports = if ports.is_empty() {
        json!("<unset>")
    } else {
        shortened(&ports)
    };
    let addresses = if addresses.is_empty() {
        json!("<unset>")
    } else {
        shortened(&addresses)
    };
    vec![
        name(object),
        text_cell(object, "/addressType"),
        ports,
        addresses,
        age(object, now),
    ]
}

fn quota(object: &Value, now: Timestamp) -> Cells {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in object["status"]["hard"].as_object().into_iter().flatten() {
        let used = text(&object["status"]["used"][resource], "");
        let used = if used.is_empty() { "0" } else { used };
        let shown = format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default());
        if resource.starts_with("limits") {
            limits.push(shown);
        } else {
            requests.push(shown);
        }
    }
    vec![
        name(object),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        age(object, now),
    ]
}
