//! The verbs of the Kubernetes API.

/// What is done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// A collection or an object, and its changes.
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
