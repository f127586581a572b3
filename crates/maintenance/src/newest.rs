//! The newest state of an object that its watch and the answers to our own writes have shown.

use fedrs_api::Maintenance;
use kube::ResourceExt;
use reflector::ResourceVersion;

/// Takes a state of the object that the task knows. Returns whether the task has to look at it: not for what it has written itself.
pub(crate) fn put(known: &mut Maintenance, object: Maintenance) -> bool {
    let version =
        |of: &Maintenance| ResourceVersion::parse(&of.resource_version().unwrap_or_default());
    let (old, new) = (&known.metadata, &object.metadata);
    if old.uid == new.uid && version(&object).is_older_than(version(known)) {
        return false;
    }
    let has_changed = old.uid != new.uid
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
        || old.finalizers != new.finalizers;
    *known = object;
    has_changed
}
