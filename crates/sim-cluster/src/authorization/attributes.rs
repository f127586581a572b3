//! The attributes of a request for authorization.

use crate::status::{Status, StatusDetails};

/// A verb and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// `get`, `list`, `deletecollection`, ...; for other paths the method in lower case.
    pub(crate) verb: String,
    pub(crate) target: Target,
}

/// The target of a verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Objects; empty fields are unspecified.
    Resource {
        group: String,
        resource: String,
        subresource: String,
        namespace: String,
        name: String,
    },
    /// Any other path.
    Path(String),
}

impl Attributes {
    /// The namespace; empty for cluster-scoped targets.
    pub(crate) fn namespace(&self) -> &str {
        match &self.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        }
    }

    /// A verb on one object of a resource.
    pub(crate) fn on_object(
        verb: &str,
        (group, resource): (&str, &str),
        namespace: &str,
        name: &str,
    ) -> Self {
        Self {
            verb: verb.to_owned(),
            target: Target::Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: String::new(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
        }
    }

    /// 403: `secrets is forbidden: User "x" cannot list resource "secrets" in API group "" in the namespace "y"`.
    pub(crate) fn refusal(&self, user: &str, reason: &str) -> Status {
        let (subject, what, details) = self.target.in_words();
        let verb = &self.verb;
        let mut message = format!("{subject}forbidden: User {user:?} cannot {verb} {what}");
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        Status {
            details: Some(Box::new(details)),
            ..Status::new(403, "Forbidden", message)
        }
    }
}

impl Target {
    /// For messages: the subject `secrets "a" is `, the description of the target, and the details.
    fn in_words(&self) -> (String, String, StatusDetails) {
        let (group, resource, subresource, namespace, name) = match self {
            Self::Path(path) => {
                return (
                    String::new(),
                    format!("path {path:?}"),
                    StatusDetails::default(),
                );
            }
            Self::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
            } => (group, resource, subresource, namespace, name),
        };
        let qualified = match group.as_str() {
            "" => resource.clone(),
            group => format!("{resource}.{group}"),
        };
        let subject = match name.as_str() {
            "" => format!("{qualified} is "),
            name => format!("{qualified} {name:?} is "),
        };
        let whole = match subresource.as_str() {
            "" => resource.clone(),
            subresource => format!("{resource}/{subresource}"),
        };
        let place = match namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let details = StatusDetails {
            name: name.clone(),
            group: group.clone(),
            kind: resource.clone(),
            ..StatusDetails::default()
        };
        let what = format!("resource {whole:?} in API group {group:?} {place}");
        (subject, what, details)
    }
}
