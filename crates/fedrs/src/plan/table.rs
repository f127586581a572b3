//! Layouts as tables for people.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::answer::Answer;

/// A table for each answer, with an empty line between them.
pub(super) fn print(answers: &[Answer<'_>]) -> String {
    answers.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(answer: &Answer<'_>) -> String {
    let case = answer.case;
    // Columns that say nothing in this case are left out.
    let (present, capacity) = (!case.current.is_empty(), !case.capacity.is_empty());
    let mut header = vec!["CLUSTER", "REPLICAS"];
    header.extend(present.then_some("PRESENT"));
    header.extend(capacity.then_some("CAPACITY"));
    header.push("WHY");
    let mut table = Table::new();
    // Wraps the reasons where the terminal is too narrow; a pipe has no width.
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(&header);
    for (cluster, share) in answer.shares() {
        let mut row = vec![cluster.to_owned(), share.replicas.to_string()];
        let number =
            |count: Option<&u64>| count.map_or_else(|| "-".to_owned(), ToString::to_string);
        if present {
            row.push(number(case.current.get(cluster)));
        }
        if capacity {
            row.push(number(case.capacity.get(cluster)));
        }
        row.push(share.reasons.to_string());
        table.add_row(row);
    }
    for place in 1..header.len() - 1 {
        let column = table.column_mut(place).expect("the header has this column");
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{case}\n\n{}\n", table.trim_fmt());
    if answer.layout.unplaced > 0 {
        writeln!(
            text,
            "\nunplaced: {} (no cluster can take more)",
            answer.layout.unplaced
        )
        .expect("writing to a string never fails");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::case::Cases, *};

    fn table_of(case: &str) -> String {
        let cases = Cases::parse(case).expect("is valid");
        print(&cases.list.iter().map(Answer::new).collect::<Vec<_>>())
    }

    #[test]
    fn f19_a_table_says_how_many_and_why() {
        insta::assert_snapshot!(table_of(
            "- {name: even, replicas: 50, clusters: [A, B, C]}
- {name: full and kept, replicas: 50, clusters: [A, B, C], current: {A: 30}, capacity: {C: 6}}
- name: bounds
  replicas: 50
  clusters: [A, B, C, D]
  preferences: {rebalance: true, clusters: {A: {minReplicas: 2, maxReplicas: 2}, B: {maxReplicas: 5, weight: 1}, C: {}}}
- {name: shrinking, replicas: 50, clusters: [A, B], current: {A: 10, B: 70}}
- {name: minimums, replicas: 50, clusters: [A, B, C], preferences: {clusters: {'*': {minReplicas: 20}}}}
- {name: nothing, replicas: 0, clusters: [A]}"
        ));
    }
}
