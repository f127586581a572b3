//! The language of conversations: what is asked, in order.
//!
//! Paths that begin with a slash are whole; `configmaps/a` is one of the core group and `apps/v1:replicasets/a` one of
//! another group, in the conversation's namespace. `${ns}` is that namespace, and `${rv}` stands for what an earlier step has
//! [kept](Ask::keep) under this name.

#![expect(
    clippy::needless_pass_by_value,
    reason = "objects are written where they are asked with: a reference to each says nothing"
)]

use serde_json::Value;

/// The media type of a Table, as kubectl asks for it.
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// The media type of metadata alone.
pub const METADATA: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
/// The media type of a list of metadata alone.
pub const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// Steps that belong together, in a namespace of their own.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Its name: `topic::what_is_asked`.
    pub name: &'static str,
    /// What is asked.
    pub steps: Vec<Step>,
    /// What differs on purpose.
    pub differs: Vec<Differs>,
    /// Nodes are lost in it: it is played alone.
    pub is_alone: bool,
}

/// A difference that is meant.
#[derive(Clone, Copy, Debug)]
pub struct Differs {
    /// The key of its reason in [`purpose`](super::purpose).
    pub why: &'static str,
    /// The label of the step, or `*`.
    pub step: &'static str,
    /// Where: `code`, `warnings`, or `body/...` with `*` for any one part; everything below is meant too.
    pub at: &'static str,
}

/// A difference that is meant, in a table: conversation, reason, step, place.
pub type Meant = (&'static str, &'static str, &'static str, &'static str);

/// The conversations with what is meant to differ in them.
///
/// # Panics
/// If the table names a conversation that isn't there.
pub fn differing(meant: &[Meant], conversations: Vec<Conversation>) -> Vec<Conversation> {
    for (name, ..) in meant {
        let is_there = conversations.iter().any(|it| it.name == *name);
        assert!(is_there, "there is no conversation {name}");
    }
    let with = |conversation: Conversation| {
        let own = meant.iter().filter(|(name, ..)| *name == conversation.name);
        own.clone()
            .fold(conversation.clone(), |it, (_, why, step, at)| {
                it.differs(why, step, at)
            })
    };
    conversations.into_iter().map(with).collect()
}

/// One thing that is done.
#[derive(Clone, Debug)]
pub enum Step {
    /// A request; its answer is compared.
    Ask(Ask),
    /// A request for a watch, which goes on under this name.
    Watch(&'static str, Ask),
    /// The next so many events of a watch are compared, fewer only if it ends; with 0 whatever else comes, which should be nothing.
    /// Bookmarks don't count that only say how far it is.
    Events(&'static str, usize),
    /// A node stops to answer, or does again.
    Node(u32, bool),
    /// All versions but the present one are forgotten.
    Compact,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The administrator.
    Admin,
    /// Who the headers show, or nobody.
    Anybody,
}

/// When the answer is the one that is waited for.
pub type Until = fn(&Value) -> bool;

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method.
    pub method: &'static str,
    /// The path with the query, as described above.
    pub path: String,
    /// Headers besides the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
    /// Who asks.
    pub who: Who,
    /// What is kept of the answer: name and JSON pointer.
    pub kept: Vec<(&'static str, &'static str)>,
    /// Asked again until the answer is like this, at most so many seconds.
    pub until: Option<(Until, u64)>,
    /// How exceptions name it: method and path, unless it is [called](Ask::called) otherwise.
    pub label: String,
    /// The pointers of what alone is compared of the body; all of it if there are none.
    pub only: Vec<&'static str>,
}

/// A conversation of these steps.
pub fn conversation(name: &'static str, steps: Vec<Step>) -> Conversation {
    Conversation {
        name,
        steps,
        differs: Vec::new(),
        is_alone: false,
    }
}

impl Conversation {
    /// A difference is meant at `at` of the answer to `step`.
    #[must_use]
    pub fn differs(mut self, why: &'static str, step: &'static str, at: &'static str) -> Self {
        self.differs.push(Differs { why, step, at });
        self
    }

