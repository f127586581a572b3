//! `x-kubernetes-validations`: rules in the Common Expression Language.
//!
//! Rules are compiled once with the schema and evaluated from the object's root downwards, each on its part of the object.
//! Strings with a date-time or duration format stay strings, and lists of type `set` and `map` are compared in order.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::types::CelOptional;
use cel::common::value::Val;
use cel::objects::{Key, Map as CelMap};
use cel::{Context, Env, Program, Value as CelValue, extensions};
use serde_json::Value;

use super::validate::same_item;
use crate::field::{FieldError, join};

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    for extension in [extensions::strings, extensions::lists, extensions::math] {
        env.add_extension(extension)
            .expect("the extensions do not overlap");
    }
    super::cel_functions::add(&mut env).expect("the functions have names of their own");
    Arc::new(env)
});

/// The compiled rules of a schema, by their text: the same rule in two places is compiled once.
#[derive(Default)]
pub(super) struct Rules {
    programs: HashMap<String, Result<Program, CompileError>>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.programs.keys()).finish()
    }
}

/// A rule that does not compile, with the compiler's explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct CompileError(String);

/// The error of a rule; none if it compiles.
pub(super) fn compile_error(rule: &str) -> Option<CompileError> {
    compile(rule).err()
}

fn compile(rule: &str) -> Result<Program, CompileError> {
    ENVIRONMENT
        .compile(rule)
        .map_err(|errors| CompileError(errors.to_string()))
}

impl Rules {
    pub(super) fn compile(schema: &Value) -> Self {
        let mut rules = Self::default();
        rules.collect(schema);
        rules
    }

    pub(super) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    fn collect(&mut self, schema: &Value) {
        for rule in rules_of(schema) {
            for field in ["rule", "messageExpression"] {
                if let Some(text) = rule[field].as_str() {
                    self.programs
                        .entry(text.to_owned())
                        .or_insert_with(|| compile(text));
                }
            }
        }
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(_, child)| child);
        let others = ["items", "additionalProperties"]
            .into_iter()
            .filter_map(|key| schema.get(key));
        for child in properties.chain(others) {
            if child.is_object() {
                self.collect(child);
            }
        }
    }

    /// The errors of the rules for `object`; `old` is the stored object of an update.
    pub(super) fn check(
        &self,
        object: &Value,
        old: Option<&Value>,
        schema: &Value,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.walk(object, old, schema, "", &mut errors);
        errors
    }

    fn walk(
        &self,
        value: &Value,
        old: Option<&Value>,
        schema: &Value,
        path: &str,
        errors: &mut Vec<FieldError>,
    ) {
        for rule in rules_of(schema) {
            errors.extend(self.run(rule, value, old, schema, path));
        }
        match value {
            Value::Object(fields) => {
                for (name, child) in fields.iter().filter(|(_, child)| !child.is_null()) {
                    let Some((child_schema, path)) = child_of(schema, name, path) else {
                        continue;
                    };
                    let before = old.and_then(|old| old.get(name));
                    self.walk(child, before, child_schema, &path, errors);
                }
            }
            Value::Array(items) => {
                let Some(item_schema) = schema.get("items") else {
                    return;
                };
                let correlates = schema
                    .get("x-kubernetes-list-type")
                    .is_some_and(|kind| kind == "map");
                for (index, item) in items.iter().enumerate() {
                    let before = old
                        .filter(|_| correlates)
                        .and_then(|old| same_item(old, item, index, schema));
                    self.walk(
                        item,
                        before,
                        item_schema,
                        &format!("{path}[{index}]"),
                        errors,
                    );
                }
            }
            _ => {}
        }
    }

    fn run(
        &self,
        rule: &Value,
        value: &Value,
        old: Option<&Value>,
        schema: &Value,
        path: &str,
    ) -> Option<FieldError> {
        let text = rule["rule"].as_str()?;
        let kind = schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let program = match self.programs.get(text)? {
            Ok(program) => program,
            Err(error) => {
                return Some(FieldError::invalid(
                    path,
                    kind,
                    format!("rule compile error: {error}"),
                ));
            }
        };
        let optional = rule["optionalOldSelf"] == Value::Bool(true);
        let is_transition = program.references().has_variable("oldSelf");
        if is_transition && old.is_none() && !optional {
            return None;
        }
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_from_value("self", to_cel(value, schema, path.is_empty()));
        if is_transition {
            let before = old.map(|old| to_cel(old, schema, path.is_empty()));
            bind_old(&mut context, before, optional);
        }
        let detail = match program.execute(&context) {
            Ok(CelValue::Bool(true)) => return None,
            // An unchanged part passes all rules except transition rules.
            Ok(_) if !is_transition && old == Some(value) => return None,
            Ok(_) => self.message(rule, &context, text),
            Err(error) => {
                let words = rule["message"].as_str().unwrap_or(text.trim());
                return Some(FieldError::invalid(
                    path,
                    kind,
                    format!("{error} evaluating rule: {words}"),
                ));
            }
        };
        Some(failure(rule, value, path, detail))
    }

    /// The rule's message: by its expression, as written, or the rule itself.
    fn message(&self, rule: &Value, context: &Context<'_, '_>, text: &str) -> String {
        let computed = rule["messageExpression"]
            .as_str()
            .and_then(|expression| self.programs.get(expression)?.as_ref().ok())
            .and_then(|program| program.execute(context).ok())
            .and_then(|value| match value {
                CelValue::String(text) if !text.trim().is_empty() && !text.contains('\n') => {
                    Some(text.to_string())
                }
                _ => None,
            });
        computed
            .or_else(|| {
                rule["message"]
                    .as_str()
                    .filter(|message| !message.is_empty())
                    .map(str::to_owned)
            })
            .unwrap_or_else(|| format!("failed rule: {}", text.trim()))
    }
}

