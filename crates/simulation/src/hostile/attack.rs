//! The responses of a hostile API server.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use fedrs_api::labels;
use futures::{StreamExt, stream};
use http::{Method, Request, Response, StatusCode, header::LOCATION};
use kube::client::Body;
use mutations::ESCAPES;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    mutations::mutated,
    objects::{
        SET_UID, fabricated_object, large_set, with_escapes, with_gigantic_numbers,
        with_unlabeled_pods,
    },
    response::{ResponseBody, body_of, endless, streamed, whole},
};

/// What a hostile API server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Each body never ends.
    EndlessBody,
    /// Each body never ends, with a byte per second.
    SlowBytes,
    /// Each response of a write is an error of 900 kB with escape sequences.
    HugeError,
    /// Each error never ends.
    EndlessError,
    /// Each response is a redirect into the host's network.
    Redirect,
    /// Each response is an object of another kind, with lists for maps and texts for lists.
    WrongKind,
    /// Each response is a hundred thousand nested lists.
    DeepJson,
    /// After each page of a list there is another, empty one.
    PagesWithoutEnd,
    /// After each page of a list there is another one, full of ReplicaSets and pods that nobody created.
    FabricatedObjectsWithoutEnd,
    /// Watches report ReplicaSets and pods that nobody created, without an end.
    WatchFlood,
    /// Events of watches have an object of 3 MB, mostly numbers, before their type.
    ObjectBeforeType,
    /// Lists contain an object of 100 MB.
    HugeObject,
    /// Names, uids and versions of listed objects have 4 kB each.
    LongTexts,
    /// Each object has hundreds of thousands of unknown fields and labels.
    UnknownKeys,
    /// Each template is a list of a million numbers.
    WideTemplate,
    /// Lists of sets have pages of many templates, each just within its limit.
    WidePages,
    /// The selector of a set that is read alone has a million expressions.
    WideSelector,
    /// Sets have more replicas than labeled pods, and lists of unlabeled pods have pods with labels of 4 MB.
    LongLabels,
    /// Lists contain ten thousand sets whose texts are as long as they may be.
    LargeSets,
    /// Lists and objects have 4 MB, and then nothing follows.
    UnfinishedBodies,
    /// Watches report an object of 4 MB, and then nothing follows.
    UnfinishedEvents,
    /// The version of each list has 4 MB, and so has that of bookmarks.
    LongVersions,
    /// Deletions are answered too late.
    SlowDeletions,
    /// Writes of pods are answered just in time.
    SlowPods,
    /// `metadata.labels` is a string in the response of a GET of one object.
    LabelsAsText,
    /// All counters of objects are 2^32-1, and writes change nothing.
    LargestNumbers,
    /// All counters of objects are out of the range of any type.
    GiganticNumbers,
    /// Texts for people contain escape sequences.
    Escapes,
    /// Half of all bodies, and of the lines of watches, have random mutations; the seed selects them.
    Mutations(u64),
}

/// What a request is for.
pub(super) struct Call {
    method: Method,
    pub(super) path: String,
    /// The collection, or the one that the object is in.
    pub(super) resource: String,
    is_list: bool,
    pub(super) is_watch: bool,
    /// Whether the labels of fedrs are not selected.
    of_unlabeled: bool,
}

impl Call {
    pub(super) fn of(request: &Request<Body>) -> Self {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let resource = ["replicasets", "pods", "nodes"]
            .into_iter()
            .find(|resource| path.contains(&format!("/{resource}")))
            .unwrap_or_default();
        Self {
            is_watch: query.contains("watch=true"),
            of_unlabeled: !query.contains("fedrs.dev"),
            is_list: request.method() == Method::GET
                && !resource.is_empty()
                && path.ends_with(resource),
            method: request.method().clone(),
            path: path.to_owned(),
            resource: resource.to_owned(),
        }
    }

    fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether the response is one object.
    fn is_object(&self) -> bool {
        !self.resource.is_empty() && !self.is_list
    }

    fn lists(&self) -> bool {
        self.is_list && !self.is_watch
    }

    fn lists_sets(&self) -> bool {
        self.lists() && self.resource == "replicasets"
    }
}

