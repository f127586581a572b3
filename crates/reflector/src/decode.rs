//! Decodes list pages and watch lines straight from their bytes.
//!
//! ```text
//! line or page --one pass--> objects            the usual case
//!      `-if that fails: raw objects --> object  each by itself: an invalid one is reported, the others are used
//! ```

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    error::ErrorKind,
    invalid_object::{InvalidObject, InvalidObjectCause},
    partial::{Text, for_each_item, name, null_as_default, printable_text},
};

/// One line of a watch.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub(crate) enum Event<T> {
    #[serde(rename = "ADDED", alias = "MODIFIED")]
    Applied(T),
    Deleted(T),
    Bookmark(AnyObject),
    Error(Status),
    /// A type that later versions of Kubernetes may add.
    #[serde(skip)]
    Unknown,
}

/// Kubernetes' `Status`, from response bodies and `ERROR` events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    #[serde(deserialize_with = "printable_text")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "printable_text")]
    pub(crate) message: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) details: StatusDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusDetails {
    #[serde(deserialize_with = "printable_text")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) causes: StatusCauses,
}

/// The causes of a `Status`: there may be any number of them.
#[derive(Debug, Default)]
pub(crate) struct StatusCauses {
    /// The message of the first one.
    pub(crate) first: Option<String>,
    version_too_large: bool,
}

impl<'de> Deserialize<'de> for StatusCauses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Cause<'a> {
            #[serde(borrow)]
            reason: Option<Text<'a>>,
            #[serde(default, deserialize_with = "printable_text")]
            message: String,
        }
        let mut causes = Self::default();
        for_each_item(deserializer, |cause: Cause<'_>| {
            causes.first.get_or_insert(cause.message);
            causes.version_too_large |= cause
                .reason
                .is_some_and(|reason| reason.0 == "ResourceVersionTooLarge");
        })?;
        Ok(causes)
    }
}

impl From<Status> for ErrorKind {
    fn from(status: Status) -> Self {
        Self::Status {
            code: status.code,
            reason: status.reason,
            version_too_large: status.details.causes.version_too_large,
            message: status.message,
        }
    }
}

/// The part of any object's metadata that a watch needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Meta {
    // Kept while the watch lasts.
    #[serde(deserialize_with = "name")]
    pub(crate) resource_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AnyObject {
    pub(crate) metadata: Meta,
}

/// Reads a line of a watch whose object has at most `limit` bytes.
pub(crate) fn event<T: DeserializeOwned>(
    line: &[u8],
    limit: usize,
) -> Result<Event<T>, InvalidObject> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    // An object in a line within the limit is, too. One that comes before its type would be buffered, in a multiple of its
    // bytes.
    if line.len() <= limit
        && line.starts_with(br#"{"type":"#)
        && let Ok(event) = serde_json::from_slice(line)
    {
        return Ok(event);
    }
    let raw: Raw<'_> = serde_json::from_slice(line)
        .map_err(|error| InvalidObject::without_metadata(InvalidObjectCause::json(error)))?;
    let (object, deleted) = (raw.object.get(), raw.r#type == "DELETED");
    if object.len() > limit {
        let cause = InvalidObjectCause::TooLarge { limit };
        return Err(invalid(object, deleted, cause));
    }
    match &*raw.r#type {
        "ADDED" | "MODIFIED" => decoded(object, deleted).map(Event::Applied),
        "DELETED" => decoded(object, deleted).map(Event::Deleted),
        "BOOKMARK" => decoded(object, deleted).map(Event::Bookmark),
        "ERROR" => decoded(object, deleted).map(Event::Error),
        _ => Ok(Event::Unknown),
    }
}

/// Reads an object. An invalid one is read again, for the field that is wrong.
fn decoded<T: DeserializeOwned>(object: &str, deleted: bool) -> Result<T, InvalidObject> {
    serde_json::from_str(object).map_err(|error| {
        let mut json = serde_json::Deserializer::from_str(object);
        let cause = match serde_path_to_error::deserialize::<_, T>(&mut json) {
            Err(error) => InvalidObjectCause::Json {
                field: error.path().to_string(),
                error: error.into_inner(),
            },
            Ok(_) => InvalidObjectCause::json(error),
        };
        invalid(object, deleted, cause)
    })
}

