//! What decodes a list or a watch, against mutated bytes.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, future, stream};
use mutations::{fuzz, mutated};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    Error, ErrorKind, EventHandler, ReflectorSettings, Versioned,
    decode::{self, Event},
    list_watch::ListWatch,
    transport::{Chunks, PageResponse, Transport},
};

/// No document of the corpus is longer than this, but mutated ones are.
const LIMIT: usize = 20_000;

#[derive(Debug, Deserialize, PartialEq)]
struct Thing {
    metadata: ThingMetadata,
    spec: ThingSpec,
}

#[derive(Debug, Deserialize, PartialEq)]
struct ThingMetadata {
    name: String,
}

#[derive(Debug, Deserialize, PartialEq)]
struct ThingSpec {
    replicas: u32,
}

fn corpus(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name)
}

/// The JSON object in `bytes`, unless members are repeated: decoders may take either.
fn json_of(bytes: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let is_same = value.to_string().len() == bytes.trim_ascii().len();
    (is_same && value.is_object() && !value["metadata"].is_array()).then_some(value)
}

/// An object that is not what it should be is reported with its name, and with the field.
fn check_object(object: &Value, read: Result<Thing, &crate::InvalidObject>) {
    let expected = serde_json::from_value::<Thing>(object.clone());
    if object.to_string().len() > LIMIT {
        assert!(read.is_err(), "too large");
        return;
    }
    let error = match (read, expected) {
        (Ok(thing), Ok(expected)) => return assert_eq!(thing, expected),
        (Err(error), Err(_)) => error,
        (read, expected) => panic!("{read:?} instead of {expected:?}"),
    };
    if object["metadata"].is_array() {
        // Types are read from lists, too.
        return;
    }
    let name = object["metadata"]["name"].as_str();
    assert_eq!(error.name.as_deref(), name, "{object}");
    let text = error.to_string();
    if object.is_object() {
        assert!(text.contains("metadata") || text.contains("spec"), "{text}");
    }
    assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
}

