//! List pages and watch lines, decoded straight from their bytes.
//!
//! ```text
//! line --one pass--> Event<T>             as a rule
//!      `-if it fails: raw object --> T    one object that can't be read is reported, the others go on
//! ```

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::wire::{Text, Uid, or_default};

/// An object that could not be read.
#[derive(Debug)]
pub struct Malformed {
    /// Its namespace, as far as it could be read.
    pub namespace: Option<String>,
    /// Its name, as far as it could be read.
    pub name: Option<String>,
    /// Its uid, as far as it could be read.
    pub uid: Option<Uid>,
    /// Whether it was shown to be deleted, or without the watched labels from now on.
    pub deleted: bool,
    /// What is wrong with it.
    pub error: String,
}

impl Malformed {
    /// A line that was thrown away.
    pub(crate) fn too_long(limit: usize) -> Self {
        let error = format!("a line of more than {limit} bytes");
        Self {
            namespace: None,
            name: None,
            uid: None,
            deleted: false,
            error,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = "?";
        let namespace = self.namespace.as_deref().unwrap_or(unknown);
        write!(
            f,
            "{namespace}/{}: {}",
            self.name.as_deref().unwrap_or(unknown),
            self.error
        )
    }
}

/// One line of a watch.
#[derive(Debug)]
pub(crate) enum Event<T> {
    Applied(T),
    Deleted(T),
    Bookmark {
        version: String,
    },
    Refused(Status),
    /// A type that later versions of Kubernetes may have.
    Unknown,
}

/// Kubernetes' `Status`, as bodies and `ERROR` events carry it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Kind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    #[serde(other)]
    Unknown,
}