/// An object of which at most the metadata can be read.
fn invalid(object: &str, deleted: bool, cause: InvalidObjectCause) -> InvalidObject {
    /// Each part by itself: one that is wrong does not hide the others.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata<'a> {
        #[serde(borrow)]
        namespace: Option<&'a RawValue>,
        #[serde(borrow)]
        name: Option<&'a RawValue>,
        #[serde(borrow)]
        uid: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    fn part<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
        serde_json::from_str(raw?.get()).ok()
    }
    let Object { metadata } = serde_json::from_str(object).unwrap_or_default();
    InvalidObject {
        namespace: part(metadata.namespace),
        name: part(metadata.name),
        uid: part(metadata.uid),
        deleted,
        cause,
    }
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<Result<T, InvalidObject>>,
    pub(crate) version: String,
    /// The token for the next page, if there is one.
    pub(crate) continue_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(deserialize_with = "name")]
    resource_version: String,
    #[serde(default, deserialize_with = "continue_token")]
    r#continue: String,
}

/// The longest token: it becomes a part of the next request. API servers write a key in some hundred bytes.
const MAX_TOKEN_BYTES: usize = 4096;

fn continue_token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let token = Option::<Text<'_>>::deserialize(deserializer)?;
    let token = token.map(|token| token.0).unwrap_or_default();
    if token.len() > MAX_TOKEN_BYTES {
        let message = format!("a continue token of {} bytes", token.len());
        return Err(D::Error::custom(message));
    }
    Ok(token.into_owned())
}

#[derive(Deserialize)]
struct List<T> {
    metadata: ListMeta,
    // Go writes an empty list as null.
    #[serde(default = "Option::default")]
    items: Option<Items<T>>,
}

/// More objects than any page is requested with: decoded ones are larger than their bytes.
const MAX_ITEMS: usize = 10_000;

struct Items<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Limited<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Limited<T> {
            type Value = Items<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of objects")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Items<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = sequence.next_element()? {
                    if items.len() == MAX_ITEMS {
                        let message = format!("a page has more than {MAX_ITEMS} objects");
                        return Err(A::Error::custom(message));
                    }
                    items.push(item);
                }
                Ok(Items(items))
            }
        }

        deserializer.deserialize_seq(Limited(PhantomData))
    }
}

