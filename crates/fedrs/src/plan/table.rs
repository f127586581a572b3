//! Layouts as tables for people.

use std::fmt::Write;

use super::result::CaseResult;
use crate::output;

/// A table for each result, with an empty line between them.
pub(super) fn format(results: &[CaseResult<'_>]) -> String {
    results
        .iter()
        .map(format_one)
        .collect::<Vec<_>>()
        .join("\n")
}

fn format_one(result: &CaseResult<'_>) -> String {
    let case = result.case;
    // Omit columns without values.
    let (current, capacity) = (!case.current.is_empty(), !case.capacity.is_empty());
    let mut header = vec!["CLUSTER", "REPLICAS"];
    header.extend(current.then_some("CURRENT"));
    header.extend(capacity.then_some("CAPACITY"));
    header.push("REASON");
    let number = |count: Option<&u64>| count.map_or_else(|| "-".to_owned(), ToString::to_string);
    let rows = result.shares().map(|(cluster, share)| {
        let mut row = vec![cluster.to_owned(), share.replicas.to_string()];
        row.extend(current.then(|| number(case.current.get(cluster))));
        row.extend(capacity.then(|| number(case.capacity.get(cluster))));
        row.push(share.reasons.to_string());
        row
    });
    let table = output::table(&header, 1..header.len() - 1, rows.collect());
    let mut text = format!("{case}\n\n{table}");
    if result.layout.unplaced > 0 {
        writeln!(
            text,
            "\nunplaced: {} (no cluster can run more replicas)",
            result.layout.unplaced
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
        format(&cases.list.iter().map(CaseResult::new).collect::<Vec<_>>())
    }

    #[test]
    fn f19_a_table_shows_replicas_and_reasons() {
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
