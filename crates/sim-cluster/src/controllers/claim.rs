//! Adoption and release: a controller becomes the owner of an object that matches its selector, or ceases to be it.

use serde_json::{Value, json};

use super::context::{Context, ignore_not_found};
use super::index::controller_reference;
use crate::object::uid;
use crate::resources::Kind;
use crate::status::Status;

/// Makes `owner` the controller of an orphan. An orphan that no longer exists is not an error.
pub(crate) fn adopt(
    context: &Context,
    manager: &str,
    (kind, orphan): (&Kind, &Value),
    (owner_kind, owner): (&Kind, &Value),
) -> Result<(), Status> {
    let reference = controller_reference(owner_kind, owner);
    ignore_not_found(context.edit(manager, (kind, None), orphan, |object| {
        match object["metadata"]["ownerReferences"].as_array_mut() {
            Some(owners) => owners.push(reference),
            None => object["metadata"]["ownerReferences"] = json!([reference]),
        }
    }))
}

/// Removes `owner` from the owners of an object. An object that no longer exists is not an error.
pub(crate) fn release(
    context: &Context,
    manager: &str,
    (kind, object): (&Kind, &Value),
    owner: &Value,
) -> Result<(), Status> {
    ignore_not_found(context.edit(manager, (kind, None), object, |object| {
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|reference| reference["uid"] != uid(owner));
        }
    }))
}