impl<T> List<T> {
    fn into_page<U>(self, read: impl FnMut(T) -> Result<U, InvalidObject>) -> Page<U> {
        Page {
            items: self
                .items
                .map_or_else(Vec::new, |items| items.0)
                .into_iter()
                .map(read)
                .collect(),
            version: self.metadata.resource_version,
            continue_token: Some(self.metadata.r#continue).filter(|token| !token.is_empty()),
        }
    }
}

/// Reads a page of a list whose objects have at most `limit` bytes each.
pub(crate) fn page<T: DeserializeOwned>(
    bytes: &[u8],
    limit: usize,
) -> Result<Page<T>, serde_json::Error> {
    // The objects of a page within the limit are, too.
    if bytes.len() <= limit
        && let Ok(list) = serde_json::from_slice::<List<T>>(bytes)
    {
        return Ok(list.into_page(Ok));
    }
    let list: List<&RawValue> = serde_json::from_slice(bytes)?;
    Ok(list.into_page(|item| {
        let object = item.get();
        if object.len() > limit {
            let cause = InvalidObjectCause::TooLarge { limit };
            return Err(invalid(object, false, cause));
        }
        decoded(object, false)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uid::Uid;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Number {
        n: u8,
    }

    const LIMIT: usize = 1000;

    fn read(line: &str) -> Result<Event<Number>, InvalidObject> {
        event(line.as_bytes(), LIMIT)
    }

    #[test]
    fn events_by_type() {
        for kind in ["ADDED", "MODIFIED"] {
            let line = format!(r#"{{"type":"{kind}","object":{{"n":1,"m":2}},"more":[]}}"#);
            assert!(matches!(read(&line), Ok(Event::Applied(Number { n: 1 }))));
        }
        assert!(matches!(
            read(r#"{"type":"DELETED","object":{"n":1}}"#),
            Ok(Event::Deleted(Number { n: 1 }))
        ));
        assert!(matches!(
            read(r#"{"object":{"n":1},"type":"DELETED"}"#),
            Ok(Event::Deleted(Number { n: 1 }))
        ));
        assert!(matches!(
            read(r#"{"type":"NEW","object":{"n":"x"}}"#),
            Ok(Event::Unknown)
        ));
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7"},"spec":{}}}"#;
        assert!(
            matches!(read(bookmark), Ok(Event::Bookmark(object)) if object.metadata.resource_version == "7")
        );
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(matches!(
            read(gone),
            Ok(Event::Error(Status { code: 410, .. }))
        ));
    }

    #[test]
    fn an_invalid_object_has_as_much_metadata_as_can_be_read() {
        let meta = r#""metadata":{"namespace":"default","name":"web","uid":"u"}"#;
        let line = format!(r#"{{"type":"DELETED","object":{{"n":"x",{meta}}}}}"#);
        let invalid = read(&line).unwrap_err();
        assert_eq!(invalid.namespace.as_deref(), Some("default"));
        assert_eq!(invalid.name.as_deref(), Some("web"));
        assert_eq!(invalid.uid, Some(Uid::of("u")));
        assert!(invalid.deleted);
        assert!(matches!(invalid.cause, InvalidObjectCause::Json { .. }));
        for line in [
            "",
            "{",
            "[]",
            "null",
            r#"{"type":"ADDED"}"#,
            r#"{"object":{"n":1}}"#,
            "{\"type\":\"ADDED\",\"object\":\"\u{0}",
        ] {
            assert_eq!(read(line).unwrap_err().name, None, "{line}");
        }
    }

    #[test]
    fn an_object_over_the_limit_is_invalid_and_named() {
        let padding = " ".repeat(LIMIT);
        let object = format!(r#"{{"n":1,"metadata":{{"name":"big"}}{padding}}}"#);
        let line = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let list =
            format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{object},{{"n":2}}]}}"#);
        let in_event = read(&line).unwrap_err();
        let mut items = page::<Number>(list.as_bytes(), LIMIT)
            .unwrap()
            .items
            .into_iter();
        let in_page = items.next().unwrap().unwrap_err();
        for invalid in [in_event, in_page] {
            assert_eq!(invalid.name.as_deref(), Some("big"));
            assert!(matches!(
                invalid.cause,
                InvalidObjectCause::TooLarge { limit: LIMIT }
            ));
        }
        assert_eq!(items.next().unwrap().unwrap(), Number { n: 2 });
        // The envelope does not count.
        let padding = " ".repeat(LIMIT - 7);
        let line = format!(r#"{{"type":"ADDED","object":{{"n":1{padding}}}}}"#);
        assert!(line.len() > LIMIT && read(&line).is_ok());
    }

    #[test]
    fn a_version_too_large_is_recognized_by_its_cause() {
        let status = |details: &str| {
            let line = format!(
                r#"{{"type":"ERROR","object":{{"code":504,"reason":"Timeout","details":{details}}}}}"#
            );
            match read(&line) {
                Ok(Event::Error(status)) => ErrorKind::from(status),
                event => panic!("{event:?}"),
            }
        };
        for (details, expected) in [
            (r#"{"causes":[{"reason":"ResourceVersionTooLarge"}]}"#, true),
            (r#"{"causes":[{"reason":"Other"}]}"#, false),
            (r#"{"causes":null}"#, false),
            ("null", false),
        ] {
            let ErrorKind::Status {
                version_too_large, ..
            } = status(details)
            else {
                panic!("a status");
            };
            assert_eq!(version_too_large, expected, "{details}");
        }
    }

    #[test]
    fn one_invalid_item_does_not_fail_the_page() {
        let text = r#"{"metadata":{"resourceVersion":"5","continue":"c"},"items":[{"n":1},{"n":-1,"metadata":{"name":"bad"}},{"n":3}]}"#;
        let page = page::<Number>(text.as_bytes(), LIMIT).unwrap();
        assert_eq!(
            (&*page.version, page.continue_token.as_deref()),
            ("5", Some("c"))
        );
        let items: Vec<_> = page
            .items
            .iter()
            .map(|item| {
                item.as_ref()
                    .map(|number| number.n)
                    .map_err(|bad| bad.name.as_deref())
            })
            .collect();
        assert_eq!(items, [Ok(1), Err(Some("bad")), Ok(3)]);
    }

    #[test]
    fn s5_versions_and_tokens_which_are_kept_have_a_limit() {
        let (long, short) = ("9".repeat(5000), "9".repeat(300));
        for (version, token, is_read) in [
            (&short, &short, true),
            (&long, &short, false),
            (&short, &long, false),
        ] {
            let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
            let list = format!(r#"{{"metadata":{metadata},"items":[]}}"#);
            assert_eq!(page::<Number>(list.as_bytes(), LIMIT).is_ok(), is_read);
        }
        for (version, is_read) in [(short, true), (long, false)] {
            let object = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#);
            let line = format!(r#"{{"type":"BOOKMARK","object":{object}}}"#);
            assert_eq!(event::<Number>(line.as_bytes(), 1 << 20).is_ok(), is_read);
        }
    }

    #[test]
    fn empty_pages_and_other_bodies() {
        for text in [
            r#"{"metadata":{"resourceVersion":"5"},"items":null}"#,
            r#"{"metadata":{"resourceVersion":"5"}}"#,
        ] {
            let page = page::<Number>(text.as_bytes(), LIMIT).unwrap();
            assert!(page.items.is_empty() && page.continue_token.is_none());
        }
        assert!(page::<Number>(br#"{"items":[]}"#, LIMIT).is_err());
        assert!(page::<Number>(b"<html>", LIMIT).is_err());
    }
}
