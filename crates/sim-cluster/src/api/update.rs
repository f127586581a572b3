//! Replacing and modifying objects, and their `status`.
//!
//! ```text
//! update (PUT)  ---.
//! modify (closure) +-> same object? version? -> what must stay -> admission -> generation
//! patch (http)  ---'        -> unchanged? nothing : last finalizer gone? removed : stored -> lifecycle
//! ```

use serde_json::{Value, json};

use super::admission::{self, check_body};
use super::options::WriteOptions;
use super::request::{Origin, Target, Written};
use super::state::{Api, State};
use super::{kind_rules, lifecycle};
use crate::authorization::check_escalation;
use crate::builtin;
use crate::clock::Clock;
use crate::field::FieldError;
use crate::object::{self, Object, text};
use crate::resources::{Kind, convert, kinds};
use crate::status::Status;

impl Api {
    /// Replaces an object or one of its subresources (`status`, `finalize`).
    ///
    /// # Errors
    /// 409 if the object names a version that is not the current one, or another uid; 404, 422.
    pub fn update(
        &self,
        kind: &Kind,
        subresource: Option<&str>,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let name = text(&object, "/metadata/name").to_owned();
        let target = Target {
            kind,
            subresource,
            namespace,
            name: &name,
        };
        Ok(self.update_written(target, object, options)?.object)
    }

    /// [`Api::update`] that returns the warnings as well. Creates an absent object where the kind allows it.
    pub(crate) fn update_written(
        &self,
        target: Target<'_>,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let options = self.resolved(options);
        let clock = self.clock();
        self.with_state(|state| {
            let Target {
                kind,
                namespace,
                name,
                ..
            } = target;
            match state.store.get(kind, namespace, name).cloned() {
                Some(old) => state.replace(clock, target, &old, object, &options, Origin::Written),
                None if target.subresource.is_none() && kind_rules::creates_on_update(kind) => {
                    let uid = text(&object, "/metadata/uid");
                    if !uid.is_empty() {
                        return Err(another_object(target, uid, ""));
                    }
                    state.authorize_creation(target, &options)?;
                    let mut object = object;
                    object::remove_metadata(&mut object, "resourceVersion");
                    state.create(clock, kind, namespace, object, &options, Origin::Written)
                }
                None => Err(Status::not_found(kind, name)),
            }
        })
    }

