//! Sends one write to a member.

use std::time::Duration;

use controller_base::calls::{self, CallError, within};
use kube::Client;
use serde::de::DeserializeOwned;

use crate::{
    export::Export,
    import::Import,
    plan::{Kind, Verb, Write},
    slice::Slice,
    state::{Change, MemberState},
    watches::WatchedKind,
};

/// How long a member may take for a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How a response changes what is known of the member.
pub(crate) type Shown = Box<dyn FnOnce(&mut MemberState) -> Change + Send>;

/// What became of a write.
pub(crate) enum Written {
    /// It is done.
    Done(Shown),
    /// The object is not as it was seen, or one of this name exists.
    Outdated,
}

/// Sends `write`.
pub(crate) async fn send(client: &Client, write: &Write) -> Result<Written, CallError> {
    let sent = match write.kind {
        Kind::Export => send_as::<Export>(client, write).await,
        Kind::Import => send_as::<Import>(client, write).await,
        Kind::Slice => send_as::<Slice>(client, write).await,
    };
    match sent {
        Ok(shown) => Ok(Written::Done(shown)),
        Err(error) if error.code() == Some(409) => Ok(Written::Outdated),
        // It is gone: the watch shows it.
        Err(error) if error.code() == Some(404) && write.verb != Verb::Create => {
            Ok(Written::Outdated)
        }
        Err(error) => Err(error),
    }
}

async fn send_as<T: WatchedKind + DeserializeOwned>(
    client: &Client,
    write: &Write,
) -> Result<Shown, CallError> {
    let Write { path, body, .. } = write;
    let object: T = match write.verb {
        Verb::Create => within(CALL_TIMEOUT, calls::post(client, path, body)).await?,
        Verb::Patch => within(CALL_TIMEOUT, calls::merge_patch(client, path, body)).await?,
        Verb::Delete => {
            within(CALL_TIMEOUT, calls::delete(client, path, body)).await?;
            let (namespace, name) = write.id();
            return Ok(Box::new(move |member| T::delete(member, &namespace, &name)));
        }
    };
    Ok(Box::new(move |member| object.apply(member)))
}
