//! What it takes to bring a pod from one template to another (L12): a patch, or another pod.
//!
//! A patch keeps the pod's id, node and address. The API server lets the images of containers change, labels and annotations, and
//! tolerations be added; if the set asks for it, CPU and memory are changed as well (see [`resize`](crate::resize)). Everything
//! else recreates the pod, and so does what would have no effect in a running pod: the image of an init container that is done,
//! and labels or annotations that a container has read into its environment. The annotation of `kubectl rollout restart` asks for
//! other pods.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{PodTemplate, ResourceUpdates, annotations};
use serde_json::{Map, Value};

use crate::resize::{self, ContainerResize};

/// How a pod gets from one template to another.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The pod is patched.
    InPlace(Patch),
    /// The pod is recreated, because of these fields of the template.
    Recreate(Vec<String>),
}

/// What is patched in a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// New images, by container.
    pub images: BTreeMap<String, String>,
    /// New images, by init container that restarts always (a sidecar).
    pub sidecar_images: BTreeMap<String, String>,
    /// New CPU and memory, by container or sidecar.
    pub resizes: BTreeMap<String, ContainerResize>,
    /// Labels with their new values; `None` removes one.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations with their new values; `None` removes one.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Tolerations to add.
    pub tolerations: Vec<Value>,
}

impl Patch {
    /// The containers that the kubelet restarts.
    pub fn restarts(&self) -> impl Iterator<Item = &str> {
        let resized = self.resizes.iter().filter(|(name, resize)| {
            let has_image =
                self.images.contains_key(*name) || self.sidecar_images.contains_key(*name);
            resize.restarts && !has_image
        });
        let containers = self.new_images();
        containers.chain(resized.map(|(name, _)| name.as_str()))
    }

    /// The containers that get another image.
    pub(crate) fn new_images(&self) -> impl Iterator<Item = &str> {
        let containers = self.images.keys().chain(self.sidecar_images.keys());
        containers.map(String::as_str)
    }

    /// Whether it changes the spec of the pod by itself, without the resizes.
    pub(crate) fn changes_spec(&self) -> bool {
        self.new_images().next().is_some() || !self.tolerations.is_empty()
    }
}

impl Change {
    /// How a pod of the template `from` gets to `to`. Both are complete: what the controller adds to a template is in them.
    #[must_use]
    pub fn between(from: &PodTemplate, to: &PodTemplate, resources: ResourceUpdates) -> Self {
        let mut patch = Patch {
            labels: changed(&from.metadata.labels, &to.metadata.labels),
            annotations: changed(&from.metadata.annotations, &to.metadata.annotations),
            ..Patch::default()
        };
        let mut fields = Vec::new();
        let none = Map::new();
        let [from, to] = [from, to].map(|template| template.spec.as_object().unwrap_or(&none));
        let resizes = resources == ResourceUpdates::Resize && resize::is_possible(from, to);
        let names: BTreeSet<_> = from.keys().chain(to.keys()).map(String::as_str).collect();
        for name in names {
            let values = [value(from, name), value(to, name)];
            match name {
                "containers" => {
                    let changes = (&mut patch.images, &mut patch.resizes);
                    compare_containers(name, values, resizes, changes, &mut fields);
                }
                "initContainers" => {
                    let changes = (&mut patch.sidecar_images, &mut patch.resizes);
                    compare_containers(name, values, resizes, changes, &mut fields);
                }
                "tolerations" => match added(values) {
                    Some(added) => patch.tolerations = added,
                    None => fields.push("spec.tolerations".to_owned()),
                },
                _ if values[0] == values[1] => {}
                _ => fields.push(format!("spec.{name}")),
            }
        }
        fields.extend(read_by_containers(&patch, to));
        let restarted = patch.annotations.get(annotations::RESTARTED_AT);
        if restarted.is_some_and(Option::is_some) {
            fields.push(format!(
                "metadata.annotations[{}]",
                annotations::RESTARTED_AT
            ));
        }
        if fields.is_empty() {
            Self::InPlace(patch)
        } else {
            Self::Recreate(fields)
        }
    }
}

