//! Namespaces: the objects that each new one gets, and the deletion of the objects in a terminating one.
//!
//! ```text
//! new     -> ServiceAccount `default`, ConfigMap `kube-root-ca.crt`
//! deleted -> delete its pods, then all other objects -> conditions report what remains -> empty: remove the finalizer
//! ```

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::Propagation;
use crate::object::Object;
use crate::resources::{Kind, kinds};
use crate::status::Status;
use crate::store::Change;

use super::context::{Context, Deletion, ignore_not_found};
use super::controller::Controller;
use super::queue::Queue;
use crate::object::{Condition, is_terminating, list, name, set_condition};

const MANAGER: &str = "kube-controller-manager";
/// The finalizer of a namespace, which this controller removes once the namespace is empty.
const FINALIZER: &str = "kubernetes";

/// The controller's queue, by name.
#[derive(Debug)]
pub(crate) struct Namespaces {
    queue: Queue<String>,
    /// Only removals in terminating namespaces matter: each may be the last one.
    terminating: std::collections::BTreeSet<String>,
}

impl Namespaces {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
            terminating: std::collections::BTreeSet::new(),
        }
    }
}

fn furnish(context: &Context, namespace: &str) -> Result<(), Status> {
    let ca = context.settings.root_ca.as_str();
    let account = json!({"metadata": {"name": "default", "namespace": namespace}});
    let config = json!({
        "metadata": {"name": "kube-root-ca.crt", "namespace": namespace, "annotations": {
            "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                distributions of Kubernetes clusters.",
        }},
        "data": {"ca.crt": ca},
    });
    for (kind, object) in [
        (&*kinds::SERVICE_ACCOUNTS, account),
        (&*kinds::CONFIG_MAPS, config),
    ] {
        if context.api.get(kind, namespace, name(&object)).is_err() {
            context.create(MANAGER, kind, object)?;
        }
    }
    Ok(())
}

