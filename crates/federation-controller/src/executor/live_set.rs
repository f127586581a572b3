//! A ReplicaSet or Deployment as a member's API server shows it: the fields that are used, each with a type and a limit, because members are
//! not trusted. Nothing of the response is written back.

use fedrs_api::{JsonText, labels, local_defaults};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reflector::{
    limited_value,
    partial::{self, Text, for_each_entry, for_each_item, is_present, null_as_default},
    printable,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};

use crate::{
    check::{Precondition, kept_replicas},
    messages,
};

/// The most images of a set that are named.
const MAX_IMAGES: usize = 8;

/// A ReplicaSet or Deployment.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LiveSet {
    pub(super) metadata: LiveMetadata,
    pub(super) spec: LiveSpec,
    status: LiveStatus,
}

/// What is written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// A workload that was found.
    Found,
    /// One of ours.
    Own {
        /// A pause of a Deployment is that of the rollout.
        keeps_pause: bool,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LiveStatus {
    replicas: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LiveMetadata {
    #[serde(deserialize_with = "partial::name")]
    pub(super) uid: String,
    #[serde(deserialize_with = "partial::name")]
    pub(super) resource_version: String,
    pub(super) generation: i64,
    #[serde(rename = "deletionTimestamp", deserialize_with = "is_present")]
    pub(super) is_deleting: bool,
    /// None if the object has no labels at all.
    labels: Option<LiveLabels>,
    #[serde(rename = "ownerReferences", deserialize_with = "null_as_default")]
    controller: Controller,
    #[serde(rename = "managedFields", deserialize_with = "null_as_default")]
    pub(super) last_writer: LastWriter,
}

/// The federation that the labels name.
#[derive(Debug, Default)]
struct LiveLabels {
    federation: Option<String>,
}

impl<'de> Deserialize<'de> for LiveLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut federation = None;
        for_each_entry(deserializer, &[labels::FEDERATION], |_, value| {
            federation = Some(label(value));
        })?;
        Ok(Self { federation })
    }
}

/// Kind and name of the controller that owns the set.
#[derive(Debug, Default)]
struct Controller(Option<(String, String)>);

impl<'de> Deserialize<'de> for Controller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Owner<'a> {
            #[serde(default, borrow)]
            kind: Option<Text<'a>>,
            #[serde(default, borrow)]
            name: Option<Text<'a>>,
            #[serde(default, deserialize_with = "null_as_default")]
            controller: bool,
        }
        let text = |text: Option<Text<'_>>, default: &str| {
            text.map_or(default.to_owned(), |text| printable(&text.0))
        };
        let mut controller = None;
        for_each_item(deserializer, |owner: Owner<'_>| {
            if owner.controller {
                let kind = text(owner.kind, "an object");
                controller.get_or_insert((kind, text(owner.name, "without a name")));
            }
        })?;
        Ok(Self(controller))
    }
}

/// The field manager that last wrote the spec, of those that own a field of it. Times are whole seconds: of several managers
/// with the same time it is not fedrs. It is fedrs if there is no other, as when two controllers handle the same federation. The
/// subresource `scale` records no time: whoever scaled owns the number of replicas only until another one writes it.
#[derive(Debug, Default)]
pub(super) struct LastWriter(pub(super) Option<String>);

