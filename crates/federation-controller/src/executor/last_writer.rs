//! Who changed a local set's spec, as far as the member's API server recorded it.

use fedrs_api::names;
use serde_json::Value;

use super::LocalSet;

impl LocalSet<'_> {
    /// The field manager that last wrote the spec; `None` if it is unknown.
    pub(super) async fn last_writer(self) -> Option<String> {
        last_writer(&self.get().await.ok()?)
    }
}

/// Of those that own a field of the spec the one that wrote last. Times are whole seconds: among equals another than
/// fedrs, which is named only if it is the only one, as when two controllers handle the same federation.
fn last_writer(live: &Value) -> Option<String> {
    let writers = live["metadata"]["managedFields"].as_array()?;
    let of_spec = writers
        .iter()
        .filter(|writer| writer["fieldsV1"].get("f:spec").is_some());
    let last = of_spec.max_by_key(|writer| {
        (
            writer["time"].as_str(),
            writer["manager"] != names::FIELD_MANAGER,
        )
    })?;
    last["manager"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn f29_the_last_writer_of_the_spec_is_named() {
        let entry = |manager: &str, time: &str, field: &str| json!({ "manager": manager, "time": time, "fieldsV1": { field: { "f:replicas": {} } } });
        let (early, late) = ("2026-11-01T00:00:00Z", "2026-11-01T00:00:01Z");
        for (entries, expected) in [
            (vec![], None),
            (vec![entry("fedrs", early, "f:spec")], Some("fedrs")),
            (
                vec![
                    entry("kubectl", late, "f:spec"),
                    entry("fedrs", early, "f:spec"),
                    entry("kube-controller-manager", late, "f:status"),
                ],
                Some("kubectl"),
            ),
            (
                vec![
                    entry("kubectl", late, "f:spec"),
                    entry("fedrs", late, "f:spec"),
                ],
                Some("kubectl"),
            ),
            (
                vec![
                    entry("kubectl", early, "f:spec"),
                    entry("fedrs", late, "f:spec"),
                ],
                Some("fedrs"),
            ),
        ] {
            let live = json!({ "metadata": { "managedFields": entries } });
            assert_eq!(last_writer(&live).as_deref(), expected, "{live}");
        }
        assert_eq!(last_writer(&json!({})), None);
    }
}
