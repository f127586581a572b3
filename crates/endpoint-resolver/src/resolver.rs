//! The resolver: its sets, and its tasks.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use discovery_client::{Credentials, Server};
use tokio::{
    runtime::Handle,
    sync::mpsc::{self, UnboundedSender},
    task::AbortHandle,
};
use tonic::transport;

use crate::{
    endpoints::Endpoints,
    name::{InvalidSetName, SetName},
    refresh::{Added, Refresher},
    resolved::View,
    store::Store,
};

/// Resolves sets, and keeps them up to date in the background. Cheap to clone; its tasks end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Resolver(Arc<Inner>);

/// Builds a [`Resolver`].
#[derive(Debug, Default)]
pub struct Builder {
    servers: Vec<Result<Server, BuildError>>,
    credentials: Credentials,
    directory: Option<PathBuf>,
}

/// Why there is no resolver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A resolver needs one server at least.
    #[error("no server is given")]
    NoServer,
    /// The text is no URI with a scheme.
    #[error("the server {0:?} is not of the form http://HOST:PORT")]
    InvalidServer(String),
    /// The directory can't be created.
    #[error("failed to create the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The tasks need a runtime.
    #[error("there is no tokio runtime here")]
    NoRuntime,
}

#[derive(Debug)]
struct Inner {
    store: Option<Arc<Store>>,
    /// The sets that were asked for. Their number only grows, with the names in the program.
    sets: Mutex<HashMap<SetName, Endpoints>>,
    added: UnboundedSender<Added>,
    runtime: Handle,
    refresher: AbortHandle,
}

impl Resolver {
    /// Begins to build a resolver.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The endpoints of the set, `NAMESPACE/NAME`: those on disk at once, then those of the service.
    ///
    /// The first call for a set reads its file, and blocks for that long. The set is kept up to date from then on for as long
    /// as the resolver lives: keep the handle, or ask again.
    pub fn endpoints(&self, set: &str) -> Result<Endpoints, InvalidSetName> {
        let name: SetName = set.parse()?;
        if let Some(known) = self.sets().get(&name) {
            return Ok(known.fresh());
        }
        // Not under the lock: others don't wait for the disk.
        let view = (self.0.store.as_ref()).map_or(View::Unknown(None), |store| store.read(&name));
        let mut sets = self.sets();
        if let Some(known) = sets.get(&name) {
            return Ok(known.fresh());
        }
        let (endpoints, publisher) = Endpoints::new(name.clone(), view.clone());
        sets.insert(name.clone(), endpoints.clone());
        if let Some(store) = &self.0.store {
            let keep = Arc::clone(store).keep(endpoints.clone());
            self.0.runtime.spawn(keep);
        }
        let added = Added {
            name,
            view,
            publisher,
        };
        // It fails if the runtime is shutting down: nothing is refreshed then.
        let _ = self.0.added.send(added);
        Ok(endpoints)
    }

    fn sets(&self) -> std::sync::MutexGuard<'_, HashMap<SetName, Endpoints>> {
        // Each change of the map is one call: it is whole also after a panic.
        self.0.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

impl Builder {
    /// Adds a replica of the service, `http://HOST:PORT` or `https://HOST:PORT`. One of them is asked, any one at first, and the next one when it
    /// fails.
    #[must_use]
    pub fn server(mut self, uri: impl Into<String>) -> Self {
        let uri = uri.into();
        let server = Server::of_uri(&uri);
        self.servers
            .push(server.ok_or(BuildError::InvalidServer(uri)));
        self
    }

    /// Adds a replica of the service with settings of your own, such as TLS. The resolver sets the timeout of connections and
    /// the keepalive.
    #[must_use]
    pub fn server_endpoint(mut self, server: transport::Endpoint) -> Self {
        self.servers.push(Ok(Server::of_endpoint(server)));
        self
    }

    /// Trusts the authorities in this file, in PEM, for servers `https://HOST:PORT`. Without it those of the system are trusted. It is
    /// read again for each connection, as are the files of [`client_certificate`](Self::client_certificate).
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credentials.ca = Some(path.into());
        self
    }

    /// Shows the certificate, with the key, of these files in PEM to servers `https://HOST:PORT`.
    #[must_use]
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.credentials.client = Some((certificate.into(), key.into()));
        self
    }

    /// Sends the bearer token of this file. It is read again for each call, as tokens of pods change. Servers `http://` get it in plain
    /// text: only for networks that encrypt themselves.
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credentials.token = Some(path.into());
        self
    }

    /// Keeps the last good answers in this directory, which is created if there is none. Without it a starting program has
    /// to wait for the service.
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// Starts the resolver on the tokio runtime that this is called in. Does not wait for a server.
    pub fn build(self) -> Result<Resolver, BuildError> {
        let servers = self.servers.into_iter();
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(BuildError::NoServer);
        }
        let open = |path: PathBuf| match Store::open(&path) {
            Ok(store) => Ok(Arc::new(store)),
            Err(source) => Err(BuildError::Directory { path, source }),
        };
        let store = self.directory.map(open).transpose()?;
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let (added, sets) = mpsc::unbounded_channel();
        let refresher = runtime.spawn(Refresher::new(servers, self.credentials, sets).run());
        Ok(Resolver(Arc::new(Inner {
            store,
            sets: Mutex::default(),
            added,
            refresher: refresher.abort_handle(),
            runtime,
        })))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(&[], "no server is given")]
    #[case::no_scheme(&["host:9490"], "the server \"host:9490\" is not of the form http://HOST:PORT")]
    #[case::one_of_two(&["http://a:1", "a b"], "the server \"a b\" is not of the form http://HOST:PORT")]
    #[case::no_runtime(&["http://a:1"], "there is no tokio runtime here")]
    fn d3_a_resolver_says_what_it_lacks(#[case] servers: &[&str], #[case] error: &str) {
        let builder = servers.iter().fold(Resolver::builder(), |builder, server| {
            builder.server(*server)
        });
        assert_eq!(builder.build().unwrap_err().to_string(), error);
    }
}
