//! The figures, for people.

use std::fmt::Write as _;

/// The figures of one size. Times are in seconds.
pub(super) struct Size {
    pub(super) sets: usize,
    pub(super) local_sets: usize,
    pub(super) pods: u64,
    /// From the first creation until every status shows all replicas ready.
    pub(super) settled_seconds: f64,
    /// Resident bytes of the controller that created all that, settled.
    pub(super) resident: u64,
    /// The most resident bytes of the one that was started on it.
    pub(super) peak: u64,
    /// From a change that concerns every set until each is checked.
    pub(super) pass_seconds: f64,
    /// What the checks of this pass took together.
    pub(super) pass_cpu_seconds: f64,
    /// From the start of a process until it creates the local set that is missing.
    pub(super) restart_seconds: f64,
    /// What it wrote beyond that.
    pub(super) unexpected: Vec<String>,
}

/// A figure, with its name.
type Row = (&'static str, Box<dyn Fn(&Size) -> String>);

/// The sizes, one in each column.
pub(super) fn table(sizes: &[Size]) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
    let rows: [Row; 10] = [
        (
            "FederatedReplicaSets",
            Box::new(|size| size.sets.to_string()),
        ),
        (
            "local ReplicaSets",
            Box::new(|size| size.local_sets.to_string()),
        ),
        ("pods", Box::new(|size| size.pods.to_string())),
        (
            "all created and ready",
            Box::new(|size| format!("{:.1} s", size.settled_seconds)),
        ),
        (
            "resident, settled",
            Box::new(move |size| megabytes(size.resident)),
        ),
        (
            "full pass",
            Box::new(|size| format!("{:.2} s", size.pass_seconds)),
        ),
        (
            "of it in checks",
            Box::new(|size| format!("{:.2} s", size.pass_cpu_seconds)),
        ),
        (
            "restart to first write",
            Box::new(|size| format!("{:.1} s", size.restart_seconds)),
        ),
        (
            "peak resident after it",
            Box::new(move |size| megabytes(size.peak)),
        ),
        (
            "other writes after it",
            Box::new(|size| size.unexpected.len().to_string()),
        ),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        let _ = write!(text, "{name:24}");
        for size in sizes {
            let _ = write!(text, "{:>14}", value(size));
        }
        text.push('\n');
    }
    for write in sizes
        .iter()
        .flat_map(|size| size.unexpected.iter().take(10))
    {
        let _ = writeln!(text, "UNEXPECTED {write}");
    }
    text
}

/// By which power of the size each figure grows, from the first size to the last.
pub(super) fn growth(sizes: &[Size]) -> String {
    let [first, .., last] = sizes else {
        return String::new();
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let figures = |size: &Size| {
        [
            ("resident memory", size.resident as f64),
            ("full pass", size.pass_seconds),
            ("checks of a full pass", size.pass_cpu_seconds),
            ("restart to first write", size.restart_seconds),
        ]
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let larger = (last.sets as f64 / first.sets as f64).ln();
    let mut text = String::new();
    for ((name, small), (_, large)) in figures(first).into_iter().zip(figures(last)) {
        let exponent = (large / small).ln() / larger;
        let _ = writeln!(
            text,
            "{name} grows with the power {exponent:.2} of the size"
        );
    }
    text
}
