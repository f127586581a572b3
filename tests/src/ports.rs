//! Free local addresses, for processes that tests start.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

/// Addresses that are free now, and probably still when somebody listens.
///
/// # Errors
/// If there are none.
pub fn free_ports<const COUNT: usize>() -> io::Result<[SocketAddr; COUNT]> {
    let listen = |_| TcpListener::bind("127.0.0.1:0");
    let listeners = (0..COUNT).map(listen).collect::<Result<Vec<_>, _>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    Ok(<[SocketAddr; COUNT]>::try_from(addresses).expect("as many as there are listeners"))
}
