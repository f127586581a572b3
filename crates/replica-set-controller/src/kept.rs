//! What is kept of the lists and maps of a pod: as decoded, they would take most of its memory.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{annotations, finalizers, names};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

pub(crate) const READY: &str = "Ready";
pub(crate) const SCHEDULED: &str = "PodScheduled";
pub(crate) const DISRUPTED: &str = "DisruptionTarget";
pub(crate) const RESIZE_PENDING: &str = "PodResizePending";
pub(crate) const RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";

/// The conditions that decisions depend on.
pub(crate) const CONDITIONS: [&str; 6] = [
    READY,
    SCHEDULED,
    DISRUPTED,
    RESIZE_PENDING,
    RESIZE_IN_PROGRESS,
    names::IN_PLACE_UPDATE,
];

/// Items of a list as one JSON text: a toleration, decoded, takes about a kilobyte.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonList(Option<Box<str>>);

impl JsonList {
    /// The items.
    pub(crate) fn items(&self) -> Vec<Value> {
        let text = self.0.as_deref();
        let items = text.map(|text| serde_json::from_str(text).expect("it was written as a list"));
        items.unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for JsonList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Option::<Vec<Value>>::deserialize(deserializer)?;
        let items = items.filter(|items| !items.is_empty());
        let text = items.map(|items| Value::from(items).to_string());
        Ok(Self(text.map(String::into_boxed_str)))
    }
}

/// A value that several pods may share.
pub(crate) fn shared<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<T>>, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.map(Arc::new))
}

/// Keeps the annotations that decisions depend on.
pub(crate) fn own_annotations<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let own = [
        annotations::POD_DELETION_COST,
        annotations::IN_PLACE_UPDATE,
        annotations::EVICT,
    ];
    let all = Option::<BTreeMap<String, String>>::deserialize(deserializer)?;
    let kept = all.map(|mut all| {
        all.retain(|key, _| own.contains(&key.as_str()));
        all
    });
    Ok(kept.filter(|kept| !kept.is_empty()))
}

/// Whether the finalizer of shutdowns is among these.
pub(crate) fn has_shutdown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let all = Option::<Vec<String>>::deserialize(deserializer)?;
    Ok(all.is_some_and(|all| all.iter().any(|each| each == finalizers::SHUTDOWN)))
}

/// Whether the scheduling gate of pods that a person starts is among these.
pub(crate) fn has_start_gate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct SchedulingGate {
        name: String,
    }
    let all = Option::<Vec<SchedulingGate>>::deserialize(deserializer)?;
    Ok(all.is_some_and(|all| all.iter().any(|each| each.name == names::START)))
}

/// Whether there is a value.
pub(crate) fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

/// Keeps those items.
pub(crate) fn items<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    is_kept: impl Fn(&T) -> bool,
    deserializer: D,
) -> Result<Option<Box<[T]>>, D::Error> {
    let all = Option::<Vec<T>>::deserialize(deserializer)?;
    Ok(all.map(|mut all| {
        all.retain(is_kept);
        all.into_boxed_slice()
    }))
}
