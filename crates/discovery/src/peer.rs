//! Who is at the other end of a connection.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use crate::user::CertificateUser;

/// The other end of a connection. An extension of each request.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// The user of its certificate, which was verified.
    pub(crate) certificate: Option<Arc<CertificateUser>>,
}

impl Peer {
    /// Who has sent a request over a connection of this service.
    pub(crate) fn of<T>(request: &tonic::Request<T>) -> Self {
        let peer = request.extensions().get::<Self>();
        peer.cloned().unwrap_or_default()
    }
}

/// Somebody without a connection.
impl Default for Peer {
    fn default() -> Self {
        Self {
            address: Ipv4Addr::UNSPECIFIED.into(),
            certificate: None,
        }
    }
}
