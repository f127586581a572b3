//! Carries out a plan: `Plan -> writes of ReplicaSets, events, revision and status of the Deployment`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::limits::Limits;
use super::plan::{Next, Plan, Write, next};
use super::progress;
use super::revisions::{first_annotations, replicas_annotations};
use super::scaling::Resize;
use super::status::Status as DeploymentStatus;
use super::template::new_set;
use super::views::{Deployment, REVISION, Set};
use crate::controllers::context::{Context, Deletion, ignore_not_found, is_namespace_terminating};
use crate::controllers::event_correlator::NewEvent;
use crate::object::name;
use crate::resources::kinds;
use crate::status::Status;

const SOURCE: &str = "deployment-controller";
/// The field manager of the controller's writes.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// Carries out the writes in their order, up to the first that fails. Returns when to look again.
pub(super) fn carry_out(
    context: &mut Context,
    deployment: Deployment<'_>,
    plan: Plan<'_>,
) -> Result<Option<Timestamp>, Status> {
    for write in plan.writes {
        match write {
            Write::Update {
                set,
                annotations,
                min_ready_seconds,
            } => {
                context.edit(MANAGER, (&kinds::REPLICA_SETS, None), set.0, |set| {
                    set["metadata"]["annotations"] = json!(annotations);
                    // Go leaves out a zero.
                    set["spec"]["minReadySeconds"] = match min_ready_seconds {
                        0 => Value::Null,
                        seconds => json!(seconds),
                    };
                })?;
            }
            Write::Create { revision, replicas } => {
                create(context, deployment, revision, replicas)?;
            }
            Write::Resize(change) => resize(context, deployment, change)?,
            Write::Delete(Set(set)) => {
                let deleted = context.delete(&kinds::REPLICA_SETS, set, Deletion::default());
                ignore_not_found(deleted)?;
            }
        }
    }
    if let Some(next) = plan.next {
        write(context, deployment, next)?;
    }
    Ok(plan.look_again)
}

/// Writes the replicas of a ReplicaSet, and the annotations that belong to them.
fn resize(
    context: &mut Context,
    deployment: Deployment<'_>,
    Resize { set, from, to }: Resize<'_>,
) -> Result<(), Status> {
    let annotations = replicas_annotations(deployment, Limits::of(deployment));
    context.edit(MANAGER, (&kinds::REPLICA_SETS, None), set.0, |set| {
        set["spec"]["replicas"] = json!(to);
        for (key, value) in annotations {
            set["metadata"]["annotations"][key] = value;
        }
    })?;
    if from != to {
        let direction = if from < to { "up" } else { "down" };
        let name = set.name();
        let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
        note(context, deployment, "Normal", "ScalingReplicaSet", &message);
    }
    Ok(())
}

/// Creates the new ReplicaSet. If another object has its name, the next attempt uses another hash.
fn create(
    context: &mut Context,
    deployment: Deployment<'_>,
    revision: i64,
    replicas: i64,
) -> Result<(), Status> {
    let annotations = first_annotations(deployment, Limits::of(deployment), revision);
    let set = new_set(deployment, replicas, &annotations);
    let (set_name, now) = (name(&set).to_owned(), context.now());
    match context.create(MANAGER, &kinds::REPLICA_SETS, set) {
        Ok(_) => {
            if replicas > 0 {
                let message = format!("Scaled up replica set {set_name} from 0 to {replicas}");
                note(context, deployment, "Normal", "ScalingReplicaSet", &message);
            }
            let status = progress::created(deployment, &set_name, now);
            let status = status.unwrap_or_else(|| DeploymentStatus::of(deployment));
            match next(deployment, Some(&revision.to_string()), status) {
                Some(next) => write(context, deployment, next),
                None => Ok(()),
            }
        }
        Err(error) if error.reason == "AlreadyExists" => {
            let mut status = DeploymentStatus::of(deployment);
            status.collisions = Some(status.collisions.unwrap_or_default() + 1);
            write_status(context, deployment, status)?;
            Err(error)
        }
        // A terminating namespace accepts no ReplicaSets: there is nothing left to do.
        Err(error) if is_namespace_terminating(&error) => Ok(()),
        Err(error) => {
            let why = &error.message;
            let message = format!("Failed to create new replica set {set_name:?}: {why}");
            if let Some(status) = progress::not_created(deployment, &message, now) {
                // The error of the creation is the one to report.
                let _ = write_status(context, deployment, status);
            }
            note(
                context,
                deployment,
                "Warning",
                "ReplicaSetCreateError",
                &message,
            );
            Err(error)
        }
    }
}

fn write_status(
    context: &Context,
    deployment: Deployment<'_>,
    status: DeploymentStatus,
) -> Result<(), Status> {
    match next(deployment, None, status) {
        Some(next) => write(context, deployment, next),
        None => Ok(()),
    }
}

fn write(context: &Context, deployment: Deployment<'_>, next: Next) -> Result<(), Status> {
    let target = (&*kinds::DEPLOYMENTS, Some("status"));
    ignore_not_found(
        context.edit(MANAGER, target, deployment.0, |object: &mut Value| {
            object["status"] = next.status;
            if let Some(revision) = next.revision {
                object["metadata"]["annotations"][REVISION] = json!(revision);
            }
        }),
    )
}

fn note(
    context: &mut Context,
    deployment: Deployment<'_>,
    event_type: &str,
    reason: &str,
    message: &str,
) {
    let event = NewEvent {
        component: SOURCE,
        event_type,
        reason,
        message,
    };
    context.record_event(&kinds::DEPLOYMENTS, deployment.0, event);
}
