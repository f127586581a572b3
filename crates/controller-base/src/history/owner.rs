//! Whose revisions they are.

/// The set that owns revisions.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Its kind, of fedrs.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// The label of revisions that has its name.
    pub label: &'static str,
}