/// The part of any object's metadata that a watch needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<Uid>,
    resource_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AnyObject {
    metadata: Meta,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Event<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Envelope<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Envelope<T> {
            type Value = Event<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a watch event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Event<T>, A::Error> {
                let mut kind = None;
                let mut event = None;
                while let Some(Text(member)) = members.next_key()? {
                    match &*member {
                        "type" => kind = Some(members.next_value()?),
                        "object" => {
                            let kind = kind.ok_or_else(|| {
                                A::Error::custom("the object comes before its type")
                            })?;
                            event = Some(object_of(kind, &mut members)?);
                        }
                        _ => {
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                event.ok_or_else(|| A::Error::missing_field("object"))
            }
        }

        deserializer.deserialize_map(Envelope(PhantomData))
    }
}

fn object_of<'de, T, A>(kind: Kind, members: &mut A) -> Result<Event<T>, A::Error>
where
    T: Deserialize<'de>,
    A: MapAccess<'de>,
{
    Ok(match kind {
        Kind::Added | Kind::Modified => Event::Applied(members.next_value()?),
        Kind::Deleted => Event::Deleted(members.next_value()?),
        Kind::Bookmark => {
            let object: AnyObject = members.next_value()?;
            Event::Bookmark {
                version: object.metadata.resource_version,
            }
        }
        Kind::Error => Event::Refused(members.next_value()?),
        Kind::Unknown => {
            members.next_value::<IgnoredAny>()?;
            Event::Unknown
        }
    })
}

/// Reads a line of a watch.
pub(crate) fn event<T: DeserializeOwned>(line: &[u8]) -> Result<Event<T>, Malformed> {
    serde_json::from_slice(line).or_else(|_| event_in_two_passes(line))
}

fn event_in_two_passes<T: DeserializeOwned>(line: &[u8]) -> Result<Event<T>, Malformed> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        r#type: Kind,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let raw: Raw<'_> = serde_json::from_slice(line).map_err(|error| nameless(&error))?;
    let object = raw.object.get();
    let deleted = matches!(raw.r#type, Kind::Deleted);
    let read = match raw.r#type {
        Kind::Added | Kind::Modified => serde_json::from_str(object).map(Event::Applied),
        Kind::Deleted => serde_json::from_str(object).map(Event::Deleted),
        Kind::Bookmark => serde_json::from_str::<AnyObject>(object).map(|object| Event::Bookmark {
            version: object.metadata.resource_version,
        }),
        Kind::Error => serde_json::from_str(object).map(Event::Refused),
        Kind::Unknown => Ok(Event::Unknown),
    };
    read.map_err(|error| malformed(object, deleted, &error))
}

/// A line or a page of which not even the object can be told.
fn nameless(error: &serde_json::Error) -> Malformed {
    Malformed {
        namespace: None,
        name: None,
        uid: None,
        deleted: false,
        error: error.to_string(),
    }
}

fn malformed(object: &str, deleted: bool, error: &serde_json::Error) -> Malformed {
    let meta = serde_json::from_str::<AnyObject>(object)
        .unwrap_or_default()
        .metadata;
    let Meta {
        namespace,
        name,
        uid,
        ..
    } = meta;
    Malformed {
        namespace,
        name,
        uid,
        deleted,
        error: error.to_string(),
    }
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<Result<T, Malformed>>,
    pub(crate) version: String,
    /// How to ask for the next page, if there is one.
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    #[serde(default, deserialize_with = "or_default")]
    r#continue: String,
}

#[derive(Deserialize)]
struct List<T> {
    metadata: ListMeta,
    // Go writes an empty list as null.
    #[serde(default = "Option::default")]
    items: Option<Vec<T>>,
}

impl<T> List<T> {
    fn into_page<U>(self, read: impl FnMut(T) -> Result<U, Malformed>) -> Page<U> {
        Page {
            items: self
                .items
                .unwrap_or_default()
                .into_iter()
                .map(read)
                .collect(),
            version: self.metadata.resource_version,
            next: Some(self.metadata.r#continue).filter(|token| !token.is_empty()),
        }
    }
}

/// Reads a page of a list.
pub(crate) fn page<T: DeserializeOwned>(bytes: &[u8]) -> Result<Page<T>, serde_json::Error> {
    if let Ok(list) = serde_json::from_slice::<List<T>>(bytes) {
        return Ok(list.into_page(Ok));
    }
    let list: List<&RawValue> = serde_json::from_slice(bytes)?;
    Ok(list.into_page(|item| {
        serde_json::from_str(item.get()).map_err(|error| malformed(item.get(), false, &error))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Number {
        n: u8,
    }

    fn read(line: &str) -> Result<Event<Number>, Malformed> {
        event(line.as_bytes())
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
        assert!(matches!(read(bookmark), Ok(Event::Bookmark { version }) if version == "7"));
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(matches!(
            read(gone),
            Ok(Event::Refused(Status { code: 410, .. }))
        ));
    }

    #[test]
    fn a_malformed_object_is_named_as_far_as_it_can_be() {
        let meta = r#""metadata":{"namespace":"default","name":"web","uid":"u"}"#;
        let line = format!(r#"{{"type":"DELETED","object":{{"n":"x",{meta}}}}}"#);
        let malformed = read(&line).unwrap_err();
        assert!(
            malformed
                .to_string()
                .starts_with("default/web: invalid type"),
            "{malformed}"
        );
        assert!(malformed.deleted);
        assert_eq!(malformed.uid, Some(Uid::of("u")));
        for line in [
            "",
            "{",
            "[]",
            "null",
            r#"{"type":"ADDED"}"#,
            r#"{"object":{"n":1}}"#,
            "{\"type\":\"ADDED\",\"object\":\"\u{0}",
        ] {
            assert!(
                read(line).unwrap_err().to_string().starts_with("?/?: "),
                "{line}"
            );
        }
    }

    #[test]
    fn one_malformed_item_does_not_spoil_the_page() {
        let text = r#"{"metadata":{"resourceVersion":"5","continue":"c"},"items":[{"n":1},{"n":-1,"metadata":{"name":"bad"}},{"n":3}]}"#;
        let page = page::<Number>(text.as_bytes()).unwrap();
        assert_eq!((&*page.version, page.next.as_deref()), ("5", Some("c")));
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
    fn empty_pages_and_no_pages() {
        for text in [
            r#"{"metadata":{"resourceVersion":"5"},"items":null}"#,
            r#"{"metadata":{"resourceVersion":"5"}}"#,
        ] {
            let page = page::<Number>(text.as_bytes()).unwrap();
            assert!(page.items.is_empty() && page.next.is_none());
        }
        assert!(page::<Number>(br#"{"items":[]}"#).is_err());
        assert!(page::<Number>(b"<html>").is_err());
    }
}