/// Type, status, reason and message.
type OwnCondition = (&'static str, &'static str, &'static str, String);

/// The objects that remain in a namespace.
#[derive(Debug, Default)]
struct Remaining {
    /// The number of objects of each resource.
    resources: BTreeMap<String, usize>,
    /// The number of objects with each finalizer.
    finalizers: BTreeMap<String, usize>,
}

fn empty(context: &Context, namespace: &Object) -> Result<(), Status> {
    let kinds = contained_kinds(context);
    let (pods, others): (Vec<&Kind>, Vec<&Kind>) =
        kinds.iter().partition(|kind| **kind == *kinds::PODS);
    let mut remaining = Remaining::default();
    for stage in [pods, others] {
        for kind in stage {
            delete_all(context, kind, name(namespace), &mut remaining)?;
        }
        // Pods are deleted first, so that the objects they depend on exist until then.
        if !remaining.resources.is_empty() {
            break;
        }
    }
    tell(context, namespace, &remaining)?;
    let held = list(namespace, "/spec/finalizers")
        .iter()
        .any(|finalizer| finalizer == FINALIZER);
    if remaining.resources.is_empty() && held {
        let target = (&*kinds::NAMESPACES, Some("finalize"));
        ignore_not_found(context.edit(MANAGER, target, namespace, |namespace| {
            if let Some(Value::Array(finalizers)) = namespace.pointer_mut("/spec/finalizers") {
                finalizers.retain(|finalizer| finalizer != FINALIZER);
            }
        }))?;
    }
    Ok(())
}

/// Reports in the namespace's status which objects remain.
fn tell(context: &Context, namespace: &Object, remaining: &Remaining) -> Result<(), Status> {
    let now = context.now();
    let target = (&*kinds::NAMESPACES, Some("status"));
    ignore_not_found(context.edit(MANAGER, target, namespace, |namespace| {
        for (kind, status, reason, message) in remaining.conditions() {
            let condition = Condition {
                kind,
                status,
                reason,
                message: &message,
            };
            set_condition(namespace, condition, now);
        }
    }))
}

/// The namespaced kinds, each storage once.
fn contained_kinds(context: &Context) -> Vec<Kind> {
    let mut seen = std::collections::BTreeSet::new();
    let all = context.api.kinds().into_iter();
    all.filter(|kind| kind.namespaced && seen.insert(kind.storage.clone()))
        .collect()
}

fn delete_all(
    context: &Context,
    kind: &Kind,
    namespace: &str,
    remaining: &mut Remaining,
) -> Result<(), Status> {
    let background = Deletion {
        propagation: Some(Propagation::Background),
        ..Deletion::default()
    };
    for object in context.api.list(kind, Some(namespace)) {
        if !is_terminating(&object) {
            ignore_not_found(context.delete(kind, &object, background))?;
        }
    }
    for object in context.api.list(kind, Some(namespace)) {
        *remaining
            .resources
            // A resource of the core group ends with a dot as well.
            .entry(format!("{}.{}", kind.plural, kind.group))
            .or_default() += 1;
        for finalizer in list(&object, "/metadata/finalizers")
            .iter()
            .filter_map(Value::as_str)
        {
            *remaining
                .finalizers
                .entry(finalizer.to_owned())
                .or_default() += 1;
        }
    }
    Ok(())
}

impl Remaining {
    /// All conditions, with the messages of the real controller.
    fn conditions(&self) -> [OwnCondition; 5] {
        let well = |kind, reason, message: &str| (kind, "False", reason, message.to_owned());
        [
            well(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            well(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            well(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            self.content(),
            self.held_content(),
        ]
    }

    fn content(&self) -> OwnCondition {
        let (status, reason, message) = if self.resources.is_empty() {
            let message = "All content successfully removed".to_owned();
            ("False", "ContentRemoved", message)
        } else {
            let counts = instances(&self.resources, "has");
            let message = format!("Some resources are remaining: {counts}");
            ("True", "SomeResourcesRemain", message)
        };
        ("NamespaceContentRemaining", status, reason, message)
    }

    fn held_content(&self) -> OwnCondition {
        let (status, reason, message) = if self.finalizers.is_empty() {
            let message = "All content-preserving finalizers finished".to_owned();
            ("False", "ContentHasNoFinalizers", message)
        } else {
            let counts = instances(&self.finalizers, "in");
            let message =
                format!("Some content in the namespace has finalizers remaining: {counts}");
            ("True", "SomeFinalizersRemain", message)
        };
        ("NamespaceFinalizersRemaining", status, reason, message)
    }
}

/// `pods has 2 resource instances, ...`.
fn instances(counts: &BTreeMap<String, usize>, has: &str) -> String {
    let counts = counts
        .iter()
        .map(|(what, count)| format!("{what} {has} {count} resource instances"));
    counts.collect::<Vec<_>>().join(", ")
}

impl Controller for Namespaces {
    type Key = String;
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<String> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, _world: &Context) {
        if change.kind == *kinds::NAMESPACES {
            match &change.new {
                Some(namespace) if is_terminating(namespace) => {
                    self.terminating.insert(change.name.clone());
                    self.queue.add(change.name.clone());
                }
                Some(_) if change.old.is_none() => self.queue.add(change.name.clone()),
                Some(_) => {}
                None => {
                    self.terminating.remove(&change.name);
                    self.queue.remove(&change.name);
                }
            }
        } else if self.terminating.contains(&change.namespace) {
            self.queue.add(change.namespace.clone());
        } else if change.new.is_none()
            && matches!(change.name.as_str(), "default" | "kube-root-ca.crt")
        {
            // Standard objects that a user deletes are created again.
            self.queue.add(change.namespace.clone());
        }
    }

    fn sync(&mut self, context: &mut Context, namespace: &String) -> Result<(), Status> {
        let Ok(object) = context.api.get(&kinds::NAMESPACES, "", namespace) else {
            return Ok(());
        };
        if is_terminating(&object) {
            empty(context, &object)
        } else {
            furnish(context, namespace)
        }
    }
}
