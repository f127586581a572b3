//! The writer of an object: its field manager, resource and time.

/// The writer of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    /// `fieldManager`, or the first part of the user agent.
    pub manager: &'a str,
    /// `apps/v1`.
    pub api_version: &'a str,
    /// `status`, `scale`; empty for the object itself.
    pub subresource: &'a str,
    /// RFC 3339 in whole seconds.
    pub now: &'a str,
}