    /// Reads an object, lets `change` edit it, and writes it back in one step. An edit that changes nothing keeps the
    /// resource version.
    pub fn modify(
        &self,
        kind: &Kind,
        subresource: Option<&str>,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Object, Status> {
        let target = Target {
            kind,
            subresource,
            namespace,
            name,
        };
        let options = WriteOptions::default();
        let written = self.modify_written(target, &options, |object| {
            change(object);
            Ok(())
        })?;
        Ok(written.object)
    }

    /// Changes values that the cluster itself changes every few seconds, as in a heartbeat. Nothing is checked or recorded: the
    /// object has these fields from the same manager, and they keep their types.
    pub(crate) fn touch(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Status> {
        self.with_state(|state| {
            let old = state.store.get(kind, namespace, name);
            let old = old.ok_or_else(|| Status::not_found(kind, name))?;
            let mut object = Value::clone(old);
            change(&mut object);
            state.store.put(kind, namespace, name, object);
            Ok(())
        })
    }

    /// [`Api::modify`] with options, for edits that can fail.
    pub(crate) fn modify_written(
        &self,
        target: Target<'_>,
        options: &WriteOptions,
        change: impl FnOnce(&mut Value) -> Result<(), Status>,
    ) -> Result<Written, Status> {
        let options = self.resolved(options);
        self.with_state(|state| {
            let Target {
                kind,
                namespace,
                name,
                ..
            } = target;
            let old = state.store.get(kind, namespace, name).cloned();
            let old = old.ok_or_else(|| Status::not_found(kind, name))?;
            let old = convert::to_version(kind, &old);
            let mut object = Value::clone(&old);
            change(&mut object)?;
            state.replace(
                self.clock(),
                target,
                &old,
                object,
                &options,
                Origin::Written,
            )
        })
    }
}

impl State {
    /// Replaces `old` with `object`.
    pub(crate) fn replace(
        &mut self,
        clock: &Clock,
        target: Target<'_>,
        old: &Object,
        mut object: Value,
        options: &WriteOptions,
        origin: Origin<'_>,
    ) -> Result<Written, Status> {
        let Target {
            kind,
            namespace,
            name,
            ..
        } = target;
        // The old and the new object are compared in one API version.
        let old = &convert::to_version(kind, old);
        check_body(kind, namespace, &mut object)?;
        check_same_object(target, old, &object, origin)?;
        if let Some(user) = &options.user {
            check_escalation(&self.store, user, kind, Some(old), &object)?;
        }
        keep_identity(old, &mut object);
        keep_what_others_write(target, old, &mut object);
        check_finalizers(kind, name, old, &object)?;
        let warnings = admission::prepare_update(clock, target, old, &mut object, options, origin)?;
        bump_generation(kind, target.subresource, old, &mut object);
        let answer = |object| Written {
            object,
            warnings,
            created: false,
        };
        if object == **old {
            return Ok(answer(Object::clone(old)));
        }
        if options.dry_run {
            return Ok(answer(object.into()));
        }
        if is_finished(kind, &object) {
            // As in the API server, the last event shows the state before this write.
            self.store.remove(kind, namespace, name);
            lifecycle::after_remove(self, clock, kind, old);
            return Ok(answer(object.into()));
        }
        let stored = self.store.put(kind, namespace, name, object);
        lifecycle::after_put(self, clock, kind, &stored);
        Ok(answer(stored))
    }
}

/// The body must be of this object: its name, its uid and, if the body has one, its resource version.
fn check_same_object(
    target: Target<'_>,
    old: &Value,
    object: &Value,
    origin: Origin<'_>,
) -> Result<(), Status> {
    let Target { kind, name, .. } = target;
    let given_name = text(object, "/metadata/name");
    if given_name.is_empty() {
        return Err(Status::nameless(name));
    }
    if given_name != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given_name}) does not match the name on the URL ({name})"
        )));
    }
    let (uid, is) = (text(object, "/metadata/uid"), text(old, "/metadata/uid"));
    if !uid.is_empty() && uid != is {
        return Err(match origin {
            Origin::Written => another_object(target, uid, is),
            Origin::Patched(_) | Origin::Applied => {
                let cause = FieldError::invalid("metadata.uid", json!(uid), "field is immutable");
                twice(kind, name, cause)
            }
        });
    }
    let version = text(object, "/metadata/resourceVersion");
    if version.is_empty() || version == "0" {
        if kind_rules::updates_unconditionally(kind) {
            return Ok(());
        }
        let cause = FieldError::invalid(
            "metadata.resourceVersion",
            json!(0),
            "must be specified for an update",
        );
        // This message names the resource where others name the kind.
        let resource = Kind::of_body(&kind.group, &kind.plural);
        return Err(Status::invalid(&resource, name, &[cause]));
    }
    if version.parse::<u64>().is_err() {
        let cause = FieldError::invalid(
            "metadata.resourceVersion",
            json!(version),
            "strconv.ParseUint: invalid syntax",
        );
        return Err(Status::invalid(kind, name, &[cause]));
    }
    if version != text(old, "/metadata/resourceVersion") {
        return Err(Status::modified(kind, name));
    }
    Ok(())
}

/// 409 for a PUT with another uid, or of an object that no longer exists: with the message of the storage layer.
fn another_object(target: Target<'_>, uid: &str, is: &str) -> Status {
    let key = target.kind.storage_key(target.namespace, target.name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {uid}, UID in object meta: {is}"
    );
    Status::conflict(target.kind, target.name, &why)
}

/// 422 for invalid metadata, which the API server reports twice: it validates metadata for all kinds and for this kind.
fn twice(kind: &Kind, name: &str, error: FieldError) -> Status {
    Status::invalid(kind, name, &[error.clone(), error])
}

