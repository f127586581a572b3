//! Files that reach each other by the arrows of a graph.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use super::graph::Graph;

/// Files that all reach each other.
pub(super) struct Cycle<'a> {
    pub(super) files: BTreeSet<&'a PathBuf>,
    graph: &'a Graph,
}

/// The cycles of `graph`, its strongly connected components, in the order of their first files.
pub(super) fn find(graph: &Graph) -> Vec<Cycle<'_>> {
    let users = graph.arrows.keys();
    let reached: BTreeMap<_, _> = users
        .map(|file| (file, reached_from(graph, file)))
        .collect();
    let reaches = |from: &PathBuf, to| reached.get(from).is_some_and(|files| files.contains(to));
    let mut cycles: Vec<Cycle<'_>> = Vec::new();
    for (&file, files) in &reached {
        let is_new = !cycles.iter().any(|cycle| cycle.files.contains(file));
        if is_new && files.contains(file) {
            let files = files
                .iter()
                .copied()
                .filter(|other| reaches(other, file))
                .collect();
            cycles.push(Cycle { files, graph });
        }
    }
    cycles
}

/// The files that `file` uses, directly or around corners.
fn reached_from<'a>(graph: &'a Graph, file: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        for next in graph.arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// The files, and each arrow between them with the names that the first file uses of the second.
impl fmt::Display for Cycle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} files", self.files.len())?;
        for &from in &self.files {
            for (to, names) in &self.graph.arrows[from] {
                if self.files.contains(to) {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    let (from, to) = (from.display(), to.display());
                    writeln!(f, "  {from} uses {} of {to}", names.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
