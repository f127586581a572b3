//! What a committed write brings about in the API server itself: definitions start and stop being served.

use serde_json::Value;

use super::State;
use crate::clock::Clock;
use crate::resources::{Kind, kinds};
use crate::store::Object;

/// After an object was stored.
pub(crate) fn after_put(
    state: &mut State,
    _clock: &Clock,
    kind: &Kind,
    _old: Option<&Object>,
    new: &Value,
) {
    if *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS {
        state.registry.define(new);
    }
}

/// After an object was removed.
pub(crate) fn after_remove(state: &mut State, _clock: &Clock, kind: &Kind, last: &Value) {
    if *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS {
        state
            .registry
            .forget(super::text_at(last, "/metadata/name"));
    }
}
