//! What a list has shown so far, while it is not complete.

use std::collections::HashSet;

/// The progress of listing one kind.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    shown: HashSet<String>,
    is_active: bool,
    has_unreadable: bool,
}

impl Listing {
    /// A list begins.
    pub(crate) fn begin(&mut self) {
        *self = Self {
            is_active: true,
            ..Self::default()
        };
    }

    /// An object can't be read: it may be any of those that the list does not show.
    pub(crate) fn unreadable(&mut self) {
        self.has_unreadable = true;
    }

    pub(super) fn show(&mut self, id: &str) {
        if self.is_active {
            self.shown.insert(id.to_owned());
        }
    }

    /// The list is complete. Returns what it has shown; `None` if nothing may count as gone.
    pub(super) fn end(&mut self) -> Option<HashSet<String>> {
        let listing = std::mem::take(self);
        (!listing.has_unreadable).then_some(listing.shown)
    }
}
