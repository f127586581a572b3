//! A field of an object under validation: its value, its path, and where its errors are collected.
//!
//! object -> [`errors_of`] -> [`Field`] -> (its fields and items) -> the errors, in the order of the checks

use std::cell::RefCell;

use serde_json::Value;

use crate::field::{FieldError, FieldErrorKind, join};

/// A field of an object under validation.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    /// Null if the object does not have the field.
    pub(crate) value: &'a Value,
    path: String,
    errors: &'a RefCell<Vec<FieldError>>,
}

/// The errors that `validate` reports about an object.
pub(crate) fn errors_of(object: &Value, validate: impl FnOnce(&Field<'_>)) -> Vec<FieldError> {
    let errors = RefCell::default();
    validate(&Field {
        value: object,
        path: String::new(),
        errors: &errors,
    });
    errors.into_inner()
}

impl<'a> Field<'a> {
    /// The field `name` of this object.
    pub(crate) fn field(&self, name: &str) -> Self {
        self.part(&self.value[name], name)
    }

    /// The items of this list; none if it is no list.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, item)| self.part(item, &format!("[{index}]")))
    }

    /// The keys of this map with their values; none if it is no map.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a String, Self)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key, self.part(value, &format!("[{key}]"))))
    }

    /// The entry `key` of this map.
    pub(crate) fn entry(&self, key: &str) -> Self {
        self.part(&self.value[key], &format!("[{key}]"))
    }

    /// Another value, whose errors are reported at the path of this field.
    pub(crate) fn with(&self, value: &'a Value) -> Self {
        self.part(value, "")
    }

    fn part(&self, value: &'a Value, path: &str) -> Self {
        Self {
            value,
            path: join(&self.path, path),
            errors: self.errors,
        }
    }

    /// Whether this is the field `name` of an object.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.path.rsplit('.').next() == Some(name)
    }

    /// The text; empty if it is none.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number, if it is an integer.
    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// How many items the list has.
    pub(crate) fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    /// Whether an error was reported about the object so far.
    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.borrow().is_empty()
    }

    /// Reports an error of any kind about `value`.
    pub(crate) fn report(&self, kind: FieldErrorKind, value: impl Into<Value>, detail: &str) {
        self.push(FieldError::new(kind, &self.path, value, detail));
    }

    /// Reports an error that this field's path does not describe.
    pub(crate) fn push(&self, error: FieldError) {
        self.errors.borrow_mut().push(error);
    }

    /// Reports a malformed value: this one.
    pub(crate) fn invalid(&self, detail: &str) {
        self.invalid_as(self.value.clone(), detail);
    }

    /// Reports a malformed value, shown as `value`: the text of a missing field is empty.
    pub(crate) fn invalid_as(&self, value: impl Into<Value>, detail: &str) {
        self.report(FieldErrorKind::Invalid, value, detail);
    }

    /// Reports all that is wrong with a text: this one, or the key of an entry.
    pub(crate) fn invalid_text(&self, text: &str, wrong: Vec<String>) {
        for detail in wrong {
            self.invalid_as(text, &detail);
        }
    }

    /// Reports a missing value.
    pub(crate) fn required(&self, detail: &str) {
        self.report(FieldErrorKind::Required, "", detail);
    }

    /// Reports a value that policy or immutability forbids.
    pub(crate) fn forbidden(&self, detail: &str) {
        self.report(FieldErrorKind::Forbidden, "", detail);
    }

    /// Reports that the value occurs twice.
    pub(crate) fn duplicate(&self) {
        self.report(FieldErrorKind::Duplicate, self.value.clone(), "");
    }

    /// Checks that the text is not empty. Returns whether it isn't.
    pub(crate) fn require_text(&self, detail: &str) -> bool {
        if self.text().is_empty() {
            self.required(detail);
        }
        !self.text().is_empty()
    }

    /// Checks that the text is one of `supported`.
    pub(crate) fn require_one_of(&self, supported: &[&str]) {
        if self.require_text("") && !supported.contains(&self.text()) {
            self.not_supported(supported);
        }
    }

    /// Reports a value that is none of `supported`.
    pub(crate) fn not_supported(&self, supported: &[&str]) {
        self.push(FieldError::not_supported(
            &self.path,
            self.text(),
            supported,
        ));
    }

    /// Checks that a number, if there is one, is not negative.
    pub(crate) fn require_not_negative(&self) {
        if self.number().is_some_and(|number| number < 0) {
            self.invalid("must be greater than or equal to 0");
        }
    }

    /// Checks that a text or map of `bytes` bytes has at most `max`.
    pub(crate) fn require_at_most(&self, bytes: u64, max: u64) {
        if bytes > max {
            self.push(FieldError::too_long(&self.path, max));
        }
    }

    /// Checks that the value is still `old`.
    pub(crate) fn require_unchanged(&self, old: &Value) {
        if self.value != old {
            self.invalid("field is immutable");
        }
    }
}
