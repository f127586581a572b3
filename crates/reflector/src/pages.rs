//! Reads a list page by page, each within its timeout and its limits.

use std::{future::Future, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{
    client_channel::ClientReceiver,
    collection::Collection,
    decode,
    error::{Error, ErrorKind, Verb},
    invalid_object::InvalidObject,
    settings::ReflectorSettings,
    transport::{KubeTransport, Transport},
};

/// Lists `collection` once and passes each object to `take`. Uses the page size, the page timeout and the limits of
/// `settings`. Does not retry.
pub async fn list<T: DeserializeOwned>(
    client: impl Into<ClientReceiver>,
    collection: Collection,
    settings: &ReflectorSettings,
    mut take: impl FnMut(Result<T, InvalidObject>),
) -> Result<(), Error> {
    let path = Arc::clone(&collection.path);
    let mut transport = KubeTransport::new(client.into(), collection, settings.limits);
    let pages = read_pages(&mut transport, settings, |_, items| {
        items.into_iter().for_each(&mut take);
        Ok(())
    });
    let failed = |kind| Error {
        verb: Verb::List,
        path,
        kind,
    };
    pages.await.map(drop).map_err(failed)
}

/// Passes the date and the items of each page to `take`, until it fails. Returns the version of the list.
pub(crate) async fn read_pages<T: DeserializeOwned>(
    transport: &mut impl Transport,
    settings: &ReflectorSettings,
    mut take: impl FnMut(Option<&str>, Vec<Result<T, InvalidObject>>) -> Result<(), ErrorKind>,
) -> Result<String, ErrorKind> {
    let limits = settings.limits;
    let mut version = None;
    let mut continue_token = None;
    let mut page_size = settings.page_size;
    for _ in 0..limits.pages {
        let page = transport.list(page_size, continue_token.as_deref());
        let page = match within(settings.page_timeout, page).await {
            Err(ErrorKind::BodyTooLarge { .. }) if page_size > 1 => {
                page_size /= 2;
                continue;
            }
            page => page?,
        };
        let date = page.date.as_ref().and_then(|date| date.to_str().ok());
        let page =
            decode::page::<T>(&page.body, limits.object_bytes).map_err(ErrorKind::NotAList)?;
        take(date, page.items)?;
        // All pages belong to one snapshot. If a server breaks that rule, a watch from the first page's version repeats
        // the rest.
        let version = version.get_or_insert(page.version);
        continue_token = page.continue_token;
        if continue_token.is_none() {
            return Ok(std::mem::take(version));
        }
    }
    Err(ErrorKind::TooManyPages {
        limit: limits.pages,
    })
}

/// The response, unless it takes longer than `after`.
pub(crate) async fn within<T>(
    after: Duration,
    response: impl Future<Output = Result<T, ErrorKind>>,
) -> Result<T, ErrorKind> {
    timeout(after, response)
        .await
        .unwrap_or(Err(ErrorKind::Timeout(after)))
}
