//! Lists of a member within limits: it may be hostile, so that what is kept of its answers is bounded.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use kube::Client;
use reflector::{Collection, ReflectorSettings, format_error};
use serde::de::DeserializeOwned;

/// A member can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A list failed.
    #[error("{}", format_error(.0))]
    List(#[from] reflector::Error),
    /// The member sends more than is kept.
    #[error("more than {limit} objects of {path}")]
    TooMany {
        /// The collection.
        path: &'static str,
        /// How many are kept.
        limit: usize,
    },
}

impl ReadError {
    /// The HTTP status of a rejection.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::List(error) => error.code(),
            Self::TooMany { .. } => None,
        }
    }
}

/// How many more objects of a collection may be kept.
#[derive(Debug)]
pub struct KeptLimit {
    path: &'static str,
    limit: usize,
    left: AtomicUsize,
}

impl KeptLimit {
    /// At most `limit` objects, of the collection that errors call `path`.
    #[must_use]
    pub fn new(path: &'static str, limit: usize) -> Self {
        Self {
            path,
            limit,
            left: AtomicUsize::new(limit),
        }
    }

    /// Whether there is room for one more.
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

/// Lists of one member.
pub struct Lists<'a> {
    client: &'a Client,
    settings: ReflectorSettings,
}

impl<'a> Lists<'a> {
    /// Lists by `client`; each page within `timeout`.
    #[must_use]
    pub fn new(client: &'a Client, timeout: Duration) -> Self {
        let settings = ReflectorSettings {
            page_timeout: timeout,
            ..ReflectorSettings::default()
        };
        Self { client, settings }
    }

    /// Lists a collection, and keeps what `keep` makes of its objects. What can't be read is skipped, and logged.
    ///
    /// # Errors
    /// A list failed, or the member sends more than `limit`.
    pub async fn list<T: DeserializeOwned, K>(
        &self,
        collection: Collection,
        limit: &KeptLimit,
        keep: impl Fn(T) -> Option<K>,
    ) -> Result<Vec<K>, ReadError> {
        let mut kept = Vec::new();
        let mut is_full = false;
        let take = |item| match item {
            Ok(item) => {
                if let Some(item) = keep(item).filter(|_| !is_full) {
                    is_full = !limit.take();
                    kept.push(item);
                }
            }
            Err(invalid) => tracing::warn!(%invalid, "skipped an object that can't be read"),
        };
        reflector::list(self.client.clone(), collection, &self.settings, take).await?;
        if is_full {
            let KeptLimit { path, limit, .. } = *limit;
            return Err(ReadError::TooMany { path, limit });
        }
        Ok(kept)
    }
}
