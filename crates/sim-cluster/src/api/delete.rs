//! Deletion: finalizers, propagation, grace periods.
//!
//! ```text
//! preconditions -> grace period (pods) -> finalizers of the propagation policy
//!     -> something holds it? deletionTimestamp is set, it stays
//!     -> nothing? removed
//! ```
//! What follows (dependants, the pods of a node, the content of a namespace) is done by controllers.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::options::{DeleteOptions, Preconditions, Propagation};
use super::state::{Api, State};
use super::{kind_rules, lifecycle};
use crate::clock::{Clock, parse_time, to_time};
use crate::object::{self, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Object, text};
use crate::resources::{Kind, kinds};
use crate::status::Status;

/// The result of a deletion.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The last state of the object, or its current state if it still exists.
    pub object: Object,
    /// Whether the object has been removed.
    pub gone: bool,
}

impl Api {
    /// Deletes an object, or begins its deletion if a finalizer or a grace period delays it.
    ///
    /// # Errors
    /// 404; 409 if a precondition fails; 403 for namespaces that cannot be deleted.
    pub fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.with_state(|state| state.delete(self.clock(), kind, namespace, name, options))
    }
}

/// The grace period of a deletion.
enum Grace {
    /// The kind has none: only finalizers delay the deletion.
    None,
    /// This many seconds from now, or from when the deletion began.
    Set { until: String, seconds: i64 },
    /// It has begun, and the request does not shorten it.
    Running,
}

impl State {
    pub(crate) fn delete(
        &mut self,
        clock: &Clock,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let old = self.store.get(kind, namespace, name).cloned();
        let old = old.ok_or_else(|| Status::not_found(kind, name))?;
        check_preconditions(kind, name, &options.preconditions, &old)?;
        if *kind == *kinds::NAMESPACES
            && let Some(deleted) = self.terminate_namespace(clock, name, &old, options)?
        {
            return Ok(deleted);
        }
        if *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS
            && !object::is_terminating(&old)
            && !options.dry_run
        {
            let object = lifecycle::terminate_definition(self, clock, name, &old);
            return Ok(Deleted {
                object,
                gone: false,
            });
        }
        let grace = grace_of(clock, kind, &old, options);
        if matches!(grace, Grace::Running) {
            return Ok(Deleted {
                object: old,
                gone: false,
            });
        }
        let finalizers = finalizers_for(&old, options.propagation);
        let ends_now = !matches!(grace, Grace::Set { seconds, .. } if seconds > 0);
        let marked = self.mark_deleted(clock, kind, &old, grace, &finalizers, options.dry_run);
        let gone = ends_now && finalizers.is_empty();
        if !gone || options.dry_run {
            return Ok(Deleted {
                object: marked,
                gone,
            });
        }
        let last = self.store.remove(kind, namespace, name).unwrap_or(marked);
        lifecycle::after_remove(self, clock, kind, &last);
        Ok(Deleted { object: last, gone })
    }

    /// Marks an object as being deleted if a finalizer holds it or its kind has grace periods. Other objects are removed
    /// without a mark.
    fn mark_deleted(
        &mut self,
        clock: &Clock,
        kind: &Kind,
        old: &Object,
        grace: Grace,
        finalizers: &[String],
        dry_run: bool,
    ) -> Object {
        let held = !object::finalizers(old).is_empty() || !finalizers.is_empty();
        if !held && matches!(grace, Grace::None) {
            return Object::clone(old);
        }
        let mut object = Value::clone(old);
        object::set_finalizers(&mut object, finalizers);
        if let Grace::Set { until, seconds } = grace {
            mark(&mut object, &until, seconds);
        } else {
            mark_now(clock, &mut object);
        }
        if dry_run || object == **old {
            return object.into();
        }
        let (namespace, name) = (
            text(old, "/metadata/namespace"),
            text(old, "/metadata/name"),
        );
        let marked = self.store.put(kind, namespace, name, object);
        lifecycle::after_put(self, clock, kind, &marked);
        marked
    }

