//! Servers, and the settings of connections that notice when these are gone.

use std::time::Duration;

use http::Uri;
use tonic::transport;

/// How long a TCP connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How often a connection is checked, and how long the response may take: together the time after which a silent server is
/// noticed.
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// A server, with the settings that notice within 15 seconds when it is gone.
#[derive(Clone, Debug)]
pub struct Server {
    pub(crate) endpoint: transport::Endpoint,
    /// Whether its TLS is up to the program, unless there are files.
    pub(crate) has_own_tls: bool,
}

impl Server {
    /// The server `http://HOST:PORT` or `https://HOST:PORT`. None for a text that is no URI with a scheme.
    #[must_use]
    pub fn of_uri(uri: &str) -> Option<Self> {
        let endpoint = transport::Endpoint::from_shared(uri.to_owned()).ok()?;
        endpoint.uri().scheme()?;
        Some(Self {
            has_own_tls: false,
            ..Self::of_endpoint(endpoint)
        })
    }

    /// A server with settings of its own, such as TLS.
    #[must_use]
    pub fn of_endpoint(endpoint: transport::Endpoint) -> Self {
        let (interval, patience) = PING;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(interval)
            .keep_alive_timeout(patience)
            .keep_alive_while_idle(true);
        Self {
            endpoint,
            has_own_tls: true,
        }
    }

    /// Its address.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        self.endpoint.uri()
    }

    /// Whether it is up to the credentials to configure TLS.
    pub(crate) fn needs_tls(&self) -> bool {
        !self.has_own_tls && self.uri().scheme_str() == Some("https")
    }
}
