//! Loopback addresses for clusters: each has its own, so that all use Kubernetes' usual ports.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use crate::{Error, Result};

/// The API server's port.
pub(crate) const API_PORT: u16 = 6443;
/// etcd's port for clients.
pub(crate) const ETCD_PORT: u16 = 2379;
/// etcd's port for its peers, of which it has none.
pub(crate) const ETCD_PEER_PORT: u16 = 2380;
/// Taken by a run until its clusters listen. Nothing else is there.
const RESERVATION_PORT: u16 = 2381;
/// Where proxies listen: the address of the cluster's server plus this.
const PROXIES: u8 = 100;

/// 127.77.N.0/24: the addresses of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(u8);

impl Subnet {
    /// A subnet on which nothing listens, and which nobody else gets while this is kept.
    pub(crate) fn reserve() -> Result<Reserved> {
        // Runs that begin at the same time look in different places first.
        let first = std::process::id();
        (0..250u32)
            .filter_map(|number| u8::try_from((first + number) % 250).ok().map(Self))
            .find_map(Self::reserved)
            .ok_or_else(|| Error::Program {
                program: "loopback".to_owned(),
                message: "all subnets 127.77.0.0 to 127.77.249.0 are in use".to_owned(),
            })
    }

    /// The address of cluster `number`, counted from 0.
    pub fn cluster(self, number: u8) -> IpAddr {
        Ipv4Addr::new(127, 77, self.0, number + 1).into()
    }

    /// The address of a proxy in front of cluster `number`.
    pub fn proxy(self, number: u8) -> IpAddr {
        Ipv4Addr::new(127, 77, self.0, number + 1 + PROXIES).into()
    }

    fn reserved(self) -> Option<Reserved> {
        let listen = |port| TcpListener::bind((self.cluster(0), port)).ok();
        let reservation = listen(RESERVATION_PORT)?;
        // Of a run whose clusters have been started.
        for port in [API_PORT, ETCD_PORT] {
            listen(port)?;
        }
        Some(Reserved {
            subnet: self,
            _reservation: reservation,
        })
    }
}

/// A subnet that is nobody else's until clusters listen on it.
pub(crate) struct Reserved {
    pub(crate) subnet: Subnet,
    _reservation: TcpListener,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_that_begin_at_once_get_different_subnets() {
        let (one, other) = (Subnet::reserve().unwrap(), Subnet::reserve().unwrap());
        assert_ne!(one.subnet, other.subnet);
    }
}
