//! Loopback addresses for clusters: each has its own, so that all use Kubernetes' usual ports.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use crate::{Error, Result};

/// The API server's port.
pub(crate) const API_PORT: u16 = 6443;
/// etcd's port for clients.
pub(crate) const ETCD_PORT: u16 = 2379;
/// etcd's port for its peers, of which it has none.
pub(crate) const ETCD_PEER_PORT: u16 = 2380;
/// Where proxies listen: the address of the cluster's server plus this.
const PROXIES: u8 = 100;

/// 127.77.N.0/24: the addresses of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(u8);

impl Subnet {
    /// A subnet on which nothing listens.
    pub fn free() -> Result<Self> {
        // Runs that begin at the same time look in different places first.
        let first = std::process::id();
        (0..250u32)
            .filter_map(|number| u8::try_from((first + number) % 250).ok().map(Self))
            .find(|it| it.is_free())
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

    fn is_free(self) -> bool {
        [API_PORT, ETCD_PORT]
            .iter()
            .all(|port| TcpListener::bind((self.cluster(0), *port)).is_ok())
    }
}
