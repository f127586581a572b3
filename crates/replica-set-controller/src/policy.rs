//! Which MigrationPolicy a set has (M1).

use fedrs_api::{ShutdownTimeout, ValidCopy, ValidMethod, ValidMigrationPolicy, ValidShutdown};

/// The MigrationPolicy of a set.
#[derive(Clone, Copy, Debug, Default)]
pub enum Policy<'a> {
    /// There is none: pods are evicted within the budget, and those in their place get other names (L18).
    #[default]
    None,
    /// The one that the set names does not exist, or is invalid: running pods stay until their deadlines.
    Unknown,
    /// This one.
    Is(&'a ValidMigrationPolicy),
}

impl Policy<'_> {
    /// How pods are shut down (M11); `None` if nobody waits for a proof that they are.
    pub(crate) fn shutdown(self) -> Option<ValidShutdown> {
        match self {
            Self::Is(policy) => policy.shutdown,
            Self::None | Self::Unknown => None,
        }
    }

    /// How pods are copied before they are removed (M2); `None` if they are not.
    pub(crate) fn copy(self) -> Option<ValidCopy> {
        match self.method() {
            Some(ValidMethod::Copy(copy)) => Some(copy),
            _ => None,
        }
    }

    /// Whether persons shut pods down, and start them (M7).
    pub(crate) fn is_manual(self) -> bool {
        self.method() == Some(ValidMethod::Manual)
    }

    fn method(self) -> Option<ValidMethod> {
        match self {
            Self::Is(policy) => Some(policy.method),
            Self::None | Self::Unknown => None,
        }
    }

    /// Whether nothing takes the place of a pod that may still run (M11).
    pub(crate) fn waits_for_stop(self) -> bool {
        let shutdown = self.shutdown();
        shutdown.is_some_and(|shutdown| shutdown.on_timeout == ShutdownTimeout::HandsUp)
    }

    /// Whether a pod that has to leave its node waits for updates to end (M1). Without a policy it is the other way round (L19): its eviction
    /// is recorded at once, and updates wait for it.
    pub(crate) fn waits_for_updates(self) -> bool {
        !matches!(self, Self::None)
    }
}
