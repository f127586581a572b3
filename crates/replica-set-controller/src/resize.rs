//! Other CPU and memory in a running pod, through its subresource `resize` (L12), step by step.
//!
//! ```text
//! Patch: labels, images, the record -> Due -> Resize -> Pending: the kubelet -> Settled
//!                                       |                 |- Deferred: the node has no room now
//!                                       '- rejected: 403, 404, 422 -> recreated <- Infeasible: it never has
//! ```
//!
//! The record of the update in place, an annotation of the pod, says what the pod is to get. So another leader sends the same
//! patch, and a pod that has the label of a template without its resources is known as such.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::resources::{
    QualityOfService, RESIZABLE, Resources, TemplateResources, amount, template_amount,
};

/// A container as the status of a pod shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Container<'a> {
    /// The name.
    pub name: &'a str,
    /// The id; `None` if it has not been started.
    pub id: Option<&'a str>,
    /// The resources in the spec.
    pub wanted: Option<Resources>,
    /// The resources that it has; `None` if its kubelet can't change them.
    pub resources: Option<Resources>,
}

/// The resources that a container gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerResize {
    /// What it requests of CPU and memory, as quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Its limits of CPU and memory, as quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Whether its `resizePolicy` restarts it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// Whether it is an init container that runs beside the others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sidecar: bool,
}

/// How far the resize of a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// It has the resources, or nobody asked for others.
    Settled,
    /// The API server has not been asked yet.
    Due {
        /// When the pod was patched.
        since: Timestamp,
    },
    /// The kubelet has still to carry it out.
    Pending {
        /// When the pod was patched.
        since: Timestamp,
        /// What it waits for.
        wait: ResizeWait,
    },
    /// The node can't: the pod is recreated.
    Infeasible,
}

/// What a resize waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeWait {
    /// The kubelet.
    Kubelet,
    /// Room on the node: `PodResizePending` is `Deferred`.
    Room,
    /// The kubelet, which has failed so far: `PodResizeInProgress` has an `Error`.
    Retry,
}

/// What a pod shows of its resize.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResizeStatus<'a> {
    /// Its containers, with their resources.
    pub containers: &'a [Container<'a>],
    /// The generation of its spec; `None` before Kubernetes 1.33.
    pub generation: Option<i64>,
    /// Whether the status is about this generation, if it says so at all.
    pub is_observed: bool,
    /// The reason of the condition `PodResizePending`, while it holds.
    pub pending: Option<&'a str>,
    /// The reason of the condition `PodResizeInProgress`, while it holds.
    pub in_progress: Option<&'a str>,
}

impl ContainerResize {
    /// What brings a container from the resources `from` to `to`; `None` if the API server would not, or not in a running pod: only
    /// CPU and memory change, and none of them is removed.
    pub(crate) fn between(from: &Value, to: &Value, policy: &Value) -> Option<Self> {
        let [from, to] = [from, to].map(TemplateResources::read);
        let (from, to) = (from?, to?);
        if from.others != to.others {
            return None;
        }
        let requests = changed(&from.requests, &to.requests)?;
        let limits = changed(&from.limits, &to.limits)?;
        let policy = policy.as_array().map(Vec::as_slice).unwrap_or_default();
        let restarts = policy.iter().any(|policy| {
            let resource = policy["resourceName"].as_str().unwrap_or_default();
            policy["restartPolicy"] == "RestartContainer"
                && (requests.contains(resource) || limits.contains(resource))
        });
        Some(Self {
            requests: texts(&to.requests),
            limits: texts(&to.limits),
            restarts,
            is_sidecar: false,
        })
    }

    /// The container in a patch of the pod.
    fn patch(&self, name: &str) -> Value {
        let amounts = [("requests", &self.requests), ("limits", &self.limits)];
        let amounts = amounts
            .into_iter()
            .filter(|(_, amounts)| !amounts.is_empty());
        let resources: Map<_, _> = amounts
            .map(|(of, amounts)| (of.to_owned(), json!(amounts)))
            .collect();
        json!({ "name": name, "resources": resources })
    }

    fn wanted(&self) -> Resources {
        let amounts = |of: &BTreeMap<String, String>| {
            let [cpu, memory] = RESIZABLE.map(|name| of.get(name).and_then(|text| amount(text)));
            crate::resources::Amounts { cpu, memory }
        };
        Resources {
            requests: amounts(&self.requests),
            limits: amounts(&self.limits),
        }
    }
}

