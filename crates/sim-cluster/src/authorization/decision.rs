//! Decisions: do the rules that a user holds allow the request?

use serde_json::{Value, json};

use super::attributes::Attributes;
use super::rules::{Grant, Rule, grants_of};

use crate::authentication::{MASTERS, User};
use crate::status::Status;
use crate::store::Store;

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// The reason, or an error of the evaluation; may be empty.
    pub(crate) reason: String,
}

/// Decides whether the user is allowed to send the request.
pub(crate) fn decide(store: &Store, user: &User, attributes: &Attributes) -> Decision {
    let allowed = |reason| Decision {
        allowed: true,
        reason,
    };
    if user.is_in(MASTERS) {
        return allowed(String::new());
    }
    let held = grants_of(store, user, attributes.namespace());
    for grant in &held.grants {
        if grant.rules().any(|rule| rule.allows(attributes)) {
            return allowed(format!("RBAC: allowed by {}", grant.source()));
        }
    }
    let reason = match held.errors.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        many => {
            let many: Vec<String> = many.iter().map(ToString::to_string).collect();
            format!("RBAC: [{}]", many.join(", "))
        }
    };
    Decision {
        allowed: false,
        reason,
    }
}

/// Rejects a request that the user is not allowed to send.
///
/// # Errors
/// 403 with the API server's message.
pub(crate) fn authorize(store: &Store, user: &User, attributes: &Attributes) -> Result<(), Status> {
    let decision = decide(store, user, attributes);
    if decision.allowed {
        return Ok(());
    }
    Err(attributes.refusal(&user.name, &decision.reason))
}

/// The status of a `SelfSubjectRulesReview`: all rules that the user has in a namespace.
pub(crate) fn rules_of(store: &Store, user: &User, namespace: &str) -> Value {
    let held = grants_of(store, user, namespace);
    let rules: Vec<Rule<'_>> = held.grants.iter().flat_map(Grant::rules).collect();
    let shown = |which: &[&str], of: &str| -> Vec<Value> {
        let having = rules.iter().filter(|rule| rule.has_any(of));
        having.map(|rule| rule.only(which)).collect()
    };
    let mut status = json!({
        "incomplete": false,
        "resourceRules": shown(&["verbs", "apiGroups", "resources", "resourceNames"], "resources"),
        "nonResourceRules": shown(&["verbs", "nonResourceURLs"], "nonResourceURLs"),
    });
    if !held.errors.is_empty() {
        let errors: Vec<String> = held.errors.iter().map(ToString::to_string).collect();
        status["evaluationError"] = json!(errors.join(", "));
    }
    status
}
