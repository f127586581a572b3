//! Users: names, and the groups that permissions are granted to.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group that has all permissions, independent of RBAC.
pub(crate) const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The user who sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name; `system:serviceaccount:NAMESPACE:NAME` for service accounts.
    pub name: String,
    /// The uid; empty for users that are not service accounts.
    pub uid: String,
    /// The groups; authenticated users are in `system:authenticated`.
    pub groups: Vec<String>,
    /// Further fields of the authenticator, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An authenticated user, in these groups and in `system:authenticated`.
    pub fn named(name: impl Into<String>, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]);
        Self {
            name: name.into(),
            groups: groups.map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// A user with all permissions.
    pub fn administrator() -> Self {
        Self::named("admin", &[MASTERS])
    }

    /// The anonymous user.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The user of a `ServiceAccount`.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let of_namespace = format!("{SERVICE_ACCOUNTS}:{namespace}");
        Self::named(
            account_name(namespace, name),
            &[SERVICE_ACCOUNTS, &of_namespace],
        )
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|each| each == group)
    }

    /// A `UserInfo`.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            value["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            value["extra"] = json!(self.extra);
        }
        value
    }
}

/// The prefix of the user names of `ServiceAccount`s; namespace, colon and name follow.
pub(crate) const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The user name of a `ServiceAccount`.
pub(crate) fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}
