//! Subresources that are not a part of the object: `scale`, `binding`. Evictions have a module of their own.

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::patch::change;
use super::request::{Patch, Target};
use super::state::Api;
use crate::field::FieldError;
use crate::object::{self, Object, text};
use crate::resources::{Kind, ScalePaths, kinds};
use crate::selectors::object as selector;
use crate::status::Status;

/// A write to `scale`.
#[derive(Clone, Debug)]
pub(crate) enum ScaleWrite<'a> {
    Put(&'a Value),
    Patch(&'a Patch),
}

impl Api {
    /// The `Scale` of an object.
    pub fn scale(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Value, Status> {
        let object = self.get(kind, namespace, name)?;
        Ok(to_scale(&object, &paths(kind)))
    }

    /// Writes the `Scale` of an object, which sets its number of replicas.
    pub(crate) fn write_scale(
        &self,
        target: Target<'_>,
        write: &ScaleWrite<'_>,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let paths = paths(target.kind);
        let written = self.modify_written(target, options, |object| {
            let mut scale = to_scale(object, &paths);
            match write {
                ScaleWrite::Put(body) => scale = Value::clone(body),
                ScaleWrite::Patch(patch) => change(target.kind, &mut scale, patch)?,
            }
            let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
            // The schema of a custom resource rejects negative numbers itself.
            if replicas < 0 && !target.kind.is_custom() {
                return Err(negative(target.name, replicas));
            }
            check_same_scale(target, object, &scale)?;
            let version = &scale["metadata"]["resourceVersion"];
            object["metadata"]["resourceVersion"] = if version.is_string() {
                version.clone()
            } else {
                object["metadata"]["resourceVersion"].clone()
            };
            object::set(object, &paths.spec_replicas, json!(replicas));
            Ok(())
        })?;
        Ok(to_scale(&written.object, &paths))
    }

    /// Binds a pod to a node.
    ///
    /// # Errors
    /// 404; 409 if the pod is bound already or is being deleted.
    pub fn bind(
        &self,
        namespace: &str,
        pod: &str,
        node: &str,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let target = Target {
            kind: &kinds::PODS,
            subresource: Some("binding"),
            namespace,
            name: pod,
        };
        let now = self.clock().now_time();
        let written = self.modify_written(target, options, |object| {
            let refuse = |why: &str| {
                let mut status = Status::conflict(&kinds::PODS, pod, why);
                let from = "Operation cannot be fulfilled on pods ";
                status.message = status.message.replacen(
                    from,
                    "Operation cannot be fulfilled on pods/binding ",
                    1,
                );
                if let Some(details) = &mut status.details {
                    "pods/binding".clone_into(&mut details.kind);
                }
                Err(status)
            };
            if object::is_terminating(object) {
                return refuse(&format!(
                    "pod {pod} is being deleted, cannot be assigned to a host"
                ));
            }
            let bound = text(object, "/spec/nodeName");
            if !bound.is_empty() {
                return refuse(&format!("pod {pod} is already assigned to node {bound:?}"));
            }
            object["spec"]["nodeName"] = json!(node);
            object::put_condition(
                object,
                json!({"type": "PodScheduled", "status": "True",
                "lastProbeTime": null, "lastTransitionTime": now}),
            );
            Ok(())
        })?;
        Ok(written.object)
    }
}

/// A `Scale` with a name or uid must have those of this object.
fn check_same_scale(target: Target<'_>, object: &Value, scale: &Value) -> Result<(), Status> {
    let given = text(scale, "/metadata/name");
    if !given.is_empty() && given != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let (uid, is) = (text(scale, "/metadata/uid"), text(object, "/metadata/uid"));
    if uid.is_empty() || uid == is {
        return Ok(());
    }
    let named = Kind::of_body(&target.kind.group, &format!("{}/scale", target.kind.plural));
    let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {is}");
    Err(Status::conflict(&named, target.name, &why))
}

fn negative(name: &str, replicas: i64) -> Status {
    let scale = Kind::of_body("autoscaling", "Scale");
    let cause = FieldError::invalid(
        "spec.replicas",
        json!(replicas),
        "must be greater than or equal to 0",
    );
    Status::invalid(&scale, name, &[cause])
}

/// The paths of the fields that `scale` shows; built-in kinds have those of ReplicaSets.
fn paths(kind: &Kind) -> ScalePaths {
    let custom = kind.custom.as_ref().and_then(|custom| custom.scale.clone());
    custom.unwrap_or_else(|| ScalePaths {
        spec_replicas: "/spec/replicas".to_owned(),
        status_replicas: "/status/replicas".to_owned(),
        label_selector: None,
    })
}

fn to_scale(object: &Value, paths: &ScalePaths) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": {"replicas": number(&paths.status_replicas).unwrap_or(0)},
    });
    // Go leaves out a zero.
    if let Some(replicas) = number(&paths.spec_replicas).filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = json!(replicas);
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = metadata.get(field) {
            scale["metadata"][field] = value.clone();
        }
    }
    let selector = match &paths.label_selector {
        Some(pointer) => text(object, pointer).to_owned(),
        None => selector::to_query(&object["spec"]["selector"]),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}
