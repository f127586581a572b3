//! Loopback addresses for clusters: each cluster has one, so that all use Kubernetes' usual ports.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use crate::{Error, Result};

/// The API server's port.
pub(crate) const API_PORT: u16 = 6443;
/// etcd's port for clients.
pub(crate) const ETCD_PORT: u16 = 2379;
/// etcd's port for its peers, although it has none.
pub(crate) const ETCD_PEER_PORT: u16 = 2380;
/// The port on which a run listens to reserve its subnet, until its clusters listen. Nothing else uses it.
const RESERVATION_PORT: u16 = 2381;
/// The address of a cluster's proxy is the address of the cluster plus this.
const PROXIES: u8 = 100;

/// 127.77.N.0/24: the addresses of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(u8);

impl Subnet {
    /// Reserves a subnet on which nothing listens.
    pub(crate) fn reserve() -> Result<Reserved> {
        // Runs that begin at the same time look in different paths first.
        let first = std::process::id();
        (0..250u32)
            .filter_map(|number| u8::try_from((first + number) % 250).ok().map(Self))
            .find_map(Self::reserved)
            .ok_or(Error::NoSubnet)
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
        // A run whose clusters already listen has released its reservation.
        for port in [API_PORT, ETCD_PORT] {
            listen(port)?;
        }
        Some(Reserved {
            subnet: self,
            _reservation: reservation,
        })
    }
}

/// A subnet that is reserved for this run until its clusters listen on it.
pub(crate) struct Reserved {
    pub(crate) subnet: Subnet,
    _reservation: TcpListener,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_start_together_get_different_subnets() {
        let (one, other) = (Subnet::reserve().unwrap(), Subnet::reserve().unwrap());
        assert_ne!(one.subnet, other.subnet);
    }
}
