//! The verbs of the Kubernetes API.

/// The verb of a request for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// Changes of a collection or an object.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// One object.
    Delete,
    /// A collection.
    DeleteCollection,
}
