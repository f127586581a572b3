//! A set as a user names it.

use std::fmt;

use fedrs_api::SetKind;

/// A set as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRef {
    /// Its kind, if the user names it.
    pub kind: Option<SetKind>,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// `federateddeployment shop/web`.
impl fmt::Display for SetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = kinds(self.kind).iter().map(|kind| lower(*kind));
        let kinds = kinds.collect::<Vec<_>>().join(" or ");
        write!(f, "{kinds} {}/{}", self.namespace, self.name)
    }
}

/// `federateddeployment`.
pub(crate) fn lower(kind: SetKind) -> String {
    kind.as_str().to_lowercase()
}

/// The kinds that a set may have.
pub(crate) fn kinds(named: Option<SetKind>) -> &'static [SetKind] {
    match named {
        None => &SetKind::ALL,
        Some(SetKind::FederatedReplicaSet) => &SetKind::ALL[..1],
        Some(SetKind::FederatedDeployment) => &SetKind::ALL[1..],
    }
}