/// The field; null is the same as none.
fn value<'v>(object: &'v Map<String, Value>, name: &str) -> &'v Value {
    object.get(name).unwrap_or(&Value::Null)
}

fn changed(
    from: &BTreeMap<String, String>,
    to: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let removed = from.keys().filter(|key| !to.contains_key(*key));
    let removed = removed.map(|key| (key.clone(), None));
    let set = to
        .iter()
        .filter(|(key, value)| from.get(*key) != Some(value));
    let set = set.map(|(key, value)| (key.clone(), Some(value.clone())));
    removed.chain(set).collect()
}

/// Adds the changed images of containers that can get a new one, their resources if these may be changed, and the fields in which
/// containers differ otherwise.
fn compare_containers(
    list: &str,
    values: [&Value; 2],
    may_resize: bool,
    (images, resizes): (
        &mut BTreeMap<String, String>,
        &mut BTreeMap<String, ContainerResize>,
    ),
    fields: &mut Vec<String>,
) {
    let is_init = list == "initContainers";
    let [from, to] = values.map(|value| value.as_array().map(Vec::as_slice).unwrap_or_default());
    let name_of = |container: &Value| container["name"].as_str().unwrap_or_default().to_owned();
    let is_same_list = from.iter().map(name_of).eq(to.iter().map(name_of));
    if !is_same_list {
        return fields.push(format!("spec.{list}"));
    }
    for (from, to) in from.iter().zip(to) {
        let container = name_of(to);
        let (Some(from), Some(to)) = (from.as_object(), to.as_object()) else {
            continue;
        };
        let runs = !is_init || is_sidecar(to);
        let resize = || {
            let [before, after] = [from, to].map(|container| value(container, "resources"));
            let resize = ContainerResize::between(before, after, value(to, "resizePolicy"))?;
            Some(ContainerResize {
                is_sidecar: is_init,
                ..resize
            })
        };
        let names: BTreeSet<_> = from.keys().chain(to.keys()).collect();
        for name in names
            .into_iter()
            .filter(|name| value(from, name) != value(to, name))
        {
            let resize = (runs && may_resize && name == "resources").then(resize);
            match (&**name, value(to, name), resize.flatten()) {
                ("image", Value::String(image), _) if runs => {
                    images.insert(container.clone(), image.clone());
                }
                (_, _, Some(resize)) => {
                    resizes.insert(container.clone(), resize);
                }
                _ => fields.push(format!("spec.{list}[{container}].{name}")),
            }
        }
    }
}

fn is_sidecar(container: &Map<String, Value>) -> bool {
    value(container, "restartPolicy") == "Always"
}

/// The tolerations that are added; `None` if others are changed or removed.
fn added([from, to]: [&Value; 2]) -> Option<Vec<Value>> {
    let [from, to] =
        [from, to].map(|value| value.as_array().map(Vec::as_slice).unwrap_or_default());
    let are_kept = from.iter().all(|toleration| to.contains(toleration));
    let new = to.iter().filter(|toleration| !from.contains(toleration));
    are_kept.then(|| new.cloned().collect())
}

/// Changed labels and annotations that a container reads into its environment, which is set once, when it starts.
fn read_by_containers(patch: &Patch, spec: &Map<String, Value>) -> Vec<String> {
    let lists = ["containers", "initContainers"];
    let containers = lists.iter().filter_map(|list| value(spec, list).as_array());
    let variables = containers
        .flatten()
        .filter_map(|container| container["env"].as_array())
        .flatten();
    let paths: BTreeSet<_> = variables
        .filter_map(|variable| variable["valueFrom"]["fieldRef"]["fieldPath"].as_str())
        .collect();
    let maps = [
        ("labels", &patch.labels),
        ("annotations", &patch.annotations),
    ];
    let keys = maps
        .iter()
        .flat_map(|(map, changed)| changed.keys().map(move |key| (map, key)));
    let read = keys.filter(|(map, key)| paths.contains(&*format!("metadata.{map}['{key}']")));
    read.map(|(map, key)| format!("metadata.{map}[{key}]"))
        .collect()
}
