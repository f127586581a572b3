//! The prevention of privilege escalation: users can only grant permissions that they have.
//!
//! role written -> may `escalate` it, or has all of its rules; binding written -> may `bind` the role, or has all of
//! its rules; else 403.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::attributes::Attributes;
use super::decision::decide;
use super::rules::{Grant, Rule, grants_of, role_of, rules_of};
use crate::authentication::{MASTERS, User};
use crate::object::text;
use crate::resources::{Kind, kinds};
use crate::status::Status;
use crate::store::Store;

/// Rejects a role or binding that grants more than its writer has. `object` is as it was sent, `old` is the stored one.
///
/// # Errors
/// 403 with the missing permissions; 404, with the role's name, if a binding's role does not exist and the writer may not
/// `bind` it.
pub(crate) fn check_escalation(
    store: &Store,
    user: &User,
    kind: &Kind,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), Status> {
    let binding = *kind == *kinds::ROLE_BINDINGS || *kind == *kinds::CLUSTER_ROLE_BINDINGS;
    let role = *kind == *kinds::ROLES || *kind == *kinds::CLUSTER_ROLES;
    if !(binding || role) || user.is_in(MASTERS) {
        return Ok(());
    }
    if old.is_some_and(|old| differs_for_collection_only(old, object)) {
        return Ok(());
    }
    if decide(store, user, &right_to_give(kind, role, object)).allowed {
        return Ok(());
    }
    let namespace = text(object, "/metadata/namespace");
    let given = if role {
        object
    } else {
        role_of(store, &object["roleRef"], namespace)
            .map_err(|missing| Status::not_found(kind, missing.name))?
    };
    let held = grants_of(store, user, namespace);
    let rules: Vec<Rule<'_>> = held.grants.iter().flat_map(Grant::rules).collect();
    let missing: Vec<String> = missing(&rules, rules_of(given)).into_iter().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = user
        .groups
        .iter()
        .map(|group| format!("{group:?}"))
        .collect();
    let errors: Vec<String> = held
        .errors
        .iter()
        .map(|missing| missing.in_storage())
        .collect();
    let errors = match errors.as_slice() {
        [] => String::new(),
        [one] => format!("; resolution errors: [{one}]"),
        many => format!("; resolution errors: [[{}]]", many.join(", ")),
    };
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}{errors}",
        user.name,
        groups.join(" "),
        missing.join("\n")
    );
    Err(Status::forbidden(
        kind,
        text(object, "/metadata/name"),
        &why,
    ))
}

/// The permission to escalate roles of that name, or to bind them.
fn right_to_give(kind: &Kind, role: bool, object: &Value) -> Attributes {
    let reference = &object["roleRef"];
    let (verb, resource, name) = if role {
        (
            "escalate",
            kind.plural.as_str(),
            text(object, "/metadata/name"),
        )
    } else if reference["kind"] == "Role" {
        ("bind", "roles", text(reference, "/name"))
    } else {
        ("bind", "clusterroles", text(reference, "/name"))
    };
    let namespace = text(object, "/metadata/namespace");
    Attributes::on_object(verb, (&kind.group, resource), namespace, name)
}

/// Whether a change affects only finalizers and owners, as those of the garbage collector. An object without uid or resource
/// version changes more.
fn differs_for_collection_only(old: &Value, new: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["finalizers", "ownerReferences", "managedFields"] {
                metadata.remove(field);
            }
        }
        object
    };
    without(old) == without(new)
}

/// The requested rules that no held rule covers, as the API server prints them: rules that differ in verbs only are merged.
fn missing<'a>(held: &[Rule<'_>], wanted: impl Iterator<Item = Rule<'a>>) -> BTreeSet<String> {
    let mut missing: Vec<Value> = Vec::new();
    for single in wanted.flat_map(singles) {
        if held.iter().any(|held| covers(*held, Rule(&single))) {
            continue;
        }
        let same = |other: &&mut Value| {
            single.get("nonResourceURLs").is_none()
                && ["apiGroups", "resources", "resourceNames"]
                    .iter()
                    .all(|field| other.get(field) == single.get(field))
        };
        match missing.iter_mut().find(same) {
            Some(other) => {
                let more = single["verbs"].as_array().cloned().unwrap_or_default();
                if let Value::Array(verbs) = &mut other["verbs"] {
                    verbs.extend(more);
                }
            }
            None => missing.push(single),
        }
    }
    missing.iter().map(print).collect()
}

/// A rule as rules with one verb and one target each.
fn singles(rule: Rule<'_>) -> Vec<Value> {
    let mut singles = Vec::new();
    for verb in rule.words("verbs") {
        for path in rule.words("nonResourceURLs") {
            singles.push(json!({"nonResourceURLs": [path], "verbs": [verb]}));
        }
        for group in rule.words("apiGroups") {
            for resource in rule.words("resources") {
                let single =
                    json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                if !rule.has_any("resourceNames") {
                    singles.push(single.clone());
                }
                for name in rule.words("resourceNames") {
                    let mut single = single.clone();
                    single["resourceNames"] = json!([name]);
                    singles.push(single);
                }
            }
        }
    }
    singles
}

/// Whether a rule covers another one with one entry in each list.
fn covers(held: Rule<'_>, single: Rule<'_>) -> bool {
    let names = !held.has_any("resourceNames")
        || (single.has_any("resourceNames")
            && single
                .words("resourceNames")
                .all(|name| held.has("resourceNames", name)));
    single.words("verbs").all(|verb| held.covers("verbs", verb))
        && single
            .words("apiGroups")
            .all(|group| held.covers("apiGroups", group))
        && single
            .words("resources")
            .all(|resource| held.covers_resource(resource))
        && single
            .words("nonResourceURLs")
            .all(|path| held.covers_path(path))
        && names
}

/// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
fn print(rule: &Value) -> String {
    let lists = [
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    ];
    let printed = lists.iter().filter(|(_, field)| Rule(rule).has_any(field));
    let printed = printed.map(|(shown, field)| {
        let words: Vec<String> = Rule(rule)
            .words(field)
            .map(|word| format!("{word:?}"))
            .collect();
        format!("{shown}:[{}]", words.join(" "))
    });
    let printed: Vec<String> = printed.collect();
    format!("{{{}}}", printed.join(", "))
}
