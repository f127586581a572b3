//! Tables of the other built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pods::names_and_images;
use super::{Cells, Layout, age, columns, items, join, labels_text, name, number, or_none, since};
use crate::api::text_at;
use crate::resources::Kind;

/// Columns and the function that fills them.
type Printer = (&'static [&'static str], fn(&Value, Timestamp) -> Cells);

pub(super) fn layout(kind: &Kind) -> Layout {
    let (names, cells) = printer(kind);
    Layout {
        columns: columns(names),
        cells: Box::new(cells),
    }
}

fn printer(kind: &Kind) -> Printer {
    match &*kind.storage {
        "namespaces" => (&["Name", "Status", "Age"], |object, now| {
            vec![
                name(object),
                text(object, "/status/phase"),
                age(object, now),
            ]
        }),
        "nodes" => (NODE, node),
        "events" => (EVENT, event),
        "configmaps" => (&["Name", "Data", "Age"], |object, now| {
            let entries = count(&object["data"]) + count(&object["binaryData"]);
            vec![name(object), json!(entries), age(object, now)]
        }),
        "secrets" => (&["Name", "Type", "Data", "Age"], |object, now| {
            let entries = count(&object["data"]);
            vec![
                name(object),
                text(object, "/type"),
                json!(entries),
                age(object, now),
            ]
        }),
        "serviceaccounts" => (&["Name", "Secrets", "Age"], |object, now| {
            vec![
                name(object),
                json!(items(object, "/secrets").count()),
                age(object, now),
            ]
        }),
        "services" => (
            &[
                "Name",
                "Type",
                "Cluster-IP",
                "External-IP",
                "Port(s)",
                "Age",
                "*Selector",
            ],
            service,
        ),
        "endpoints" => (&["Name", "Endpoints", "Age"], endpoints),
        "endpointslices.discovery.k8s.io" => (
            &["Name", "AddressType", "Ports", "Endpoints", "Age"],
            endpoint_slice,
        ),
        "resourcequotas" => (&["Name", "Request", "Limit", "Age"], quota),
        "podtemplates" => (
            &["Name", "Containers", "Images", "Pod Labels"],
            |object, _| {
                let [names, images] = names_and_images(&object["template"]["spec"]);
                vec![
                    name(object),
                    names,
                    images,
                    labels_text(&object["template"]["metadata"]["labels"]),
                ]
            },
        ),
        "controllerrevisions.apps" => (&["Name", "Controller", "Revision", "Age"], revision),
        "leases.coordination.k8s.io" => (&["Name", "Holder", "Age"], |object, now| {
            vec![
                name(object),
                text(object, "/spec/holderIdentity"),
                age(object, now),
            ]
        }),
        "poddisruptionbudgets.policy" => (
            &[
                "Name",
                "Min Available",
                "Max Unavailable",
                "#Allowed Disruptions",
                "Age",
            ],
            disruption_budget,
        ),
        "horizontalpodautoscalers.autoscaling" => (
            &[
                "Name",
                "Reference",
                "Targets",
                "MinPods",
                "MaxPods",
                "Replicas",
                "Age",
            ],
            autoscaler,
        ),
        "rolebindings.rbac.authorization.k8s.io"
        | "clusterrolebindings.rbac.authorization.k8s.io" => (
            &[
                "Name",
                "Role",
                "Age",
                "*Users",
                "*Groups",
                "*ServiceAccounts",
            ],
            role_binding,
        ),
        "priorityclasses.scheduling.k8s.io" => (
            &["Name", "Value", "Global-Default", "Age", "PreemptionPolicy"],
            priority_class,
        ),
        "storageclasses.storage.k8s.io" => (STORAGE_CLASS, storage_class),
        "persistentvolumeclaims" => (CLAIM, claim),
        "persistentvolumes" => (VOLUME, volume),
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        | "validatingwebhookconfigurations.admissionregistration.k8s.io" => {
            (&["Name", "#Webhooks", "Age"], |object, now| {
                vec![
                    name(object),
                    json!(items(object, "/webhooks").count()),
                    age(object, now),
                ]
            })
        }
        "limitranges"
        | "roles.rbac.authorization.k8s.io"
        | "clusterroles.rbac.authorization.k8s.io"
        | "customresourcedefinitions.apiextensions.k8s.io" => {
            (&["Name", "Created At"], |object, _| {
                vec![name(object), text(object, "/metadata/creationTimestamp")]
            })
        }
        _ => (&["Name", "Age"], |object, now| {
            vec![name(object), age(object, now)]
        }),
    }
}

