//! Tables of custom kinds, by their `additionalPrinterColumns`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, name, since};
use super::json_path::JsonPath;
use super::layout::{Cells, Column, Layout, columns};
use crate::object::text;
use crate::resources::CustomVersion;

pub(super) fn layout(custom: &CustomVersion) -> Layout {
    let defined = custom.version["additionalPrinterColumns"].as_array();
    let Some(defined) = defined.filter(|defined| !defined.is_empty()) else {
        return Layout {
            columns: columns(&["Name", "Age"]),
            cells: Box::new(|object, now| vec![name(object), age(object, now)]),
        };
    };
    let mut all = columns(&["Name"]);
    let mut paths = Vec::new();
    for column in defined {
        let cell_type = text(column, "/type").to_owned();
        all.push(Column {
            name: text(column, "/name").to_owned(),
            cell_type: cell_type.clone(),
            format: text(column, "/format").to_owned(),
            description: described(column),
            priority: column["priority"].as_i64().unwrap_or(0),
        });
        paths.push((JsonPath::parse(text(column, "/jsonPath")), cell_type));
    }
    let cells = move |object: &Value, now: Timestamp| -> Cells {
        let mut cells = vec![name(object)];
        cells.extend(
            (paths.iter()).map(|(path, cell_type)| cell(path.as_ref(), cell_type, object, now)),
        );
        cells
    };
    Layout {
        columns: all,
        cells: Box::new(cells),
    }
}

fn described(column: &Value) -> String {
    match text(column, "/description") {
        "" => {
            let path = text(column, "/jsonPath");
            format!("Custom resource definition column (in JSONPath format): {path}")
        }
        text => text.to_owned(),
    }
}

/// The first value at the path; empty if it does not have the column's type.
fn cell(path: Option<&JsonPath>, cell_type: &str, object: &Value, now: Timestamp) -> Value {
    let found = path.map(|path| path.find(object)).unwrap_or_default();
    let Some(&first) = found.first() else {
        return Value::Null;
    };
    match cell_type {
        "string" => json!(text_of(first)),
        "integer" => match first {
            Value::Number(number) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "as Go converts a float64 to int64"
                )]
                let whole = number
                    .as_i64()
                    .or_else(|| number.as_f64().map(|number| number as i64));
                json!(whole)
            }
            _ => Value::Null,
        },
        "number" if first.is_number() => first.clone(),
        "boolean" if first.is_boolean() => first.clone(),
        "date" => match first.as_str() {
            Some(time) if crate::clock::parse_time(time).is_some() => since(time, now),
            Some(_) => json!("<invalid>"),
            None => Value::Null,
        },
        _ => Value::Null,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