/// The resources that change; `None` if one is removed, or can't change.
fn changed<'m>(from: &Map<String, Value>, to: &'m Map<String, Value>) -> Option<BTreeSet<&'m str>> {
    let is_kept = from.keys().all(|name| to.contains_key(name));
    let differs = |name: &str, value: &Value| match from.get(name) {
        Some(before) if RESIZABLE.contains(&name) => {
            template_amount(before) != template_amount(value)
        }
        before => before != Some(value),
    };
    let changed = to.iter().filter(|(name, value)| differs(name, value));
    let changed: BTreeSet<_> = changed.map(|(name, _)| name.as_str()).collect();
    let is_resizable = changed.iter().all(|name| RESIZABLE.contains(name));
    (is_kept && is_resizable).then_some(changed)
}

fn texts(amounts: &Map<String, Value>) -> BTreeMap<String, String> {
    let resizable = RESIZABLE.iter().filter_map(|name| {
        let text = match amounts.get(*name)? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(((*name).to_owned(), text))
    });
    resizable.collect()
}

/// Whether containers of pods of the template spec `from` can get the resources of `to`, apart from what each of them allows: the
/// quality of service stays, and the pod itself has no resources.
pub(crate) fn is_possible(from: &Map<String, Value>, to: &Map<String, Value>) -> bool {
    let has_own =
        |spec: &Map<String, Value>| spec.get("resources").is_some_and(|own| !own.is_null());
    let quality = |spec: &Map<String, Value>| {
        let lists = ["containers", "initContainers"];
        let containers = lists.iter().filter_map(|list| spec.get(*list)?.as_array());
        let resources = containers.flatten().map(|container| {
            let resources = TemplateResources::read(&container["resources"])?;
            resources.amounts()
        });
        let resources: Option<Vec<_>> = resources.collect();
        Some(QualityOfService::of(resources?.iter()))
    };
    let before = quality(from);
    !has_own(from) && !has_own(to) && before.is_some() && before == quality(to)
}

/// The patch of the subresource `resize`, but for its preconditions.
pub(crate) fn patch(resizes: &BTreeMap<String, ContainerResize>) -> Value {
    let mut spec = Map::new();
    for (list, is_sidecar) in [("containers", false), ("initContainers", true)] {
        let containers = resizes.iter();
        let containers = containers.filter(|(_, resize)| resize.is_sidecar == is_sidecar);
        let containers: Vec<_> = containers
            .map(|(name, resize)| resize.patch(name))
            .collect();
        if !containers.is_empty() {
            spec.insert(list.to_owned(), containers.into());
        }
    }
    json!({ "spec": spec })
}

/// How far `resizes` are, which were recorded at `since` for the pod when its spec had the `generation`.
pub(crate) fn state(
    resizes: &BTreeMap<String, ContainerResize>,
    (since, generation): (Timestamp, Option<i64>),
    pod: &ResizeStatus<'_>,
) -> Resize {
    let all = |is: fn(&Container<'_>) -> Option<Resources>| {
        resizes.iter().all(|(name, resize)| {
            let mut containers = pod.containers.iter();
            let container = containers.find(|container| container.name == name);
            let resources = container.and_then(is);
            resources.is_some_and(|resources| resources.has(&resize.wanted()))
        })
    };
    let pending = |wait| Resize::Pending { since, wait };
    if resizes.is_empty() {
        return Resize::Settled;
    }
    if !all(|container| container.wanted) {
        let is_unchanged = generation
            .zip(pod.generation)
            .is_none_or(|(recorded, is)| is <= recorded);
        // Otherwise somebody has changed it since: pods may be edited directly (C4).
        return if is_unchanged {
            Resize::Due { since }
        } else {
            Resize::Settled
        };
    }
    if !pod.is_observed {
        return pending(ResizeWait::Kubelet);
    }
    match (pod.pending, pod.in_progress) {
        (Some("Infeasible"), _) => Resize::Infeasible,
        (Some(_), _) => pending(ResizeWait::Room),
        (None, Some("Error")) => pending(ResizeWait::Retry),
        (None, None) if all(|container| container.resources) => Resize::Settled,
        (None, _) => pending(ResizeWait::Kubelet),
    }
}
