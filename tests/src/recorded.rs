//! Objects as the controller writes them, recorded in `tests/recorded` to test how other tools read them.
//!
//! ```text
//! tests/recorded.rs (embedded clusters) --writes, compares--> recorded/NAME.yaml --read--> kstatus.rs, argocd.rs
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// A recorded object, and the status that other tools compute from it.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The name of its file, without `.yaml`.
    pub name: &'static str,
    /// The status that the kstatus library computes: Flux, kpt.
    pub kstatus: &'static str,
    /// The health that the script in `deploy/argocd` computes. Argo CD runs none for an object that is being deleted.
    pub argocd: Option<&'static str>,
}

const fn recorded(
    name: &'static str,
    kstatus: &'static str,
    argocd: Option<&'static str>,
) -> Recorded {
    Recorded {
        name,
        kstatus,
        argocd,
    }
}

/// All recorded objects.
pub const ALL: &[Recorded] = &[
    recorded("set-new", "InProgress", Some("Progressing")),
    recorded("set-reconciling", "InProgress", Some("Progressing")),
    recorded("set-ready", "Current", Some("Healthy")),
    recorded("set-edited", "InProgress", Some("Progressing")),
    recorded("set-invalid-new", "Failed", Some("Degraded")),
    recorded("set-invalid-edited", "Failed", Some("Degraded")),
    recorded("set-no-capacity", "InProgress", Some("Progressing")),
    recorded("set-no-matching-cluster", "InProgress", Some("Progressing")),
    recorded("set-paused", "Current", Some("Suspended")),
    recorded("set-deleting", "Terminating", None),
    recorded("deployment-new", "InProgress", Some("Progressing")),
    recorded("deployment-reconciling", "InProgress", Some("Progressing")),
    recorded("deployment-ready", "Current", Some("Healthy")),
    recorded("deployment-ready-paused", "Current", Some("Suspended")),
    recorded("deployment-edited", "InProgress", Some("Progressing")),
    recorded("deployment-rolling-out", "InProgress", Some("Progressing")),
    recorded("deployment-paused", "InProgress", Some("Suspended")),
    recorded("deployment-stopped", "InProgress", Some("Suspended")),
    recorded("deployment-soaking", "InProgress", Some("Progressing")),
    recorded(
        "deployment-waiting-for-approval",
        "InProgress",
        Some("Suspended"),
    ),
    recorded("deployment-rolled-out", "Current", Some("Healthy")),
    recorded("deployment-failed", "Failed", Some("Degraded")),
    recorded("deployment-undone", "Failed", Some("Degraded")),
    recorded("deployment-invalid", "Failed", Some("Degraded")),
    recorded("deployment-deleting", "Terminating", None),
    recorded("member-new", "InProgress", Some("Progressing")),
    recorded("member-ready", "Current", Some("Healthy")),
    recorded("member-cordoned", "Current", Some("Healthy")),
    recorded("member-draining", "Current", Some("Progressing")),
    recorded("member-drained", "Current", Some("Healthy")),
    recorded("member-unreachable", "InProgress", Some("Degraded")),
];

impl Recorded {
    /// The recorded object of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|recorded| recorded.name == name)
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded");
        directory.join(format!("{}.yaml", self.name))
    }

    /// The object.
    pub fn object(&self) -> Value {
        let path = self.path();
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}
