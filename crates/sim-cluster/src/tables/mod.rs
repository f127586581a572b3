//! Objects as tables for people: what `kubectl get` shows.
//!
//! kind -> columns; object -> cells. Built-in kinds have their own columns, custom ones those of their
//! definition, or name and age.

mod age;
mod custom;
mod json_path;
mod kinds;
mod pods;
mod policies;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::text_at;
use crate::clock::parse_time;
use crate::resources::Kind;
use crate::store::Object;

pub use json_path::JsonPath;

/// What each row carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowObject {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

/// A column; `wide` ones are for `-o wide`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    cell_type: String,
    format: String,
    description: String,
    priority: i64,
}

/// A row's cells, one per column.
type Cells = Vec<Value>;

/// The second column of kinds that have none of their own.
const CREATED_AT: &str = "Created At";

/// Fills the cells of an object's row.
type Printer = dyn Fn(&Value, Timestamp) -> Cells;

/// Columns in their short form, and the function that fills them.
type Columns = (&'static [&'static str], fn(&Value, Timestamp) -> Cells);

/// How the cells of a kind are made.
struct Layout {
    columns: Vec<Column>,
    cells: Box<Printer>,
}

/// A `Table` of objects of one kind; `headers` says whether the columns are described.
pub fn table(
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
    // What makes tables of kinds without columns of their own has no rows rather than none of them.
    let is_default = layout.columns.iter().any(|it| it.name == CREATED_AT);
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

impl Column {
    fn to_value(&self) -> Value {
        json!({
            "name": self.name, "type": self.cell_type, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}

/// Columns from their short form: `Name`, `Age`, wide ones with a `*` ahead, numbers with a `#` ahead.
fn columns(names: &[&str]) -> Vec<Column> {
    let column = |name: &&str| {
        let wide = name.starts_with('*');
        let name = name.trim_start_matches('*');
        let number = name.starts_with('#');
        let name = name.trim_start_matches('#');
        Column {
            name: name.to_owned(),
            cell_type: match name {
                _ if number => "integer",
                CREATED_AT => "date",
                _ => "string",
            }
            .to_owned(),
            format: if name == "Name" { "name" } else { "" }.to_owned(),
            description: describe(name).to_owned(),
            priority: i64::from(wide),
        }
    };
    names.iter().map(column).collect()
}

fn describe(column: &str) -> &'static str {
    match column {
        "Name" => {
            "Name must be unique within a namespace. Is required when creating resources, although some resources \
             may allow a client to request the generation of an appropriate name automatically. Name is primarily \
             intended for creation idempotence and configuration definition. Cannot be updated. More info: \
             https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
        }
        "Age" | "Created At" => {
            "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
             guaranteed to be set in happens-before order across separate operations. Clients may not set this \
             value. It is represented in RFC3339 form and is in UTC."
        }
        _ => "",
    }
}

/// Text at a pointer; empty if there is none.
fn text(object: &Value, pointer: &str) -> Value {
    json!(text_at(object, pointer))
}

fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

/// How long ago the object was created.
fn age(object: &Value, now: Timestamp) -> Value {
    since(text_at(object, "/metadata/creationTimestamp"), now)
}

/// How long ago a time was; `<unknown>` if there is none.
fn since(time: &str, now: Timestamp) -> Value {
    match parse_time(time) {
        Some(time) => json!(age::human(now.duration_since(time))),
        None => json!("<unknown>"),
    }
}

/// Text, or `<none>`.
fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn items<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl DoubleEndedIterator<Item = &'a Value> + use<'a> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[][..], Vec::as_slice).iter()
}

fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<&str>>().join(",")
}

/// `a=1,b=2`, or `<none>`.
fn labels_text(labels: &Value) -> Value {
    let pairs: Vec<String> = (labels.as_object().into_iter().flatten())
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(&pairs.join(","))
}
