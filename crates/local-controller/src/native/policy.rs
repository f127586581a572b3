//! What pods of ReplicaSets support of a MigrationPolicy.

use std::sync::Arc;

use fedrs_api::{ShutdownTimeout, ValidMethod, ValidMigrationPolicy};

/// The MigrationPolicy of a ReplicaSet.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Its name; `None` for that of the configuration.
    pub(super) name: Option<String>,
    pub(super) valid: Arc<ValidMigrationPolicy>,
}

impl Chosen {
    /// What it asks for that can't be kept, for people: the controllers of ReplicaSets make another pod at once, under another name and
    /// without its shard. What nobody has asked for is no reason: by default, a policy has no `shutdown`.
    pub(super) fn unsupported(&self) -> Option<String> {
        let policy = &self.valid;
        let on_timeout = policy.shutdown.map(|shutdown| shutdown.on_timeout);
        let field = match (policy.method, on_timeout) {
            (ValidMethod::Copy(_), _) => "method: Copy",
            (ValidMethod::Manual, _) => "method: Manual",
            (ValidMethod::Move, _) if policy.per_shard.is_some() => "perShard",
            (ValidMethod::Move, Some(ShutdownTimeout::HandsUp)) => "shutdown.onTimeout: HandsUp",
            (ValidMethod::Move, Some(ShutdownTimeout::Replace)) => "shutdown.onTimeout: Replace",
            (ValidMethod::Move, Some(ShutdownTimeout::Evict) | None) => return None,
        };
        let policy = match &self.name {
            Some(name) => format!("MigrationPolicy {name}"),
            None => "migration.defaultPolicy of the configuration".to_owned(),
        };
        Some(format!(
            "{policy}: {field} is not supported for pods of ReplicaSets"
        ))
    }
}

#[cfg(test)]
mod tests {
    use fedrs_api::MigrationPolicySpec;
    use serde_json::{Value, json};

    use super::*;

    impl Chosen {
        /// The policy `all` with this spec.
        pub(in crate::native) fn by(spec: Value) -> Self {
            let spec: MigrationPolicySpec = serde_json::from_value(spec).unwrap();
            let valid = Arc::new(ValidMigrationPolicy::check(&spec).unwrap());
            let name = Some("all".to_owned());
            Self { name, valid }
        }
    }

    #[test]
    fn m1_only_move_is_supported_and_the_field_is_named() {
        let shard = json!({ "label": "shard", "maxUnavailable": 1 });
        for (spec, expected) in [
            (json!({}), None),
            (
                json!({ "method": "Move", "maxUnavailable": "10%", "deadlineSeconds": 5 }),
                None,
            ),
            (json!({ "shutdown": {} }), None),
            (json!({ "shutdown": { "timeoutSeconds": 60 } }), None),
            (
                json!({ "shutdown": { "beforeEviction": false, "onTimeout": "HandsUp" } }),
                None,
            ),
            (
                json!({ "maintenance": { "tolerate": "All", "maxDowntimeSeconds": 1800 } }),
                None,
            ),
            (
                json!({ "shutdown": { "onTimeout": "HandsUp" } }),
                Some("shutdown.onTimeout: HandsUp"),
            ),
            (
                json!({ "shutdown": { "onTimeout": "Replace" } }),
                Some("shutdown.onTimeout: Replace"),
            ),
            (json!({ "perShard": shard }), Some("perShard")),
            (json!({ "method": "Copy" }), Some("method: Copy")),
            (json!({ "method": "Manual" }), Some("method: Manual")),
        ] {
            let expected = expected.map(|field| {
                format!("MigrationPolicy all: {field} is not supported for pods of ReplicaSets")
            });
            assert_eq!(Chosen::by(spec.clone()).unsupported(), expected, "{spec}");
        }
        let of_configuration = Chosen {
            name: None,
            ..Chosen::by(json!({ "method": "Copy" }))
        };
        assert_eq!(
            of_configuration.unsupported().unwrap(),
            "migration.defaultPolicy of the configuration: method: Copy is not supported for pods of ReplicaSets"
        );
    }
}