/// The error of a violated rule; it shows a scalar value.
fn failure(rule: &Value, value: &Value, path: &str, detail: String) -> FieldError {
    let at = join(
        path,
        rule["fieldPath"]
            .as_str()
            .unwrap_or_default()
            .trim_start_matches('.'),
    );
    let error = match rule["reason"].as_str() {
        Some("FieldValueForbidden") => FieldError::forbidden(at, detail),
        Some("FieldValueRequired") => FieldError::required(at, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(at, value.clone()),
        _ => FieldError::invalid(at, value.clone(), detail),
    };
    if value.is_object() || value.is_array() {
        return error.without_value();
    }
    error
}

/// The schema and path of the field or map entry `name`: a field comes after a dot, a key in brackets.
fn child_of<'a>(schema: &'a Value, name: &str, path: &str) -> Option<(&'a Value, String)> {
    let field = schema.get("properties").and_then(|fields| fields.get(name));
    if let Some(field) = field {
        return Some((field, join(path, name)));
    }
    let entry = schema.get("additionalProperties")?;
    entry
        .is_object()
        .then(|| (entry, format!("{path}[{name}]")))
}

fn rules_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn bind_old(context: &mut Context<'_, '_>, before: Option<CelValue>, optional: bool) {
    if !optional {
        if let Some(before) = before {
            context.add_variable_from_value("oldSelf", before);
        }
        return;
    }
    let held: Option<Box<dyn Val>> = before.and_then(|before| before.try_into().ok());
    let optional = held.map_or_else(CelOptional::none, CelOptional::of);
    context.add_variable_as_val("oldSelf", Box::new(optional));
}

/// A part of an object as a CEL value: numbers by the schema's type, names of fields escaped.
fn to_cel(value: &Value, schema: &Value, is_root: bool) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => {
            let wants_double = schema.get("type").is_some_and(|kind| kind == "number");
            match number.as_i64().filter(|_| !wants_double) {
                Some(whole) => whole.into(),
                None => number.as_f64().unwrap_or_default().into(),
            }
        }
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let item_schema = schema.get("items").unwrap_or(&Value::Null);
            CelValue::List(Arc::new(
                items
                    .iter()
                    .map(|item| to_cel(item, item_schema, false))
                    .collect(),
            ))
        }
        Value::Object(fields) => {
            let entries = fields.iter().filter_map(|(name, child)| {
                let declared = schema
                    .get("properties")
                    .and_then(|properties| properties.get(name));
                // Rules can access only these fields of an object unless the schema declares more.
                if is_root && name == "metadata" {
                    return Some((key("metadata"), visible_metadata(child)));
                }
                let child_schema = declared
                    .or_else(|| schema.get("additionalProperties"))
                    .unwrap_or(&Value::Null);
                let name = if declared.is_some() {
                    escape(name)
                } else {
                    name.clone()
                };
                Some((key(&name), to_cel(child, child_schema, false)))
                    .filter(|(_, value)| *value != CelValue::Null)
            });
            CelValue::Map(CelMap {
                map: Arc::new(entries.collect()),
            })
        }
    }
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

fn visible_metadata(metadata: &Value) -> CelValue {
    let visible = ["name", "generateName"]
        .into_iter()
        .filter_map(|name| Some((key(name), metadata.get(name)?.as_str()?.into())));
    CelValue::Map(CelMap {
        map: Arc::new(visible.collect()),
    })
}

