//! Pause, resume and restart: small changes of the spec.

use fedrs_api::annotations;
use jiff::Timestamp;
use serde_json::json;

use super::{
    error::Error,
    kind::RolloutKind,
    target::{Change, Target},
};

/// Stops the rollout. Fails if it is stopped already.
pub async fn pause<K: RolloutKind>(target: Target<'_, K>) -> Result<(), Error> {
    target
        .change(|object| {
            if object.is_paused() {
                return Err(Error::AlreadyPaused(target.to_string()));
            }
            let paused = json!({ "spec": { "paused": true } });
            Ok((Some(Change::Merge(paused)), ()))
        })
        .await
}

/// Lets the rollout go on. Fails if it is not stopped.
pub async fn resume<K: RolloutKind>(target: Target<'_, K>) -> Result<(), Error> {
    target
        .change(|object| {
            if !object.is_paused() {
                return Err(Error::NotPaused(target.to_string()));
            }
            // Removes the field, as in an object that was never paused.
            let resumed = json!({ "spec": { "paused": null } });
            Ok((Some(Change::Merge(resumed)), ()))
        })
        .await
}

/// Replaces all pods, within the budget and the order of a rollout: with `now` in an annotation of the template. Fails if the
/// rollout is paused.
pub async fn restart<K: RolloutKind>(target: Target<'_, K>, now: Timestamp) -> Result<(), Error> {
    target
        .change(|object| {
            if object.is_paused() {
                return Err(Error::Paused {
                    object: target.to_string(),
                    command: K::COMMAND,
                });
            }
            let restarted_at = json!({ annotations::RESTARTED_AT: format!("{now:.0}") });
            let template = json!({ "metadata": { "annotations": restarted_at } });
            let restarted = json!({ "spec": { "template": template } });
            Ok((Some(Change::Merge(restarted)), ()))
        })
        .await
}