    /// Begins the termination of a namespace, which is removed once it has no finalizers.
    fn terminate_namespace(
        &mut self,
        clock: &Clock,
        name: &str,
        old: &Object,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, Status> {
        if matches!(name, "default" | "kube-system" | "kube-public") {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(&kinds::NAMESPACES, name, why));
        }
        let held = |object| {
            Ok(Some(Deleted {
                object,
                gone: false,
            }))
        };
        if object::is_terminating(old) {
            let finalizers = old["spec"]["finalizers"].as_array();
            if finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
                return held(Object::clone(old));
            }
            return Ok(None);
        }
        let mut object = Value::clone(old);
        let finalizers = finalizers_for(old, options.propagation);
        object::set_finalizers(&mut object, &finalizers);
        object["metadata"]["deletionTimestamp"] = json!(clock.now_time());
        object["status"]["phase"] = json!("Terminating");
        if options.dry_run {
            return held(object.into());
        }
        let stored = self.store.put(&kinds::NAMESPACES, "", name, object);
        held(stored)
    }
}

fn check_preconditions(
    kind: &Kind,
    name: &str,
    preconditions: &Preconditions,
    old: &Value,
) -> Result<(), Status> {
    let wanted = [
        (
            "UID",
            "deleted and then recreated",
            &preconditions.uid,
            "/metadata/uid",
        ),
        (
            "ResourceVersion",
            "modified",
            &preconditions.resource_version,
            "/metadata/resourceVersion",
        ),
    ];
    for (what, happened, wanted, pointer) in wanted {
        let is = text(old, pointer);
        if let Some(wanted) = wanted
            && wanted != is
        {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object \
                 might have been {happened}"
            );
            // This message names the kind where others name the resource.
            let named = Kind::of_body(&kind.group, &kind.kind);
            return Err(Status::conflict(&named, name, &why));
        }
    }
    Ok(())
}

/// Only pods have a grace period. One that has begun can only be shortened.
fn grace_of(clock: &Clock, kind: &Kind, old: &Value, options: &DeleteOptions) -> Grace {
    if !kind_rules::ends_gracefully(kind) {
        return Grace::None;
    }
    // A negative value means one second: kubectl does not send its --grace-period=-1.
    let asked = options
        .grace_period
        .map(|seconds| if seconds < 0 { 1 } else { seconds });
    if object::is_terminating(old) {
        let Some(running) = object::deletion_grace_period(old) else {
            return Grace::None;
        };
        let Some(asked) = asked.filter(|&asked| asked < running) else {
            return Grace::Running;
        };
        let ends = parse_time(text(old, "/metadata/deletionTimestamp")).unwrap_or(clock.now());
        let until = ends
            .saturating_sub(SignedDuration::from_secs(running - asked))
            .unwrap_or(ends);
        return Grace::Set {
            until: to_time(until),
            seconds: asked,
        };
    }
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64();
    let never_ran = text(old, "/spec/nodeName").is_empty();
    let has_ended = matches!(text(old, "/status/phase"), "Succeeded" | "Failed");
    let seconds = if never_ran || has_ended {
        0
    } else {
        asked.or(own).unwrap_or(30)
    };
    let until = clock
        .now()
        .saturating_add(SignedDuration::from_secs(seconds));
    Grace::Set {
        until: to_time(until.unwrap_or(clock.now())),
        seconds,
    }
}

fn mark(object: &mut Value, until: &str, seconds: i64) {
    if !object::is_terminating(object) && object::generation(object) > 0 {
        object["metadata"]["generation"] = json!(object::generation(object) + 1);
    }
    object["metadata"]["deletionTimestamp"] = json!(until);
    object["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
}

fn mark_now(clock: &Clock, object: &mut Value) {
    let since = text(object, "/metadata/deletionTimestamp").to_owned();
    let until = parse_time(&since).filter(|time| *time <= clock.now());
    mark(object, &until.map_or_else(|| clock.now_time(), to_time), 0);
}

/// The finalizers of an object, with those of the propagation policy.
fn finalizers_for(old: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let before = object::finalizers(old);
    let has = |finalizer: &str| before.iter().any(|each| each == finalizer);
    let orphan = match propagation {
        Some(policy) => policy == Propagation::Orphan,
        None => has(ORPHAN_FINALIZER),
    };
    let foreground = match propagation {
        Some(policy) => policy == Propagation::Foreground,
        None => !has(ORPHAN_FINALIZER) && has(FOREGROUND_FINALIZER),
    };
    let mut after: Vec<String> = (before.into_iter())
        .filter(|each| each != ORPHAN_FINALIZER && each != FOREGROUND_FINALIZER)
        .collect();
    if orphan {
        after.push(ORPHAN_FINALIZER.to_owned());
    }
    if foreground {
        after.push(FOREGROUND_FINALIZER.to_owned());
    }
    after
}
