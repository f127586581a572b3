//! Writes of fields that the writer alone owns already, such as the heartbeats of a node or of a leader: the time of its
//! entry changes, and nothing else.
//!
//! Most writes are of this kind. The sets of the managers are searched as they are stored, and not parsed.

use serde_json::Value;

use super::compare::Comparison;
use super::managers::{is_entry_of, managed_fields, sort_entries};
use super::unowned::UNOWNED;
use super::writer::Writer;

/// Records the writer in `new` if its write, with these differences from `old`, leaves every field with its owners. Otherwise
/// it changes nothing, and returns false.
pub(super) fn renew(
    old: &Value,
    new: &mut Value,
    writer: &Writer<'_>,
    comparison: &Comparison,
) -> bool {
    let stored = managed_fields(old);
    let stated = managed_fields(new);
    let states_others = writer.subresource.is_empty() && stated != stored;
    let (Some(entries), false) = (stored.as_array(), states_others) else {
        return false;
    };
    let changed = comparison.changed();
    let unowned = changed.intersection(&UNOWNED);
    let taken = changed.clone().difference(&UNOWNED);
    let own = entries.iter().position(|entry| is_entry_of(entry, writer));
    if own.is_none() && !taken.is_empty() {
        return false;
    }
    let keeps_fields = |(place, entry): (usize, &Value)| {
        let fields = &entry["fieldsV1"];
        let lost = if own == Some(place) {
            unowned.meets(fields) || !taken.is_within(fields)
        } else {
            changed.meets(fields)
        };
        !lost && !comparison.removed.meets(fields)
    };
    if !entries.iter().enumerate().all(keeps_fields) {
        return false;
    }
    if stated != stored {
        new["metadata"]["managedFields"] = stored.clone();
    }
    let entries = new["metadata"]["managedFields"].as_array_mut();
    if let (Some(entries), Some(own), false) = (entries, own, taken.is_empty()) {
        entries[own]["time"] = writer.now.into();
        sort_entries(entries);
    }
    true
}