impl<'de> Deserialize<'de> for LastWriter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry<'a> {
            #[serde(default, borrow)]
            manager: Option<Text<'a>>,
            #[serde(default, borrow)]
            time: Option<Text<'a>>,
            #[serde(default, rename = "fieldsV1", deserialize_with = "null_as_default")]
            fields: Fields,
        }
        #[derive(Default, Deserialize)]
        struct Fields {
            #[serde(default, rename = "f:spec", deserialize_with = "is_present")]
            has_spec: bool,
        }
        let mut last = None;
        for_each_item(deserializer, |entry: Entry<'_>| {
            if entry.fields.has_spec {
                let manager = entry.manager.map(|manager| printable(&manager.0));
                let is_other = manager.as_deref() != Some(fedrs_api::names::FIELD_MANAGER);
                let time = entry.time.map(|time| printable(&time.0));
                let order = (time.is_none(), time, is_other);
                last = last.take().max(Some((order, manager)));
            }
        })?;
        Ok(Self(last.and_then(|(_, manager)| manager)))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LiveSpec {
    pub(super) replicas: Option<u32>,
    /// Of a Deployment.
    pub(super) progress_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "limited_selector")]
    pub(super) selector: LabelSelector,
    /// Of a LocalReplicaSet.
    #[serde(deserialize_with = "null_as_default")]
    deployment_strategy: LiveStrategy,
    /// Of a LocalReplicaSet: none if it is the default.
    #[serde(rename = "nodeSegmentId", deserialize_with = "is_segment")]
    has_segment: bool,
    #[serde(deserialize_with = "null_as_default")]
    template: LiveTemplate,
}

/// `deploymentStrategy` of a LocalReplicaSet.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LiveStrategy {
    #[serde(deserialize_with = "pods")]
    max_unavailable: Option<u32>,
}

/// A number of pods; none if it is a percentage.
fn pods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Amount {
        Pods(u32),
        Other(IgnoredAny),
    }
    let amount = Option::<Amount>::deserialize(deserializer)?;
    Ok(match amount {
        Some(Amount::Pods(pods)) => Some(pods),
        Some(Amount::Other(_)) | None => None,
    })
}

fn is_segment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let segment = Option::<Text<'_>>::deserialize(deserializer)?;
    Ok(segment.is_some_and(|segment| segment.0 != local_defaults::node_segment_id()))
}

/// The values, and the bytes, that a selector may have: it is kept while the set is written.
const MAX_SELECTOR_VALUES: usize = 2000;
const MAX_SELECTOR_BYTES: usize = 64 << 10;

fn limited_selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LabelSelector, D::Error> {
    let value = limited_value::<MAX_SELECTOR_VALUES, _>(deserializer)?;
    let bytes = value.to_string().len();
    if bytes > MAX_SELECTOR_BYTES {
        return Err(D::Error::custom(format!("a selector of {bytes} bytes")));
    }
    let selector = Option::<LabelSelector>::deserialize(value);
    Ok(selector.map_err(D::Error::custom)?.unwrap_or_default())
}

/// The value of a label, which has at most 63 characters: of a longer one, which equals none of ours, one more.
pub(super) fn label(value: &str) -> String {
    value.chars().take(64).collect()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LiveTemplate {
    #[serde(deserialize_with = "null_as_default")]
    metadata: LiveTemplateMetadata,
    #[serde(deserialize_with = "null_as_default")]
    spec: LivePodSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LiveTemplateMetadata {
    labels: Option<LiveLabels>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LivePodSpec {
    #[serde(rename = "containers", deserialize_with = "null_as_default")]
    images: Images,
}

/// The images of the first containers, for people.
#[derive(Debug, Default)]
struct Images(Vec<String>);

impl<'de> Deserialize<'de> for Images {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Container<'a> {
            #[serde(default, borrow)]
            image: Option<Text<'a>>,
        }
        let mut images = Vec::new();
        for_each_item(deserializer, |container: Container<'_>| {
            if images.len() < MAX_IMAGES {
                images.extend(container.image.map(|image| printable(&image.0)));
            }
        })?;
        Ok(Self(images))
    }
}

impl LiveSpec {
    /// The images of its containers, for people.
    pub(super) fn images(&self) -> String {
        self.template.spec.images.0.join(", ")
    }

    /// Whether it has what can't be changed: the selector, and of a LocalReplicaSet the segment of nodes.
    pub(super) fn has_immutable(&self, selector: &LabelSelector) -> bool {
        self.selector == *selector && !self.has_segment
    }

