//! How objects come over the wire, as far as anything here reads them: what isn't named is skipped while scanning,
//! `managedFields` above all.

use fedrs_api::{annotations, labels};
use jiff::Timestamp;
use reflector::{
    Uid,
    partial::{Text, for_each_entry, for_each_item, null_as_default},
};
use serde::{Deserialize, Deserializer};

/// Seconds since 1970, up to the year 2106: the API server's times have no fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seconds(pub(crate) u32);

impl Seconds {
    /// The whole seconds of `time`, cut to the range.
    pub(crate) fn of(time: Timestamp) -> Self {
        let seconds = time.as_second().clamp(0, i64::from(u32::MAX));
        Self(u32::try_from(seconds).expect("clamped"))
    }

    pub(crate) fn timestamp(self) -> Timestamp {
        Timestamp::from_second(i64::from(self.0)).expect("2106 is within jiff's range")
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?.0;
        let time: Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self::of(time))
    }
}

/// Of all labels, those that fedrs puts on objects (F40).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) set: Option<Box<str>>,
    pub(crate) federation: Option<Box<str>>,
    pub(crate) member: Option<Box<str>>,
}

impl<'de> Deserialize<'de> for Marks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut marks = Self::default();
        let wanted = [
            labels::REPLICA_SET,
            labels::FEDERATION,
            labels::MEMBER_CLUSTER,
        ];
        for_each_entry(deserializer, &wanted, |key, value| {
            let mark = match key {
                labels::REPLICA_SET => &mut marks.set,
                labels::FEDERATION => &mut marks.federation,
                _ => &mut marks.member,
            };
            *mark = Some(value.into());
        })?;
        Ok(marks)
    }
}

/// Of all annotations, which template a pod was made from; 0 for one that says nothing, or nothing that could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TemplateOf(pub(crate) u32);

impl<'de> Deserialize<'de> for TemplateOf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut template = Self::default();
        for_each_entry(deserializer, &[annotations::TEMPLATE_HASH], |_, digits| {
            template = Self(u32::from_str_radix(digits, 16).unwrap_or(0));
        })?;
        Ok(template)
    }
}

/// Of all owner references, the controller's uid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControllerOwner(pub(crate) Option<Uid>);

impl<'de> Deserialize<'de> for ControllerOwner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Owner {
            uid: Uid,
            #[serde(default, deserialize_with = "null_as_default")]
            controller: bool,
        }
        let mut controller = None;
        for_each_item(deserializer, |owner: Owner| {
            if owner.controller {
                controller = Some(owner.uid);
            }
        })?;
        Ok(Self(controller))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_labels_and_annotations_those_of_fedrs_are_read() {
        let labels = r#"{"app": "web", "fedrs.dev/replica-set": "w\u0065b", "n": null, "fedrs.dev/member-cluster": "a"}"#;
        let marks: Marks = serde_json::from_str(labels).unwrap();
        let expected = Marks {
            set: Some("web".into()),
            federation: None,
            member: Some("a".into()),
        };
        assert_eq!(marks, expected);
        for (annotations, template) in [
            (
                r#"{"a": "b", "fedrs.dev/template-hash": "0000beef"}"#,
                0xbeef,
            ),
            (r#"{"fedrs.dev/template-hash": "blue"}"#, 0),
            ("{}", 0),
        ] {
            let of: TemplateOf = serde_json::from_str(annotations).unwrap();
            assert_eq!(of, TemplateOf(template), "{annotations}");
        }
    }

    #[test]
    fn the_controller_owner_alone_counts() {
        let owners = r#"[{"uid": "a", "controller": false}, {"uid": "b", "controller": true}, {"uid": "c"}]"#;
        let owner: ControllerOwner = serde_json::from_str(owners).unwrap();
        assert_eq!(owner.0, Some(Uid::of("b")));
    }
}
