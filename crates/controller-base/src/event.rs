//! An event about an object, before it is recorded.

/// An event about an object, for `kubectl describe` (F38).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it may need attention.
    pub type_: EventType,
    /// A CamelCase word from a closed set.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// The type of an event, as Kubernetes names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Information.
    Normal,
    /// Something that may need attention.
    Warning,
}

impl EventType {
    /// The type as it appears in an object.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Event {
    /// An event that informs.
    #[must_use]
    pub fn normal(reason: impl Into<&'static str>, message: impl Into<String>) -> Self {
        Self {
            type_: EventType::Normal,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// An event that may need attention.
    #[must_use]
    pub fn warning(reason: impl Into<&'static str>, message: impl Into<String>) -> Self {
        Self {
            type_: EventType::Warning,
            ..Self::normal(reason, message)
        }
    }
}
