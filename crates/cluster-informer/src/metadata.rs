//! The parts of an object's metadata that the informer reads; the rest, `managedFields` above all, is skipped.

use fedrs_api::{annotations, labels};
use reflector::{
    Uid,
    partial::{Text, for_each_entry, for_each_item, null_as_default},
    printable,
};
use serde::{Deserialize, Deserializer};

use crate::unix_seconds::UnixSeconds;

/// The labels that fedrs sets on objects (F40).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FedrsLabels {
    pub(crate) replica_set: Option<Box<str>>,
    pub(crate) federation: Option<Box<str>>,
    pub(crate) member_cluster: Option<Box<str>>,
}

impl<'de> Deserialize<'de> for FedrsLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = Self::default();
        let keys = [
            labels::REPLICA_SET,
            labels::FEDERATION,
            labels::MEMBER_CLUSTER,
        ];
        for_each_entry(deserializer, &keys, |key, value| {
            let label = match key {
                labels::REPLICA_SET => &mut found.replica_set,
                labels::FEDERATION => &mut found.federation,
                _ => &mut found.member_cluster,
            };
            // A label has at most 63 characters.
            *label = Some(value.chars().take(63).collect::<String>().into());
        })?;
        Ok(found)
    }
}

/// The annotations that fedrs sets on pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodAnnotations {
    /// The hash of the template that the pod was created from; 0 if it is absent or unreadable.
    pub(crate) template: u32,
    /// Since when clients are to leave the pod; the oldest time if that is unreadable.
    pub(crate) draining: Option<UnixSeconds>,
}

impl<'de> Deserialize<'de> for PodAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = Self::default();
        let keys = [annotations::TEMPLATE_HASH, annotations::DRAINING];
        for_each_entry(deserializer, &keys, |key, value| {
            if key == annotations::TEMPLATE_HASH {
                found.template = u32::from_str_radix(value, 16).unwrap_or(0);
            } else {
                let since = value.parse().map_or(UnixSeconds(0), UnixSeconds::of);
                found.draining = Some(since);
            }
        })?;
        Ok(found)
    }
}

/// Finalizers that are kept of an object.
const MAX_FINALIZERS: usize = 4;

/// The first few finalizers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finalizers(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Finalizers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut finalizers = Vec::new();
        for_each_item(deserializer, |Text(finalizer)| {
            if finalizers.len() < MAX_FINALIZERS {
                // Names have at most 63 characters after a DNS subdomain: no API server stores longer ones.
                finalizers.push(printable(&finalizer).chars().take(320).collect());
            }
        })?;
        Ok(Self(finalizers))
    }
}

/// The owner references of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    /// Whether there are any.
    pub(crate) any: bool,
    /// The uid of the one whose `controller` is true.
    pub(crate) controller: Option<Uid>,
}

impl<'de> Deserialize<'de> for Owners {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Owner {
            uid: Uid,
            #[serde(default, deserialize_with = "null_as_default")]
            controller: bool,
        }
        let mut owners = Self::default();
        for_each_item(deserializer, |owner: Owner| {
            owners.any = true;
            if owner.controller {
                owners.controller = Some(owner.uid);
            }
        })?;
        Ok(owners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_finalizers_are_kept() {
        let many = r#"["a", "b\n", "c", "d", "e"]"#;
        let finalizers: Finalizers = serde_json::from_str(many).unwrap();
        assert_eq!(finalizers.0, ["a", "b ", "c", "d"]);
    }

    #[test]
    fn only_labels_and_annotations_of_fedrs_are_read() {
        let labels = r#"{"app": "web", "fedrs.dev/replica-set": "w\u0065b", "n": null, "fedrs.dev/member-cluster": "a"}"#;
        let found: FedrsLabels = serde_json::from_str(labels).unwrap();
        let expected = FedrsLabels {
            replica_set: Some("web".into()),
            federation: None,
            member_cluster: Some("a".into()),
        };
        assert_eq!(found, expected);
        for (annotations, template, draining) in [
            (
                r#"{"a": "b", "fedrs.dev/template-hash": "0000beef"}"#,
                0xbeef,
                None,
            ),
            (r#"{"fedrs.dev/template-hash": "blue"}"#, 0, None),
            (
                r#"{"fedrs.dev/draining": "1970-01-01T00:01:07Z"}"#,
                0,
                Some(67),
            ),
            (r#"{"fedrs.dev/draining": "yes"}"#, 0, Some(0)),
            ("{}", 0, None),
        ] {
            let found: PodAnnotations = serde_json::from_str(annotations).unwrap();
            let draining = draining.map(UnixSeconds);
            let expected = PodAnnotations { template, draining };
            assert_eq!(found, expected, "{annotations}");
        }
    }

    #[test]
    fn the_controller_owner_alone_counts() {
        let owners = r#"[{"uid": "a", "controller": false}, {"uid": "b", "controller": true}, {"uid": "c"}]"#;
        let owners: Owners = serde_json::from_str(owners).unwrap();
        assert_eq!(owners.controller, Some(Uid::of("b")));
        let none: Owners = serde_json::from_str("[]").unwrap();
        assert_eq!(none, Owners::default());
    }
}
