//! Which of two states of an object is newer.

use reflector::ResourceVersion;

/// The version of an object, which says whether another one is older.
pub(super) fn version(text: &str) -> ResourceVersion {
    ResourceVersion::parse(text)
}