#[test]
fn s2_any_line_of_a_watch_is_an_event_or_an_error_that_names_the_object() {
    fuzz(&corpus("events"), |line| {
        let event = decode::event::<Thing>(line, LIMIT);
        let Some(json) = json_of(line) else { return };
        // The order that API servers write is decoded at once.
        let usual = format!(r#"{{"type":{},"object":{}}}"#, json["type"], json["object"]);
        let at_once = decode::event::<Thing>(usual.as_bytes(), LIMIT);
        if json.get("object").is_some() {
            assert_eq!(at_once.is_ok(), event.is_ok(), "{usual}");
        }
        let (Some(kind), Some(object)) = (json["type"].as_str(), json.get("object")) else {
            assert!(event.is_err(), "{json}");
            return;
        };
        match (kind, event) {
            ("ADDED" | "MODIFIED", Ok(Event::Applied(thing)))
            | ("DELETED", Ok(Event::Deleted(thing))) => check_object(object, Ok(thing)),
            ("ADDED" | "MODIFIED" | "DELETED", Err(error)) => {
                assert_eq!(error.deleted, kind == "DELETED");
                check_object(object, Err(&error));
            }
            ("BOOKMARK", Ok(Event::Bookmark(bookmark))) => {
                let version = object["metadata"]["resourceVersion"].as_str();
                assert_eq!(
                    bookmark.metadata.resource_version,
                    version.unwrap_or_default()
                );
            }
            ("ERROR", Ok(Event::Error(status))) => {
                assert_eq!(
                    u64::from(status.code),
                    object["code"].as_u64().unwrap_or_default()
                );
            }
            ("BOOKMARK" | "ERROR", Err(_)) => {}
            ("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR", event) => {
                panic!("{event:?} of {json}")
            }
            (_, event) => assert!(
                matches!(event, Ok(Event::Unknown)) || object.to_string().len() > LIMIT,
                "{event:?} of {json}"
            ),
        }
    });
}

#[test]
fn s2_any_page_has_its_objects_or_errors_that_name_them() {
    fuzz(&corpus("pages"), |bytes| {
        let page = decode::page::<Thing>(bytes, LIMIT);
        let Some(json) = json_of(bytes) else { return };
        let version = json["metadata"]["resourceVersion"].as_str();
        let items = json.get("items").cloned().unwrap_or_default();
        let items = match items {
            Value::Array(items) => Some(items),
            Value::Null => Some(Vec::new()),
            _ => None,
        };
        let next = json["metadata"]
            .get("continue")
            .cloned()
            .unwrap_or_default();
        let next = match next {
            Value::String(text) => Some(text),
            Value::Null => Some(String::new()),
            _ => None,
        };
        let (Some(version), Some(items), Some(next)) = (version, items, next) else {
            assert!(page.is_err(), "{json}");
            return;
        };
        let page = match page {
            Err(error) if error.is_data() && version.len().max(next.len()) > 320 => return,
            page => page.expect("the list itself is valid"),
        };
        assert_eq!(page.version, version);
        assert_eq!(page.continue_token.unwrap_or_default(), next);
        assert_eq!(page.items.len(), items.len());
        for (read, object) in page.items.iter().zip(&items) {
            let read = read.as_ref().map(|thing| Thing {
                metadata: ThingMetadata {
                    name: thing.metadata.name.clone(),
                },
                spec: ThingSpec {
                    replicas: thing.spec.replicas,
                },
            });
            check_object(object, read);
        }
    });
}

/// A server with these lines, from a version on, of which each watch ends somewhere.
struct Cutting {
    lines: Vec<String>,
    random: StdRng,
    /// How many watches are cut.
    cuts: u32,
    /// Whether a line that is none of the server's comes at the beginning of a watch.
    noise: bool,
}

impl Transport for Cutting {
    async fn list(&mut self, _: u32, _: Option<&str>) -> Result<PageResponse, ErrorKind> {
        let body = Bytes::from_static(br#"{"metadata":{"resourceVersion":"1"},"items":[]}"#);
        Ok(PageResponse { body, date: None })
    }

    async fn watch(&mut self, version: &str, _: Duration) -> Result<Chunks, ErrorKind> {
        let after: usize = version.parse().expect("a version of this server");
        let mut bytes = Vec::new();
        if self.noise {
            let seeds: Vec<u64> = (0..3).map(|_| self.random.random()).collect();
            let line =
                r#"{"type":"ADDED","object":{"metadata":{"name":"odd"},"spec":{"replicas":"x"}}}"#;
            // Without a version it does not change from where the watch resumes.
            let odd = mutated(line.as_bytes(), &seeds);
            bytes.extend(odd.iter().filter(|byte| **byte != b'\n'));
            bytes.push(b'\n');
        }
        let lines = self.lines.iter().skip(after - 1);
        bytes.extend(lines.flat_map(|line| line.bytes()));
        let is_cut = self.cuts > 0;
        if is_cut {
            self.cuts -= 1;
            bytes.truncate(self.random.random_range(0..=bytes.len()));
        }
        let mut chunks = Vec::new();
        while !bytes.is_empty() {
            let rest = bytes.split_off(self.random.random_range(1..=bytes.len().min(90)));
            chunks.push(Ok(Bytes::from(std::mem::replace(&mut bytes, rest))));
        }
        let breaks = self.random.random_bool(0.5);
        let chunks = stream::iter(chunks).then(async |chunk| {
            sleep(Duration::from_millis(5)).await;
            chunk
        });
        let stream = if !is_cut {
            chunks.chain(stream::pending()).boxed()
        } else if breaks {
            chunks
                .chain(stream::iter([Err(ErrorKind::Timeout(Duration::ZERO))]))
                .boxed()
        } else {
            chunks.boxed()
        };
        Ok(stream.into())
    }
}

#[derive(Clone, Default)]
struct Known(Arc<Mutex<BTreeMap<String, u32>>>);

impl EventHandler<Numbered> for Known {
    fn on_init(&mut self) {}

    fn on_apply(&mut self, object: Numbered) {
        self.0
            .lock()
            .insert(object.metadata.name, object.spec.replicas);
    }

    fn on_delete(&mut self, object: Numbered) {
        self.0.lock().remove(&object.metadata.name);
    }

    fn on_init_done(&mut self, _: &str) {}

    fn on_error(&mut self, _: &Error) {}
}

#[derive(Deserialize)]
struct Numbered {
    metadata: NumberedMetadata,
    spec: ThingSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NumberedMetadata {
    name: String,
    resource_version: Option<String>,
}

impl Versioned for Numbered {
    fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

/// A history of some objects, as the lines of a watch from version 1 on, and what is left at its end.
fn history(random: &mut StdRng) -> (Vec<String>, BTreeMap<String, u32>) {
    let (mut lines, mut left) = (Vec::new(), BTreeMap::new());
    for version in 2..random.random_range(3..30) {
        let name = format!("thing-{}", random.random_range(0..4));
        let replicas = random.random_range(0..100);
        let kind = if !left.contains_key(&name) {
            "ADDED"
        } else if random.random_bool(0.3) {
            "DELETED"
        } else {
            "MODIFIED"
        };
        lines.push(format!(
            "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{version}\"}},\"spec\":{{\"replicas\":{replicas}}}}}}}\n"
        ));
        if kind == "DELETED" {
            left.remove(&name);
        } else {
            left.insert(name, replicas);
        }
    }
    (lines, left)
}

#[tokio::test(start_paused = true)]
async fn s2_watches_that_end_at_any_byte_and_have_odd_lines_lose_no_event() {
    for seed in 0..100 {
        let mut random = StdRng::seed_from_u64(seed);
        let (lines, left) = history(&mut random);
        let server = Cutting {
            lines,
            cuts: random.random_range(1..12),
            noise: random.random_bool(0.5),
            random,
        };
        let known = Known::default();
        let settings = ReflectorSettings::default();
        let path = Arc::from("/api/v1/things");
        let list_watch = ListWatch::new(server, known.clone(), settings, seed, path);
        let (relist, confirm) = (Notify::new(), Notify::new());
        let ask = async {
            for _ in 0..20 {
                sleep(Duration::from_millis(70)).await;
                confirm.notify_waiters();
            }
        };
        let runs = future::join(list_watch.run::<Numbered>(&relist, &confirm), ask);
        let _ended = timeout(Duration::from_mins(5), runs).await;
        let mut known = std::mem::take(&mut *known.0.lock());
        known.retain(|name, _| left.contains_key(name) || name.starts_with("thing-"));
        assert_eq!(known, left, "seed {seed}");
    }
}
