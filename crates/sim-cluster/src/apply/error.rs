//! The errors of server-side apply, with the API server's messages.

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The other manager: `"kubectl" using apps/v1`.
    pub manager: String,
    /// `.spec.replicas`
    pub field: String,
}

impl Conflict {
    /// The message of its cause, whose reason is `FieldManagerConflict`.
    pub(crate) fn cause_message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// The error of a configuration that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApplyError {
    /// A 409 with one cause for each field.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// A 400.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsSet,
    /// A field that the type does not have; a 500, as in the API server.
    #[error(
        "failed to create typed patch object ({object}; {api_version}, Kind={kind}): {field}: field not declared in schema"
    )]
    Undeclared {
        /// `namespace/name`.
        object: String,
        /// `apps/v1`.
        api_version: String,
        /// `ReplicaSet`.
        kind: String,
        /// `.spec.foo`
        field: String,
    },
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            only.manager, only.field
        );
    }
    let mut names: Vec<&str> = conflicts
        .iter()
        .map(|conflict| conflict.manager.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut lines = Vec::new();
    for name in names {
        lines.push(format!("conflicts with {name}:"));
        lines.extend(
            conflicts
                .iter()
                .filter(|one| one.manager == name)
                .map(|one| format!("- {}", one.field)),
        );
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}
