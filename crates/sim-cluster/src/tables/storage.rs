//! Tables of volumes, claims and storage classes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, join, name, text_cell};
use super::layout::{Cells, Columns, Layout, columns};
use crate::object::{list, text};
use crate::resources::Kind;

pub(super) fn layout(kind: &Kind) -> Option<Layout> {
    let (names, cells): Columns = match &*kind.storage {
        "storageclasses.storage.k8s.io" => (STORAGE_CLASS, storage_class),
        "persistentvolumeclaims" => (CLAIM, claim),
        "persistentvolumes" => (VOLUME, volume),
        _ => return None,
    };
    Some(Layout {
        columns: columns(names),
        cells: Box::new(cells),
    })
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
    let policy = text(object, "/reclaimPolicy");
    let mode = text(object, "/volumeBindingMode");
    vec![
        name(object),
        text_cell(object, "/provisioner"),
        json!(if policy.is_empty() { "Delete" } else { policy }),
        json!(if mode.is_empty() { "Immediate" } else { mode }),
        json!(object["allowVolumeExpansion"] == json!(true)),
        age(object, now),
    ]
}

/// `RWO,ROX`.
fn access_modes(object: &Value, pointer: &str) -> Value {
    let short = list(object, pointer)
        .iter()
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
    match text(object, pointer) {
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
    let bound = !text(object, "/spec/volumeName").is_empty();
    let if_bound = |value: Value| if bound { value } else { json!("") };
    vec![
        name(object),
        text_cell(object, "/status/phase"),
        text_cell(object, "/spec/volumeName"),
        if_bound(text_cell(object, "/status/capacity/storage")),
        if_bound(access_modes(object, "/status/accessModes")),
        text_cell(object, "/spec/storageClassName"),
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
        format!("{}/{}", text(claim, "/namespace"), text(claim, "/name"))
    } else {
        String::new()
    };
    vec![
        name(object),
        text_cell(object, "/spec/capacity/storage"),
        access_modes(object, "/spec/accessModes"),
        text_cell(object, "/spec/persistentVolumeReclaimPolicy"),
        text_cell(object, "/status/phase"),
        json!(claimed),
        text_cell(object, "/spec/storageClassName"),
        or_unset(object, "/spec/volumeAttributesClassName"),
        text_cell(object, "/status/reason"),
        age(object, now),
        or_unset(object, "/spec/volumeMode"),
    ]
}
