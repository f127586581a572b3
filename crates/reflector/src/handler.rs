//! The events that a reflector passes to its user.

use crate::{error::Error, invalid_object::InvalidObject};

/// Receives the state of a collection and its changes. The reflector calls it from one task, in order; it must not block.
///
/// ```text
/// on_init, on_apply*, on_init_done, (on_apply | on_delete)*, and from the start when a new list is needed
/// ```
pub trait EventHandler<T>: Send {
    /// A list begins: objects that it does not contain no longer exist once it is complete.
    fn on_init(&mut self);

    /// A page of a list begins. `date` is the header `Date` of the response, the server's own time: times in the objects are
    /// by the same clock, and perhaps by no other.
    fn on_page(&mut self, _date: Option<&str>) {}

    /// An object exists, was created or was changed. A watch that resumes may repeat events, and a faulty server may
    /// deliver them late.
    fn on_apply(&mut self, object: T);

    /// An object was deleted, or no longer matches the selectors: its last state.
    fn on_delete(&mut self, object: T);

    /// The list is complete as of `resource_version`: remove the objects that it did not contain.
    fn on_init_done(&mut self, resource_version: &str);

    /// A list or watch failed; the reflector retries. If the error [needs a relist](Error::needs_relist), the known
    /// objects are out of date until the next [`on_init_done`](Self::on_init_done).
    fn on_error(&mut self, error: &Error);

    /// Whether there is no room for another object: the list or the watch fails with
    /// [`TooManyObjects`](crate::ErrorKind::TooManyObjects). Asked after each page and each event.
    fn is_full(&self) -> bool {
        false
    }

    /// The server sent something: a page, the headers of a watch, or a line of it, even if only a bookmark. The headers of a
    /// watch that is reopened after a silence don't count.
    fn on_activity(&mut self) {}

    /// An open watch was silent for [`max_silence`](crate::ReflectorSettings::max_silence) and is reopened: events may be
    /// missing until [`on_caught_up`](Self::on_caught_up), or until a list is complete.
    fn on_silence(&mut self) {}

    /// A list follows a watch that works, because an earlier one broke: what is known is right, unless the server was
    /// restored meanwhile.
    fn on_verification(&mut self) {}

    /// A bookmark, or the end of a watch in time: all events that the server had before were delivered.
    fn on_caught_up(&mut self) {}

    /// An object can't be read and is skipped. Keep what is known of it unless it was deleted.
    fn on_invalid(&mut self, _object: &InvalidObject) {}

    /// The server ended a watch cleanly, but sooner than
    /// [`min_watch_duration`](crate::ReflectorSettings::min_watch_duration).
    fn on_short_watch(&mut self) {}
}

/// An object with the resourceVersion from which a watch can resume.
pub trait Versioned {
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<&str>;
}

impl<K: kube::Resource> Versioned for K {
    fn resource_version(&self) -> Option<&str> {
        self.meta().resource_version.as_deref()
    }
}
