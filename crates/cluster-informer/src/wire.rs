//! How objects come over the wire, as far as anything here reads them: what isn't named is skipped while scanning,
//! `managedFields` above all.

use std::{borrow::Cow, fmt, marker::PhantomData};

use fedrs_api::{annotations, labels};
use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use xxhash_rust::xxh3::xxh3_128;

/// An object's uid in 16 bytes: the number of a UUID, or a hash of anything else a server may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid([u64; 2]);

impl Uid {
    /// The uid written as `text`.
    pub fn of(text: &str) -> Self {
        let number = uuid_number(text).unwrap_or_else(|| xxh3_128(text.as_bytes()));
        // Two halves instead of one u128: its alignment of 16 would cost 8 bytes in each entry of the pod table.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower half is what is meant"
        )]
        Self([(number >> 64) as u64, number as u64])
    }
}

/// `8-4-4-4-12` hexadecimal digits in lower case, as the API server writes them; nothing else.
fn uuid_number(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut number = 0;
    for (position, byte) in bytes.iter().enumerate() {
        match (position, byte) {
            (8 | 13 | 18 | 23, b'-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => number = number << 4 | u128::from(byte - b'0'),
            (_, b'a'..=b'f') => number = number << 4 | u128::from(byte - b'a' + 10),
            _ => return None,
        }
    }
    Some(number)
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Text::deserialize(deserializer)?.0))
    }
}

/// A `resourceVersion` as a number; unknown if the server writes something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// Kubernetes never hands out 0: it marks what could not be parsed.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(text.parse().unwrap_or(0))
    }

    fn known(self) -> bool {
        self.0 != 0
    }

    /// Whether this is certainly older than `other`: only if both are numbers.
    #[must_use]
    pub fn is_older_than(self, other: Self) -> bool {
        self.known() && other.known() && self.0 < other.0
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Text::deserialize(deserializer)?.0))
    }
}

/// A text, borrowed from the input where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

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

/// Reads `null` as the default, as Go's decoder does.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value that matters only by being there (a deletion timestamp) is there.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
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
        for_each_of(deserializer, &wanted, |key, value| {
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
        for_each_of(deserializer, &[annotations::TEMPLATE_HASH], |_, digits| {
            template = Self(u32::from_str_radix(digits, 16).unwrap_or(0));
        })?;
        Ok(template)
    }
}

/// Hands those of a map's texts to `take` whose keys are `wanted`; the others are skipped.
fn for_each_of<'de, D: Deserializer<'de>>(
    deserializer: D,
    wanted: &[&str],
    take: impl FnMut(&str, &str),
) -> Result<(), D::Error> {
    struct Texts<'w, F>(&'w [&'w str], F);

    impl<'de, F: FnMut(&str, &str)> Visitor<'de> for Texts<'_, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of texts")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut texts: A) -> Result<(), A::Error> {
            while let Some(Text(key)) = texts.next_key()? {
                if self.0.contains(&&*key) {
                    let Text(text) = texts.next_value()?;
                    self.1(&key, &text);
                } else {
                    texts.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }

    deserializer.deserialize_map(Texts(wanted, take))
}

/// Of all owner references, the controller's uid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControllerOwner(pub(crate) Option<Uid>);

impl<'de> Deserialize<'de> for ControllerOwner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Owner {
            uid: Uid,
            #[serde(default, deserialize_with = "or_default")]
            controller: bool,
        }
        let mut controller = None;
        for_each(deserializer, |owner: Owner| {
            if owner.controller {
                controller = Some(owner.uid);
            }
        })?;
        Ok(Self(controller))
    }
}

/// Hands the items of a sequence to `take` one by one, without a list of them.
pub(crate) fn for_each<'de, D, T>(deserializer: D, take: impl FnMut(T)) -> Result<(), D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Items<T, F>(F, PhantomData<T>);

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Items<T, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                self.0(item);
            }
            Ok(())
        }
    }

    deserializer.deserialize_seq(Items(take, PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_told_apart_whatever_they_look_like() {
        let uuid = "0b0d1f0e-4a54-4b6f-9d53-0123456789ab";
        assert_eq!(
            Uid::of(uuid),
            Uid([0x0b0d_1f0e_4a54_4b6f, 0x9d53_0123_4567_89ab])
        );
        let texts = [
            uuid,
            "",
            "a",
            "0B0D1F0E-4A54-4B6F-9D53-0123456789AB",
            "0b0d1f0e-4a54-4b6f-9d53-0123456789a\u{e4}",
        ];
        let uids: std::collections::BTreeSet<_> = texts.iter().map(|text| Uid::of(text)).collect();
        assert_eq!(uids.len(), texts.len());
    }

    #[test]
    fn versions_compare_as_numbers_or_not_at_all() {
        assert!(Version::of("9").is_older_than(Version::of("10")));
        assert!(!Version::of("10").is_older_than(Version::of("10")));
        assert!(!Version::of("a").is_older_than(Version::of("10")));
        assert!(!Version::of("9").is_older_than(Version::of("b")));
    }

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
