//! Resource quotas: a new object is checked and charged in one step.

use serde_json::Value;

use super::options::WriteOptions;
use super::state::State;
use crate::builtin::admission;
use crate::object::{Object, text};
use crate::resources::{Kind, kinds};
use crate::status::Status;

/// Charges a new object to the quotas of its namespace.
///
/// # Errors
/// 403 if the object exceeds a quota; nothing is charged then.
pub(crate) fn charge_quota(
    state: &mut State,
    kind: &Kind,
    namespace: &str,
    object: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    if !kind.namespaced || *kind == *kinds::RESOURCE_QUOTAS || *kind == *kinds::EVENTS {
        return Ok(());
    }
    let mut charged = Vec::new();
    for quota in state.store.list(&kinds::RESOURCE_QUOTAS, Some(namespace)) {
        // The API server rejects objects until the controller has counted: a charge before that would be overwritten.
        let used = admission::usage_from(&quota["status"]["used"]);
        let after = admission::check_quota(quota, &used, &kind.group, &kind.plural, object)
            .map_err(|why| {
                Status::forbidden(kind, text(object, "/metadata/name"), &why.to_string())
            })?;
        if after != used {
            charged.push((Object::clone(quota), after));
        }
    }
    if options.dry_run {
        return Ok(());
    }
    for (quota, used) in charged {
        let mut counted = Value::clone(&quota);
        counted["status"]["hard"] = quota["spec"]["hard"].clone();
        counted["status"]["used"] = admission::usage_to_value(&used);
        let name = text(&quota, "/metadata/name");
        state
            .store
            .put(&kinds::RESOURCE_QUOTAS, namespace, name, counted);
    }
    Ok(())
}