impl Attack {
    /// The response to `call`, if it does not depend on the honest one.
    pub(super) fn response(self, call: &Call) -> Option<Response<ResponseBody>> {
        Some(match self {
            Self::EndlessBody => endless("{", filling(b' '), None),
            Self::SlowBytes => {
                let second = Duration::from_secs(1);
                endless("{", Bytes::from_static(b" "), Some(second))
            }
            Self::HugeError if call.is_write() => huge_error(),
            Self::EndlessError if call.is_write() || call.is_list => endless_error(),
            Self::Redirect => redirect(),
            Self::WrongKind => whole(StatusCode::OK, WRONG_KIND),
            Self::DeepJson => whole(StatusCode::OK, vec![b'['; 100_000]),
            Self::PagesWithoutEnd if call.lists() => whole(StatusCode::OK, page("", true)),
            Self::FabricatedObjectsWithoutEnd if call.lists() => {
                let objects = fabricated_objects(call, 400, 60);
                whole(StatusCode::OK, page(&objects, true))
            }
            Self::LongTexts if call.lists() => {
                let objects = fabricated_objects(call, 5, 4000);
                whole(StatusCode::OK, page(&objects, false))
            }
            Self::WatchFlood if call.is_watch => flood(call),
            Self::ObjectBeforeType if call.is_watch => object_before_type(),
            Self::LargestNumbers if call.is_write() => whole(StatusCode::CONFLICT, CONFLICT),
            Self::HugeObject if call.lists() => huge_object(),
            Self::WidePages if call.lists_sets() => {
                let numbers = "0,".repeat(95_000) + "0";
                let sets = (0..40).map(|number| {
                    let set = fabricated_object("replicasets", number, 20).to_string();
                    set.replacen(
                        r#""template":{"#,
                        &format!(r#""template":{{"wide":[{numbers}]"#),
                        1,
                    )
                });
                let sets = sets.collect::<Vec<_>>().join(",");
                whole(StatusCode::OK, page(&sets, false))
            }
            Self::LongLabels if call.lists() && call.of_unlabeled => {
                let number = rand::random_range(0..1_000_000);
                let pod = json!({ "metadata": {
                    "name": format!("pod-{number}"),
                    "uid": format!("pod-{number}"),
                    "labels": { labels::FEDERATION: "LABEL" },
                    "ownerReferences": [{ "uid": SET_UID, "controller": true }],
                } });
                let page = page(&pod.to_string(), number % 15 != 0);
                with_long_text(&page, "LABEL", filling_of_4_mb(b'x'))
            }
            Self::LargeSets if call.lists_sets() => {
                let sets = randomly_numbered(&large_set(NUMBER), 200);
                whole(StatusCode::OK, page(&sets, true))
            }
            Self::UnfinishedBodies if !call.is_watch && !call.resource.is_empty() => unfinished(),
            Self::UnfinishedEvents if call.is_watch => unfinished(),
            Self::LongVersions if call.lists() => {
                let list = r#"{"metadata":{"resourceVersion":"VERSION"}}"#;
                with_long_text(list, "VERSION", filling_of_4_mb(b'9'))
            }
            Self::SlowDeletions if call.method == Method::DELETE => {
                endless("{", Bytes::from_static(b" "), Some(Duration::from_secs(1)))
            }
            Self::SlowPods if call.is_write() && call.resource == "pods" => {
                let response = [Bytes::from_static(b"{}")];
                streamed(stream::iter(response), Some(Duration::from_millis(9900)))
            }
            _ => return None,
        })
    }

    /// Whether the honest response to `call` is edited.
    pub(super) fn edits(self, call: &Call) -> bool {
        match self {
            Self::LabelsAsText => call.is_object(),
            Self::WideSelector => call.is_object() && !call.is_write(),
            Self::LongLabels => call.lists_sets(),
            Self::UnknownKeys | Self::WideTemplate => !call.is_watch && !call.resource.is_empty(),
            Self::LargestNumbers | Self::GiganticNumbers | Self::Escapes | Self::Mutations(_) => {
                !call.is_watch
            }
            _ => false,
        }
    }

    /// A part of a watch, edited: usually one line.
    pub(super) fn edited_chunk(self, chunk: Bytes) -> Bytes {
        match self {
            Self::Mutations(seed) => mutated(&chunk, seed).into(),
            _ => chunk,
        }
    }

    /// The honest `body`, edited.
    pub(super) fn edited(self, body: &[u8]) -> ResponseBody {
        if let Self::Mutations(seed) = self {
            return body_of(mutated(body, seed));
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
            return body_of(body.to_vec());
        };
        match self {
            Self::LabelsAsText => value["metadata"]["labels"] = "a text".into(),
            Self::LargestNumbers => with_gigantic_numbers(&mut value, &u32::MAX.into()),
            Self::GiganticNumbers => with_gigantic_numbers(&mut value, &json!(1e300)),
            Self::Escapes => with_escapes(&mut value),
            Self::LongLabels => with_unlabeled_pods(&mut value),
            _ => {}
        }
        let text = value.to_string();
        body_of(match self {
            Self::UnknownKeys => with_unknown_keys(&text),
            Self::WideTemplate => with_wide_templates(&text),
            Self::WideSelector => {
                let expressions = "{},".repeat(1_000_000) + "{}";
                let selector = format!(r#""selector":{{"matchExpressions":[{expressions}],"#);
                text.replacen(r#""selector":{"#, &selector, 1)
            }
            _ => text,
        })
    }
}

/// The response to a write that is refused.
const CONFLICT: &str = r#"{"kind":"Status","status":"Failure","code":409,"reason":"Conflict"}"#;
/// Neither a list nor an object of any kind.
const WRONG_KIND: &str =
    r#"{"kind":"Pod","apiVersion":7,"metadata":[],"spec":"x","status":[[]],"items":{"a":1}}"#;

/// A page of a list, perhaps with another one after it.
fn page(items: &str, has_next: bool) -> String {
    let next = if has_next { "again" } else { "" };
    format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":[{items}]}}"#)
}

/// The number in a template of objects.
const NUMBER: u64 = 1 << 32;

/// Objects that nobody created, each with `length` bytes in its texts, as the items of a page.
fn fabricated_objects(call: &Call, count: usize, length: usize) -> String {
    randomly_numbered(&fabricated_object(&call.resource, NUMBER, length), count)
}

/// Objects like `template` with other numbers, as the items of a page.
fn randomly_numbered(template: &Value, count: usize) -> String {
    // A page is made of one text: the server is to be faster than its client.
    let (template, number) = (template.to_string(), NUMBER.to_string());
    let parts: Vec<_> = template.split(&number).collect();
    let objects = std::iter::repeat_with(|| {
        let random = rand::random_range(NUMBER..9 * NUMBER).to_string();
        parts.join(&random)
    });
    objects.take(count).collect::<Vec<_>>().join(",")
}

/// Events about objects that nobody created, in chunks of a hundred.
fn flood(call: &Call) -> Response<ResponseBody> {
    let resource = call.resource.clone();
    let chunks = stream::iter((0u64..).map(move |chunk| {
        let lines = (0..100).map(|number| {
            let object = fabricated_object(&resource, chunk * 100 + number, 60);
            json!({ "type": "ADDED", "object": object }).to_string() + "\n"
        });
        Bytes::from(lines.collect::<String>())
    }));
    streamed(chunks, Some(Duration::from_secs(5)))
}

fn object_before_type() -> Response<ResponseBody> {
    let numbers = "0,".repeat(1_500_000) + "0";
    let line = format!("{{\"object\":{{\"a\":[{numbers}]}},\"type\":\"ADDED\"}}\n");
    endless("", line.into(), Some(Duration::from_secs(20)))
}

/// A chunk of 64 KiB.
fn filling(byte: u8) -> Bytes {
    vec![byte; 1 << 16].into()
}

/// `text` with 4 MB in place of `place`. Each response shares them: to copy them takes most of the time of the tests.
fn with_long_text(text: &str, place: &str, long: Bytes) -> Response<ResponseBody> {
    let (before, after) = text.split_once(place).expect("a part of the text");
    let chunks = [
        Bytes::copy_from_slice(before.as_bytes()),
        long,
        Bytes::copy_from_slice(after.as_bytes()),
    ];
    streamed(stream::iter(chunks), None)
}

/// The same 4 MB for each call with this byte.
fn filling_of_4_mb(byte: u8) -> Bytes {
    static FILLINGS: Mutex<BTreeMap<u8, Bytes>> = Mutex::new(BTreeMap::new());
    let mut fillings = FILLINGS.lock();
    let filling = fillings.entry(byte);
    filling
        .or_insert_with(|| vec![byte; 4_000_000].into())
        .clone()
}

/// 4 MB that do not end.
fn unfinished() -> Response<ResponseBody> {
    let chunks = std::iter::repeat_n(filling(b' '), 60);
    let rest = stream::once(std::future::pending());
    streamed(stream::iter(chunks).chain(rest), None)
}

/// A list with one object of 100 MB.
fn huge_object() -> Response<ResponseBody> {
    let begin = r#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"big","namespace":"default","uid":"big","annotations":{"a":""#;
    let filling = filling(b'x');
    let chunks = [Bytes::from_static(begin.as_bytes())]
        .into_iter()
        .chain(std::iter::repeat_n(filling, 1600))
        .chain([Bytes::from_static(br#""}}}]}"#)]);
    streamed(stream::iter(chunks), None)
}

fn huge_error() -> Response<ResponseBody> {
    let status = json!({
        "kind": "Status",
        "status": "Failure",
        "code": 403,
        "reason": ESCAPES,
        "message": ESCAPES.repeat(900_000 / ESCAPES.len()),
    });
    whole(StatusCode::FORBIDDEN, status.to_string())
}

fn endless_error() -> Response<ResponseBody> {
    let mut response = endless("{", filling(b' '), None);
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

fn redirect() -> Response<ResponseBody> {
    let mut response = whole(StatusCode::TEMPORARY_REDIRECT, "");
    let location = "http://169.254.169.254/latest/meta-data/";
    let location = location.parse().expect("a constant is a header");
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Adds members and labels to the first object, as many as fit into a body of 3.5 MB.
fn with_unknown_keys(text: &str) -> String {
    let keys: Vec<_> = (0..100_000)
        .map(|number| format!("\"{number:x}\":[],"))
        .collect();
    let keys = keys.concat();
    let text = text.replacen('{', &format!("{{{keys}"), 1);
    let text = text.replacen(r#""metadata":{"#, &format!(r#""metadata":{{{keys}"#), 1);
    let labels = keys.replace("[]", r#""""#);
    text.replacen(r#""labels":{"#, &format!(r#""labels":{{{labels}"#), 1)
}

/// Puts a list of a million numbers into the first template.
fn with_wide_templates(text: &str) -> String {
    let numbers = "0,".repeat(1_500_000) + "0";
    text.replacen(
        r#""template":{"#,
        &format!(r#""template":{{"wide":[{numbers}],"#),
        1,
    )
}
