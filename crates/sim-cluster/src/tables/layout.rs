//! The columns of a table, and how the cells of a row are made.

use jiff::Timestamp;
use serde_json::{Value, json};

/// A column; `wide` ones are for `-o wide`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) cell_type: String,
    pub(super) format: String,
    pub(super) description: String,
    pub(super) priority: i64,
}

/// A row's cells, one per column.
pub(super) type Cells = Vec<Value>;

/// The second column of kinds without columns of their own.
pub(super) const CREATED_AT: &str = "Created At";

/// Fills the cells of an object's row.
pub(super) type Printer = dyn Fn(&Value, Timestamp) -> Cells;

/// Columns in their short form, and the function that fills them.
pub(super) type Columns = (&'static [&'static str], fn(&Value, Timestamp) -> Cells);

/// How the cells of a kind are made.
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    pub(super) cells: Box<Printer>,
}

impl Column {
    pub(super) fn to_value(&self) -> Value {
        json!({
            "name": self.name, "type": self.cell_type, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}

/// Columns from their short form: `Name`, `Age`; `*` marks wide ones, `#` numbers.
pub(super) fn columns(names: &[&str]) -> Vec<Column> {
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
