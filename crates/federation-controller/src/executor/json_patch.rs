//! JSON patches of local workloads, which begin with tests: one that was decided for another state of the object fails.

use fedrs_api::labels;
use serde::Serialize;

use crate::{
    check::Precondition,
    manifest::{LocalStrategy, RollingUpdate, Spec, Template},
};

/// A JSON patch.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct JsonPatch<'a>(Vec<Operation<'a>>);

/// An operation of a JSON patch.
#[derive(Debug, Serialize)]
struct Operation<'a> {
    op: &'static str,
    path: String,
    value: Operand<'a>,
}

/// The value of an operation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Operand<'a> {
    /// A test for it passes only if the field is absent, and a field that is set to it has its default.
    Null,
    Bool(bool),
    Number(i64),
    Text(&'a str),
    Spec(&'a Spec<'a>),
    Strategy(RollingUpdate),
    LocalStrategy(LocalStrategy),
    Template(&'a Template<'a>),
    Empty {},
}

impl From<u32> for Operand<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl<'a> JsonPatch<'a> {
    /// A patch of the object that was seen, unless its spec or its owner has changed since; of one with so many `replicas`, if
    /// they are given.
    pub(super) fn of_seen(
        seen: &'a Precondition,
        federation: &'a str,
        replicas: Option<u32>,
    ) -> Self {
        let mut patch = Self::of_generation(&seen.uid, seen.generation);
        if let Some(replicas) = replicas {
            patch.test("/spec/replicas", replicas.into());
        }
        patch.test(&label_path(labels::FEDERATION), Operand::Text(federation));
        if !seen.has_owners {
            patch.test("/metadata/ownerReferences", Operand::Null);
        }
        if let Some(version) = &seen.resource_version {
            patch.test("/metadata/resourceVersion", Operand::Text(version));
        }
        patch
    }

    /// A patch of the very object that was read: the one with this uid and this resourceVersion.
    pub(super) fn of_read(uid: &'a str, version: &'a str) -> Self {
        let mut patch = Self(Vec::new());
        patch.test("/metadata/uid", Operand::Text(uid));
        patch.test("/metadata/resourceVersion", Operand::Text(version));
        patch
    }

    /// A patch of the spec that was read, whatever the status is.
    pub(super) fn of_generation(uid: &'a str, generation: i64) -> Self {
        let mut patch = Self(Vec::new());
        patch.test("/metadata/uid", Operand::Text(uid));
        patch.test("/metadata/generation", Operand::Number(generation));
        patch
    }

    fn test(&mut self, path: &str, value: Operand<'a>) {
        self.push("test", path, value);
    }

    /// Sets a field that exists.
    pub(super) fn replace(&mut self, path: &str, value: Operand<'a>) {
        self.push("replace", path, value);
    }

    /// Sets a field, whether or not it exists.
    pub(super) fn add(&mut self, path: &str, value: Operand<'a>) {
        self.push("add", path, value);
    }

    /// Adds these labels to the object; `has_labels` says whether it has any.
    pub(super) fn add_labels(
        &mut self,
        has_labels: bool,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        if !has_labels {
            self.add("/metadata/labels", Operand::Empty {});
        }
        for (key, value) in labels {
            self.add(&label_path(key), Operand::Text(value));
        }
    }

    fn push(&mut self, op: &'static str, path: &str, value: Operand<'a>) {
        let path = path.to_owned();
        self.0.push(Operation { op, path, value });
    }
}

fn label_path(label: &str) -> String {
    let label = label.replace('~', "~0").replace('/', "~1");
    format!("/metadata/labels/{label}")
}