    /// It is played while nothing else is.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }
}

impl From<Ask> for Step {
    fn from(ask: Ask) -> Self {
        Self::Ask(ask)
    }
}

/// Steps from requests and steps.
#[macro_export]
macro_rules! steps {
    ($($step:expr),* $(,)?) => { vec![$($crate::truth::talk::Step::from($step)),*] };
}

fn ask(method: &'static str, path: &str) -> Ask {
    Ask {
        method,
        path: whole(path),
        headers: Vec::new(),
        body: String::new(),
        who: Who::Admin,
        kept: Vec::new(),
        until: None,
        label: format!("{method} {path}"),
        only: Vec::new(),
    }
}

fn whole(path: &str) -> String {
    let (resource, _) = path.split_once('?').unwrap_or((path, ""));
    match resource.split_once(':') {
        _ if path.starts_with('/') => path.to_owned(),
        Some((group, _)) => {
            let rest = &path[group.len() + 1..];
            format!("/apis/{group}/namespaces/${{ns}}/{rest}")
        }
        None => format!("/api/v1/namespaces/${{ns}}/{path}"),
    }
}

/// Asks for what is there.
pub fn get(path: &str) -> Ask {
    ask("GET", path)
}

/// Creates.
pub fn post(path: &str, body: Value) -> Ask {
    ask("POST", path).json(&body)
}

/// Replaces.
pub fn put(path: &str, body: Value) -> Ask {
    ask("PUT", path).json(&body)
}

/// Deletes, without options.
pub fn delete(path: &str) -> Ask {
    ask("DELETE", path)
}

/// Deletes with options.
pub fn delete_with(path: &str, options: Value) -> Ask {
    ask("DELETE", path).json(&options)
}

/// Patches by a JSON merge patch.
pub fn merge(path: &str, body: Value) -> Ask {
    patch("merge-patch", path, &body)
}

/// Patches by a JSON patch.
pub fn json_patch(path: &str, body: Value) -> Ask {
    patch("json-patch", path, &body)
}

/// Patches by a strategic merge patch.
pub fn strategic(path: &str, body: Value) -> Ask {
    patch("strategic-merge-patch", path, &body)
}

/// Applies on the server's side; the query names the manager.
pub fn apply(path: &str, body: Value) -> Ask {
    let mut ask = patch("apply-patch", path, &body);
    ask.headers = vec![("content-type", "application/apply-patch+yaml".to_owned())];
    ask
}

fn patch(kind: &str, path: &str, body: &Value) -> Ask {
    let mut ask = ask("PATCH", path);
    ask.body = body.to_string();
    ask.header("content-type", &format!("application/{kind}+json"))
}

/// Any other request.
pub fn other(method: &'static str, path: &str) -> Ask {
    ask(method, path)
}

impl Ask {
    fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string();
        self.header("content-type", "application/json")
    }

    /// With this body, whatever it is.
    #[must_use]
    pub fn text(mut self, content_type: &str, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self.header("content-type", content_type)
    }

    /// With this header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(it, _)| *it != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The answer is wanted in this form.
    #[must_use]
    pub fn accept(self, form: &str) -> Self {
        self.header("accept", form)
    }

    /// Asked by this user, whom the administrator impersonates.
    #[must_use]
    pub fn by(self, user: &str) -> Self {
        self.header("impersonate-user", user)
    }

    /// Asked with this token alone, or with nothing.
    #[must_use]
    pub fn with_token(mut self, token: Option<&str>) -> Self {
        self.who = Who::Anybody;
        match token {
            Some(token) => self.header("authorization", &format!("Bearer {token}")),
            None => self,
        }
    }

    /// What is at `pointer` of the answer is called `${name}` from now on.
    #[must_use]
    pub fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.kept.push((name, pointer));
        self
    }

    /// Asked again until `holds`, at most `seconds`; the last answer is compared.
    #[must_use]
    pub fn until(mut self, seconds: u64, holds: Until) -> Self {
        self.until = Some((holds, seconds));
        self
    }

    /// What exceptions call it.
    #[must_use]
    pub fn called(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// Of an object only what its writers say: not its status, which controllers write when they get to it.
    #[must_use]
    pub fn spec(self) -> Self {
        self.only("/metadata/labels")
            .only("/metadata/finalizers")
            .only("/metadata/generation")
            .only("/spec")
    }

    /// Only what is at `pointer` of the body is compared (and at others that are named so).
    #[must_use]
    pub fn only(mut self, pointer: &'static str) -> Self {
        self.only.push(pointer);
        self
    }
}