    /// What a LocalReplicaSet may make unavailable, if that is a number of pods.
    pub(super) fn max_unavailable(&self) -> Option<u32> {
        self.deployment_strategy.max_unavailable
    }

    /// Whether the template names the federation of its pods, as those that fedrs writes.
    pub(super) fn has_labeled_template(&self) -> bool {
        let labels = self.template.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.federation.is_some())
    }
}

/// The images of a pod's spec, for people, as [`LiveSpec::images`] shows them.
pub(super) fn images(spec: &JsonText) -> String {
    let spec = serde_json::from_str::<LivePodSpec>(spec.as_str()).unwrap_or_default();
    spec.images.0.join(", ")
}

impl LiveSet {
    /// The replicas with which it is adopted; see [`kept_replicas`].
    pub(super) fn kept_replicas(&self, wanted: u32, desired: u32) -> u32 {
        let claimed = [self.spec.replicas, self.status.replicas];
        let [claimed, existing] = claimed.map(Option::unwrap_or_default);
        kept_replicas(wanted, (claimed, existing), desired)
    }

    /// The owner of the set, if it does not belong to `federation`: the set must not be written or deleted then (F29, F40).
    pub(super) fn foreign_owner(&self, federation: &str) -> Option<String> {
        if let Some(other) = self.federation().filter(|label| *label != federation) {
            return Some(messages::other_federation(&printable(other)));
        }
        let (kind, name) = self.metadata.controller.0.as_ref()?;
        Some(messages::controlled_by(kind, name))
    }

    /// Whether it is the object that was seen, with the same spec.
    pub(super) fn is_seen(&self, seen: &Precondition) -> bool {
        self.metadata.uid == seen.uid && self.metadata.generation == seen.generation
    }

    /// Whether a controller owns the set.
    pub(super) fn has_controller(&self) -> bool {
        self.metadata.controller.0.is_some()
    }

    /// The federation that the labels name.
    pub(super) fn federation(&self) -> Option<&str> {
        let labels = self.metadata.labels.as_ref()?;
        labels.federation.as_deref()
    }

    /// Whether the object has labels.
    pub(super) fn has_labels(&self) -> bool {
        self.metadata.labels.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(live: &Value) -> LiveSet {
        serde_json::from_str(&live.to_string()).unwrap()
    }

    #[test]
    fn s5_what_is_kept_of_a_set_has_a_limit() {
        let long = "x".repeat(1_000_000);
        let live = read(&json!({ "metadata": { "labels": { labels::FEDERATION: long } } }));
        let label = live.metadata.labels.unwrap().federation;
        assert_eq!(label.as_deref(), Some(&*"x".repeat(64)));
        let expression = json!({ "key": "app", "operator": "In", "values": ["web"] });
        for (selector, is_read) in [
            (Value::Null, true),
            (json!({ "matchLabels": { "app": "web" } }), true),
            (json!({ "matchExpressions": vec![expression; 100] }), true),
            (json!({ "matchExpressions": vec![json!({}); 3000] }), false),
            (json!({ "matchLabels": { "app": long } }), false),
        ] {
            let live = json!({ "spec": { "selector": selector } }).to_string();
            let read = serde_json::from_str::<LiveSet>(&live);
            assert_eq!(read.is_ok(), is_read, "{:?}", read.err());
        }
    }

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
            (
                vec![
                    json!({
                        "manager": "kubectl", "subresource": "scale",
                        "fieldsV1": { "f:spec": { "f:replicas": {} } },
                    }),
                    entry("fedrs", late, "f:spec"),
                ],
                Some("kubectl"),
            ),
        ] {
            let live = json!({ "metadata": { "managedFields": entries } });
            assert_eq!(
                read(&live).metadata.last_writer.0.as_deref(),
                expected,
                "{live}"
            );
        }
        assert_eq!(read(&json!({})).metadata.last_writer.0, None);
    }
}
