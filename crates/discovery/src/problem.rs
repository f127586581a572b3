//! Why the endpoints of a set are not known, for those who ask.

use std::{fmt, sync::Arc};

use controller_base::field_errors;

use crate::{
    catalog::{Lookup, Waiting},
    set::SetKey,
    snapshot::EndpointSnapshot,
};

/// Why the endpoints of a set are not known: never an empty set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) reason: Reason,
    /// A sentence without its end.
    text: String,
}

/// A class of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There is no such set.
    NotFound,
    /// The set is invalid, or its source does not exist.
    Invalid,
    /// Not everything has been listed yet, or the host does not say who may ask.
    Waiting,
    /// The client may not ask for it.
    Forbidden,
}

impl Problem {
    /// The endpoints that were found.
    pub(crate) fn check(key: &SetKey, lookup: Lookup) -> Result<Arc<EndpointSnapshot>, Self> {
        Err(match lookup {
            Lookup::Found(snapshot) => return Ok(snapshot),
            Lookup::Waiting(waiting) => Self::waiting(&waiting),
            Lookup::NotFound => Self {
                reason: Reason::NotFound,
                text: format!("EndpointSet {key} does not exist"),
            },
            Lookup::NoSource => Self {
                reason: Reason::Invalid,
                text: format!("EndpointSet {key}: what spec.source names does not exist"),
            },
            Lookup::Invalid(errors) => Self {
                reason: Reason::Invalid,
                text: format!(
                    "EndpointSet {key} is invalid: {}",
                    field_errors::message(&errors)
                ),
            },
        })
    }

    /// As `kubectl get` says it.
    pub(crate) fn forbidden(user: &str, key: &SetKey) -> Self {
        let SetKey { namespace, name } = key;
        let user = reflector::printable(user);
        Self {
            reason: Reason::Forbidden,
            text: format!(
                "endpointsets.fedrs.dev {name:?} is forbidden: User {user:?} cannot get resource \"endpointsets\" in API group \"fedrs.dev\" in the namespace {namespace:?}"
            ),
        }
    }

    /// It is not known whether the client may ask.
    pub(crate) fn unreviewed(why: &impl fmt::Display) -> Self {
        Self {
            reason: Reason::Waiting,
            text: why.to_string(),
        }
    }

    fn waiting(waiting: &Waiting) -> Self {
        Self {
            reason: Reason::Waiting,
            text: waiting.to_string(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
