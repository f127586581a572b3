//! Patches: an object is read, changed by the patch, and written as an update, in one step.
//!
//! Only server-side apply creates an absent object.

use serde_json::Value;

use super::admission;
use super::options::WriteOptions;
use super::request::{Origin, Patch, Target, Written};
use super::state::{Api, State};
use crate::clock::Clock;
use crate::object::{Object, text};
use crate::patch::{PatchError, json_patch, merge_patch, strategic_patch};
use crate::resources::{Kind, convert};
use crate::status::Status;

impl Api {
    /// Patches an object or one of its subresources.
    ///
    /// # Errors
    /// 404, 409 (conflicts of versions or, for apply, of field managers), 415 for a strategic patch of a custom
    /// kind, 422.
    pub fn patch(
        &self,
        kind: &Kind,
        subresource: Option<&str>,
        namespace: &str,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let target = Target {
            kind,
            subresource,
            namespace,
            name,
        };
        let options = self.resolved(options);
        self.with_state(|state| {
            let old = state.store.get(kind, namespace, name).cloned();
            match (old, patch) {
                (Some(old), _) => state.patch(self.clock(), target, &old, patch, &options),
                (None, Patch::Apply(object)) if subresource.is_none() => {
                    state.authorize_creation(target, &options)?;
                    state.apply_new(self.clock(), target, object, &options)
                }
                (None, _) => Err(Status::not_found(kind, name)),
            }
        })
    }
}

impl State {
    fn patch(
        &mut self,
        clock: &Clock,
        target: Target<'_>,
        old: &Object,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        if let Patch::Apply(applied) = patch {
            return self.apply(clock, target, old, applied, options);
        }
        let mut object = Value::clone(&convert::to_version(target.kind, old));
        change(target.kind, &mut object, patch)?;
        self.replace(clock, target, old, object, options, Origin::Patched(patch))
    }

    /// Server-side apply to an existing object.
    fn apply(
        &mut self,
        clock: &Clock,
        target: Target<'_>,
        old: &Object,
        applied: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        check_applied(target, applied)?;
        let version = text(applied, "/metadata/resourceVersion");
        if !version.is_empty() && version != text(old, "/metadata/resourceVersion") {
            return Err(Status::modified(target.kind, target.name));
        }
        let object = admission::apply(clock, target, Some(old), applied, options)?;
        self.replace(clock, target, old, object, options, Origin::Applied)
    }

    /// Server-side apply that creates an object.
    fn apply_new(
        &mut self,
        clock: &Clock,
        target: Target<'_>,
        applied: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        check_applied(target, applied)?;
        let uid = text(applied, "/metadata/uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Status::conflict(target.kind, target.name, &why));
        }
        let object = admission::apply(clock, target, None, applied, options)?;
        self.create(
            clock,
            target.kind,
            target.namespace,
            object,
            options,
            Origin::Applied,
        )
    }
}

/// An applied object that has a name must have that of the path.
fn check_applied(target: Target<'_>, applied: &Value) -> Result<(), Status> {
    let name = text(applied, "/metadata/name");
    if !name.is_empty() && name != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if applied
        .pointer("/metadata/managedFields")
        .is_some_and(|managed| !managed.is_null())
    {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// Applies a patch other than server-side apply to an object or a `Scale`.
pub(crate) fn change(kind: &Kind, object: &mut Value, patch: &Patch) -> Result<(), Status> {
    let changed = match patch {
        Patch::Json(operations) => json_patch(object, operations),
        Patch::Merge(patch) => merge_patch(object, patch),
        Patch::Strategic(patch) => match admission::type_of(kind) {
            Some(info) => strategic_patch(object, patch, info),
            None => merge_patch(object, patch),
        },
        Patch::Apply(applied) => merge_patch(object, applied),
    };
    changed.map_err(refusal)
}

fn refusal(error: PatchError) -> Status {
    match error {
        PatchError::Malformed(message) => Status::bad_request(message),
        PatchError::Broken(message) => Status::new(500, "", message),
        PatchError::TooLarge(message) => Status::new(413, "RequestEntityTooLarge", message),
        PatchError::Rejected(why) => {
            tracing::debug!(why, "a patch does not fit its object");
            let message = "the server rejected our request due to an error in our request";
            Status {
                details: Some(Box::default()),
                ..Status::new(422, "Invalid", message)
            }
        }
    }
}