/// A field's name as CEL can select it.
fn escape(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['_', '.', '-', '/']) {
        return name.to_owned();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::super::CustomSchema;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn errors(rule: &Value, spec: &Value, old: Option<&Value>) -> Vec<String> {
        let schema = CustomSchema::new(&json!({ "type": "object", "properties": { "spec": {
            "type": "object", "x-kubernetes-validations": [rule],
            "properties": {
                "replicas": { "type": "integer" }, "min": { "type": "integer" }, "ratio": { "type": "number" },
                "name": { "type": "string" }, "my-name": { "type": "string" },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } }
            }
        } } }));
        let object = |spec: &Value| json!({ "metadata": { "name": "a" }, "spec": spec });
        let old = old.map(object);
        schema
            .validate(&object(spec), old.as_ref())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[rstest]
    #[case("self.replicas >= self.min", json!({"replicas": 2, "min": 1}))]
    #[case("!has(self.replicas) || self.replicas > 0", json!({}))]
    #[case("self.name.matches('^[a-z]+$') && self.name.startsWith('a') && self.name.endsWith('c') && self.name.contains('b')", json!({"name": "abc"}))]
    #[case("size(self.list) == 2 && self.list.all(x, x.n > 0) && self.list.exists(x, x.n == 2) && self.list.exists_one(x, x.n == 1)", json!({"list": [{"n": 1}, {"n": 2}]}))]
    #[case("self.labels.all(k, self.labels[k] != '') && 'a' in self.labels", json!({"labels": {"a": "b"}}))]
    #[case("self.ratio > 0.5 && self.ratio == 1.0", json!({"ratio": 1}))]
    #[case("self.my__dash__name == 'x'", json!({"my-name": "x"}))]
    #[case("self.list.map(x, x.n).sum() == 3 && self.list.map(x, x.n).isSorted() && self.list.filter(x, x.n > 1).size() == 1", json!({"list": [{"n": 1}, {"n": 2}]}))]
    #[case("self.name.lowerAscii() == 'abc' && self.name.split('B').size() == 2", json!({"name": "ABC"}))]
    #[case("self.?replicas.orValue(3) == 3", json!({}))]
    fn a_satisfied_rule_has_no_error(#[case] rule: &str, #[case] spec: Value) {
        assert_eq!(
            errors(&json!({ "rule": rule }), &spec, None),
            Vec::<String>::new()
        );
    }

    #[rstest]
    #[case(json!({"rule": "self.replicas > 1"}), "spec: Invalid value: failed rule: self.replicas > 1")]
    #[case(json!({"rule": "self.replicas > 1", "message": "too few"}), "spec: Invalid value: too few")]
    #[case(json!({"rule": "self.replicas > 1", "messageExpression": "'only ' + string(self.replicas)"}), "spec: Invalid value: only 1")]
    #[case(json!({"rule": "self.replicas > 1", "message": "no", "reason": "FieldValueForbidden", "fieldPath": ".replicas"}), "spec.replicas: Forbidden: no")]
    fn a_failed_rule_reports_its_message(#[case] rule: Value, #[case] message: &str) {
        assert_eq!(errors(&rule, &json!({ "replicas": 1 }), None), [message]);
    }

    #[test]
    fn transition_rules_run_on_updates_only() {
        let rule = json!({ "rule": "self.name == oldSelf.name", "message": "name is immutable" });
        let (old, new) = (json!({ "name": "a" }), json!({ "name": "b" }));
        assert_eq!(errors(&rule, &new, None), Vec::<String>::new());
        assert_eq!(
            errors(&rule, &new, Some(&old)),
            ["spec: Invalid value: name is immutable"]
        );
    }

    #[test]
    fn an_optional_old_self_runs_on_creation_too() {
        let rule = json!({ "rule": "oldSelf.hasValue() || self.replicas == 0", "optionalOldSelf": true, "message": "start at 0" });
        assert_eq!(errors(&rule, &json!({ "replicas": 1 }), None).len(), 1);
        assert_eq!(
            errors(
                &rule,
                &json!({ "replicas": 1 }),
                Some(&json!({ "replicas": 0 }))
            ),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_update_does_not_check_unchanged_parts() {
        let rule = json!({ "rule": "self.replicas > 1" });
        assert_eq!(
            errors(
                &rule,
                &json!({ "replicas": 1 }),
                Some(&json!({ "replicas": 1 }))
            ),
            Vec::<String>::new()
        );
    }
}
