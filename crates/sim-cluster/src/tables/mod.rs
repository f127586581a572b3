//! Objects as tables, which `kubectl get` shows.
//!
//! kind -> columns; object -> cells. Built-in kinds have their own columns, custom ones those of their
//! definition, or name and age.

mod age;
mod cells;
mod custom;
mod json_path;
mod kinds;
mod layout;
mod pods;
mod policies;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::Object;
use crate::resources::Kind;
use cells::{age, name, number};
use layout::{CREATED_AT, Column, Layout, columns};

/// The part of its object that each row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowObject {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

/// A `Table` of objects of one kind; `headers` includes the definitions of the columns.
pub(crate) fn table(
    kind: &Kind,
    objects: &[Object],
    metadata: &Value,
    row_object: RowObject,
    headers: bool,
    now: Timestamp,
) -> Value {
    let layout = layout_of(kind);
    let rows: Vec<Value> = (objects.iter())
        .map(|object| row(&layout, object, row_object, now))
        .collect();
    // The API server's default printer encodes an empty list of rows as null.
    let is_default = layout
        .columns
        .iter()
        .any(|column| column.name == CREATED_AT);
    let rows = if rows.is_empty() && is_default {
        Value::Null
    } else {
        rows.into()
    };
    let columns = if headers {
        layout.columns.iter().map(Column::to_value).collect()
    } else {
        Value::Null
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata, "columnDefinitions": columns, "rows": rows,
    })
}

/// A `Table` of one `Scale`.
pub(crate) fn scale_table(scale: &Value, row_object: RowObject, now: Timestamp) -> Value {
    let layout = Layout {
        columns: columns(&["Name", "#Desired", "#Available", "Age"]),
        cells: Box::new(|scale, now| {
            vec![
                name(scale),
                json!(number(scale, "/spec/replicas")),
                json!(number(scale, "/status/replicas")),
                age(scale, now),
            ]
        }),
    };
    let columns: Vec<Value> = layout.columns.iter().map(Column::to_value).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": scale["metadata"]["resourceVersion"] },
        "columnDefinitions": columns, "rows": [row(&layout, scale, row_object, now)],
    })
}

fn row(layout: &Layout, object: &Value, row_object: RowObject, now: Timestamp) -> Value {
    let mut row = json!({"cells": (layout.cells)(object, now)});
    if let Some(condition) = pods::ended_condition(object) {
        row["conditions"] = json!([condition]);
    }
    row["object"] = match row_object {
        RowObject::None => Value::Null,
        RowObject::Object => object.clone(),
        RowObject::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
        }),
    };
    row
}

fn layout_of(kind: &Kind) -> Layout {
    match &kind.custom {
        Some(custom) => custom::layout(custom),
        None => pods::layout(kind)
            .or_else(|| workloads::layout(kind))
            .or_else(|| storage::layout(kind))
            .or_else(|| policies::layout(kind))
            .unwrap_or_else(|| kinds::layout(kind)),
    }
}
