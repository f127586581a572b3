//! Users: a name, and the groups that rights are given to.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group that may do everything, whatever RBAC says.
pub(crate) const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Who sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `system:serviceaccount:NAMESPACE:NAME` for accounts.
    pub name: String,
    /// Empty for users that are no objects.
    pub uid: String,
    /// Groups, `system:authenticated` among them for everybody who has shown who they are.
    pub groups: Vec<String>,
    /// What else the authenticator found out, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who has shown who they are, in these groups and in `system:authenticated`.
    pub fn named(name: impl Into<String>, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]);
        Self {
            name: name.into(),
            groups: groups.map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Who may do everything.
    pub fn administrator() -> Self {
        Self::named("admin", &[MASTERS])
    }

    /// Who has not said who they are.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// A `ServiceAccount`.
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

/// What the user names of `ServiceAccount`s begin with; namespace, colon and name follow.
pub(crate) const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The user name of a `ServiceAccount`.
pub(crate) fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}