fn text(object: &Value, pointer: &str) -> Value {
    json!(text_at(object, pointer))
}

fn count(fields: &Value) -> usize {
    fields.as_object().map_or(0, serde_json::Map::len)
}

/// A number or a percentage as it stands, or `N/A`.
fn number_or_text(value: &Value) -> Value {
    match value {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
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
    let ready = items(object, "/status/conditions").find(|each| each["type"] == "Ready");
    let mut status = match ready.map(|ready| text_at(ready, "/status")) {
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
        let mut addresses = items(object, "/status/addresses");
        let found = addresses.find(|each| each["type"] == wanted);
        or_none(found.map_or("", |each| text_at(each, "/address")))
    };
    let info = |field: &str| match text_at(object, &format!("/status/nodeInfo/{field}")) {
        "" => json!("<unknown>"),
        text => json!(text),
    };
    vec![
        name(object),
        json!(status),
        or_none(&roles.join(",")),
        age(object, now),
        text(object, "/status/nodeInfo/kubeletVersion"),
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
        let texts = pointers.iter().map(|pointer| text_at(object, pointer));
        texts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let first_seen = first_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let in_series = text_at(object, "/series/lastObservedTime");
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
    let about = |field: &str| text_at(object, &format!("/{regarding}/{field}")).to_owned();
    let kind = about("kind").to_lowercase();
    let named = about("name");
    let shown = if named.is_empty() {
        kind
    } else {
        format!("{kind}/{named}")
    };
    let component = first_of(&[
        "/source/component",
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
        text(object, "/type"),
        text(object, "/reason"),
        json!(shown),
        json!(about("fieldPath")),
        json!(source),
        json!(message.trim()),
        since(&first_seen, now),
        json!(times),
        name(object),
    ]
}

fn service(object: &Value, now: Timestamp) -> Cells {
    let service_type = text_at(object, "/spec/type");
    let external = match service_type {
        "ExternalName" => or_none(text_at(object, "/spec/externalName")),
        "LoadBalancer" => {
            let addresses = join(items(object, "/status/loadBalancer/ingress").map(|each| {
                match text_at(each, "/ip") {
                    "" => text_at(each, "/hostname"),
                    address => address,
                }
            }));
            json!(if addresses.is_empty() {
                "<pending>"
            } else {
                &addresses
            })
        }
        _ => or_none(&join(
            items(object, "/spec/externalIPs").filter_map(Value::as_str),
        )),
    };
    let ports: Vec<String> = items(object, "/spec/ports")
        .map(|port| {
            let (number, protocol) = (&port["port"], text_at(port, "/protocol"));
            match port["nodePort"].as_i64() {
                Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        name(object),
        json!(service_type),
        or_none(text_at(object, "/spec/clusterIP")),
        external,
        or_none(&ports.join(",")),
        age(object, now),
        labels_text(&object["spec"]["selector"]),
    ]
}

/// The first three, and how many more there are.
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
    for subset in items(object, "/subsets") {
        for port in items(subset, "/ports") {
            for address in items(subset, "/addresses") {
                all.push(format!("{}:{}", text_at(address, "/ip"), port["port"]));
            }
        }
    }
    vec![name(object), shortened(&all), age(object, now)]
}

fn endpoint_slice(object: &Value, now: Timestamp) -> Cells {
    let ports: Vec<String> = items(object, "/ports")
        .map(|port| port["port"].to_string())
        .collect();
    let addresses: Vec<String> = items(object, "/endpoints")
        .flat_map(|endpoint| items(endpoint, "/addresses"))
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
        text(object, "/addressType"),
        ports,
        addresses,
        age(object, now),
    ]
}

fn quota(object: &Value, now: Timestamp) -> Cells {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in object["status"]["hard"].as_object().into_iter().flatten() {
        let used = text_at(&object["status"]["used"][resource], "");
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

fn revision(object: &Value, now: Timestamp) -> Cells {
    let owner =
        items(object, "/metadata/ownerReferences").find(|each| each["controller"] == json!(true));
    let owner = owner.map(|owner| {
        let api_version = text_at(owner, "/apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = text_at(owner, "/kind").to_lowercase();
        let qualified = if group.is_empty() {
            kind
        } else {
            format!("{kind}.{group}")
        };
        format!("{qualified}/{}", text_at(owner, "/name"))
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
    let target = &object["spec"]["scaleTargetRef"];
    let reference = format!("{}/{}", text_at(target, "/kind"), text_at(target, "/name"));
    let targets: Vec<String> = items(object, "/spec/metrics")
        .map(|metric| {
            let resource = &metric["resource"];
            let wanted = match resource["target"]["averageUtilization"].as_i64() {
                Some(percent) => format!("{percent}%"),
                None => text_at(resource, "/target/averageValue").to_owned(),
            };
            let current = items(object, "/status/currentMetrics")
                .find(|each| each["resource"]["name"] == resource["name"])
                .and_then(|each| each["resource"]["current"]["averageUtilization"].as_i64());
            let current =
                current.map_or_else(|| "<unknown>".to_owned(), |percent| format!("{percent}%"));
            format!("{}: {current}/{wanted}", text_at(resource, "/name"))
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
        let of_kind = items(object, "/subjects").filter(|each| each["kind"] == kind);
        let names: Vec<String> = of_kind
            .map(|each| match text_at(each, "/namespace") {
                "" => text_at(each, "/name").to_owned(),
                namespace => format!("{namespace}/{}", text_at(each, "/name")),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        name(object),
        json!(format!(
            "{}/{}",
            text_at(role, "/kind"),
            text_at(role, "/name")
        )),
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
        text(object, "/preemptionPolicy"),
    ]
}

const STORAGE_CLASS: &[&str] = &[
    "Name",
    "Provisioner",
    "ReclaimPolicy",
    "VolumeBindingMode",
    "AllowVolumeExpansion",
    "Age",
];

fn storage_class(object: &Value, now: Timestamp) -> Cells {
    let policy = text_at(object, "/reclaimPolicy");
    let mode = text_at(object, "/volumeBindingMode");
    vec![
        name(object),
        text(object, "/provisioner"),
        json!(if policy.is_empty() { "Delete" } else { policy }),
        json!(if mode.is_empty() { "Immediate" } else { mode }),
        json!(object["allowVolumeExpansion"] == json!(true)),
        age(object, now),
    ]
}

/// `RWO,ROX`.
fn access_modes(object: &Value, pointer: &str) -> Value {
    let short = items(object, pointer)
        .filter_map(Value::as_str)
        .map(|mode| match mode {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            other => other,
        });
    json!(join(short))
}

fn or_unset(object: &Value, pointer: &str) -> Value {
    match text_at(object, pointer) {
        "" => json!("<unset>"),
        text => json!(text),
    }
}

const CLAIM: &[&str] = &[
    "Name",
    "Status",
    "Volume",
    "Capacity",
    "Access Modes",
    "StorageClass",
    "VolumeAttributesClass",
    "Age",
    "*VolumeMode",
];

fn claim(object: &Value, now: Timestamp) -> Cells {
    let bound = !text_at(object, "/spec/volumeName").is_empty();
    let if_bound = |value: Value| if bound { value } else { json!("") };
    vec![
        name(object),
        text(object, "/status/phase"),
        text(object, "/spec/volumeName"),
        if_bound(text(object, "/status/capacity/storage")),
        if_bound(access_modes(object, "/status/accessModes")),
        text(object, "/spec/storageClassName"),
        or_unset(object, "/spec/volumeAttributesClassName"),
        age(object, now),
        or_unset(object, "/spec/volumeMode"),
    ]
}

const VOLUME: &[&str] = &[
    "Name",
    "Capacity",
    "Access Modes",
    "Reclaim Policy",
    "Status",
    "Claim",
    "StorageClass",
    "VolumeAttributesClass",
    "Reason",
    "Age",
    "*VolumeMode",
];

fn volume(object: &Value, now: Timestamp) -> Cells {
    let claim = &object["spec"]["claimRef"];
    let claimed = if claim.is_object() {
        format!(
            "{}/{}",
            text_at(claim, "/namespace"),
            text_at(claim, "/name")
        )
    } else {
        String::new()
    };
    vec![
        name(object),
        text(object, "/spec/capacity/storage"),
        access_modes(object, "/spec/accessModes"),
        text(object, "/spec/persistentVolumeReclaimPolicy"),
        text(object, "/status/phase"),
        json!(claimed),
        text(object, "/spec/storageClassName"),
        or_unset(object, "/spec/volumeAttributesClassName"),
        text(object, "/status/reason"),
        age(object, now),
        or_unset(object, "/spec/volumeMode"),
    ]
}