/// Restores the fields that no update changes.
fn keep_identity(old: &Value, object: &mut Value) {
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        object::keep_metadata(object, old, field);
    }
    object::remove_metadata(object, "selfLink");
    if object["metadata"].get("generateName").is_none() {
        object::keep_metadata(object, old, "generateName");
    }
}

/// An update of the object does not change `status`; an update of `status` changes nothing else.
fn keep_what_others_write(target: Target<'_>, old: &Value, object: &mut Value) {
    let kind = target.kind;
    match target.subresource {
        None => {
            if kind.has_subresource("status") {
                take_field(object, old, "status");
            }
            if *kind == *kinds::NAMESPACES {
                object["spec"] = old["spec"].clone();
            }
        }
        Some("status") => {
            restore_but(&["metadata", "status"], object, old);
            if kind.is_custom() || kind_rules::keeps_metadata_on_status(kind) {
                restore_but(
                    &["managedFields"],
                    &mut object["metadata"],
                    &old["metadata"],
                );
            } else if *kind == *kinds::PODS {
                object::keep_metadata(object, old, "ownerReferences");
            } else if *kind == *kinds::DEPLOYMENTS {
                object::keep_metadata(object, old, "labels");
            }
        }
        // Only the resources of containers: what is beside them is in `builtin::prepare_update`.
        Some("resize") => restore_but(&["spec"], object, old),
        Some("finalize") => {
            let finalizers = object["spec"]["finalizers"].clone();
            *object = old.clone();
            object["spec"]["finalizers"] = finalizers;
        }
        Some(_) => {}
    }
}

/// Restores every field of `object` from `old`, except these. Copies only what differs.
fn restore_but(these: &[&str], object: &mut Value, old: &Value) {
    let (Some(fields), Some(old)) = (object.as_object_mut(), old.as_object()) else {
        return;
    };
    let stays = |field: &str| these.contains(&field);
    fields.retain(|field, _| stays(field) || old.contains_key(field));
    for (field, before) in old.iter().filter(|(field, _)| !stays(field)) {
        if fields.get(field) != Some(before) {
            fields.insert(field.clone(), before.clone());
        }
    }
}

fn take_field(object: &mut Value, old: &Value, field: &str) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Rejects new finalizers on an object that is being deleted.
fn check_finalizers(kind: &Kind, name: &str, old: &Value, object: &Value) -> Result<(), Status> {
    if !object::is_terminating(old) {
        return Ok(());
    }
    match builtin::added_finalizers(old, object) {
        Some(error) => Err(twice(kind, name, error)),
        None => Ok(()),
    }
}

/// Increments the generation if anything but metadata and status changes.
fn bump_generation(kind: &Kind, subresource: Option<&str>, old: &Value, object: &mut Value) {
    if matches!(subresource, Some("status" | "binding")) || !kind_rules::has_generation(kind) {
        return;
    }
    let ignored = |field: &str| {
        matches!(field, "metadata" | "apiVersion" | "kind")
            || (field == "status" && kind.has_subresource("status"))
    };
    let same = {
        // Deployments pass annotations on to their ReplicaSets, so these count as well.
        let annotations = |object: &Value| object["metadata"].get("annotations").cloned();
        let same_annotations =
            *kind != *kinds::DEPLOYMENTS || annotations(old) == annotations(object);
        let before = old.as_object().into_iter().flatten();
        let after = object.as_object().into_iter().flatten();
        let before = before.filter(|(field, _)| !ignored(field));
        before.eq(after.filter(|(field, _)| !ignored(field))) && same_annotations
    };
    if !same {
        object["metadata"]["generation"] = json!(object::generation(old) + 1);
    }
}

/// Whether nothing holds an object that is being deleted any longer.
fn is_finished(kind: &Kind, object: &Value) -> bool {
    let held = *kind == *kinds::NAMESPACES
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
    object::is_terminating(object)
        && object::deletion_grace_period(object).unwrap_or(0) == 0
        && object::finalizers(object).is_empty()
        && !held
}
