//! A TCP proxy in front of an API server, which injects latency, silence and resets.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

use crate::{Result, address::API_PORT, with_path};

/// How the proxy treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyMode {
    /// Forwards all data with this latency.
    Forward(Duration),
    /// Accepts all data and forwards none: connections stay open and silent.
    Blackhole,
    /// Forwards no data of clients: the server does not see their requests, and its events arrive.
    BlackholeRequests,
    /// Forwards no data of the server: requests take effect, and no response arrives.
    BlackholeResponses,
    /// Resets all connections, open ones included.
    Reset,
}

/// Who sends data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

impl ProxyMode {
    /// After which time data is forwarded; `None` if it is not.
    fn latency(self, sender: Sender) -> Option<Duration> {
        match (self, sender) {
            (Self::Forward(latency), _) => Some(latency),
            (Self::BlackholeRequests, Sender::Server)
            | (Self::BlackholeResponses, Sender::Client) => Some(Duration::ZERO),
            _ => None,
        }
    }
}

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    address: IpAddr,
    mode: watch::Sender<ProxyMode>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Listens on `address` and forwards to the API server at `server`.
    pub async fn start(address: IpAddr, server: IpAddr) -> Result<Self> {
        let listener = TcpListener::bind((address, API_PORT)).await;
        let listener = with_path(
            std::path::Path::new(&format!("{address}:{API_PORT}")),
            listener,
        )?;
        let (mode, changes) = watch::channel(ProxyMode::Forward(Duration::ZERO));
        let target = SocketAddr::new(server, API_PORT);
        let task = tokio::spawn(accept(listener, target, changes));
        Ok(Self {
            address,
            mode,
            task,
        })
    }

    /// The address on which it listens, on the API server's usual port.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Sets the mode, for open connections as well.
    pub fn set(&self, mode: ProxyMode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, mode: watch::Receiver<ProxyMode>) {
    // Aborts them with the proxy.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(connection(client, target, mode.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection, until either side ends it or it is reset.
async fn connection(client: TcpStream, target: SocketAddr, mut mode: watch::Receiver<ProxyMode>) {
    let is_reset = |mode: &ProxyMode| *mode == ProxyMode::Reset;
    let ends = {
        let (mut client_in, mut client_out) = tokio::io::split(client);
        let (up, down) = (mode.clone(), mode.clone());
        let forwarded = async {
            let Ok(server) = TcpStream::connect(target).await else {
                return;
            };
            let _ = server.set_nodelay(true);
            let (mut server_in, mut server_out) = tokio::io::split(server);
            tokio::select! {
                _ = forward(Sender::Client, &mut client_in, &mut server_out, up) => {}
                _ = forward(Sender::Server, &mut server_in, &mut client_out, down) => {}
            }
        };
        let reset = tokio::select! {
            () = forwarded => false,
            changed = mode.wait_for(is_reset) => changed.is_ok(),
        };
        reset.then(|| client_in.unsplit(client_out))
    };
    if let Some(client) = ends {
        // Without lingering, a close is a reset.
        let _ = client.set_zero_linger();
    }
}

/// Forwards the data of one side as the mode says, until its end.
async fn forward(
    sender: Sender,
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    mut mode: watch::Receiver<ProxyMode>,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 14];
    loop {
        let len = from.read(&mut buffer).await?;
        if len == 0 {
            return to.shutdown().await;
        }
        let forwarding = mode.wait_for(|mode| mode.latency(sender).is_some()).await;
        let latency = forwarding.ok().and_then(|mode| mode.latency(sender));
        if let Some(latency) = latency {
            sleep(latency).await;
        }
        to.write_all(&buffer[..len]).await?;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    async fn echo(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 64];
                while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                    stream.write_all(&buffer[..len]).await.unwrap();
                }
            });
        }
    }

    async fn received(stream: &mut TcpStream) -> io::Result<String> {
        let mut buffer = [0; 64];
        let len = stream.read(&mut buffer).await?;
        Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
    }

    #[tokio::test]
    async fn the_proxy_forwards_holds_back_and_resets() {
        let reserved = crate::Subnet::reserve().unwrap();
        let (server, front) = (reserved.subnet.cluster(0), reserved.subnet.proxy(0));
        let listener = TcpListener::bind((server, API_PORT)).await.unwrap();
        tokio::spawn(echo(listener));
        let proxy = Proxy::start(front, server).await.unwrap();
        let mut stream = TcpStream::connect((front, API_PORT)).await.unwrap();
        stream.write_all(b"one").await.unwrap();
        assert_eq!(received(&mut stream).await.unwrap(), "one");

        proxy.set(ProxyMode::Blackhole);
        stream.write_all(b"two").await.unwrap();
        let silent = Duration::from_millis(200);
        assert!(timeout(silent, received(&mut stream)).await.is_err());
        proxy.set(ProxyMode::Forward(Duration::from_millis(20)));
        assert_eq!(received(&mut stream).await.unwrap(), "two");

        // The echo is held back on its way there, then on its way back.
        for mode in [ProxyMode::BlackholeRequests, ProxyMode::BlackholeResponses] {
            proxy.set(mode);
            stream.write_all(b"three").await.unwrap();
            assert!(timeout(silent, received(&mut stream)).await.is_err());
            proxy.set(ProxyMode::Forward(Duration::ZERO));
            assert_eq!(received(&mut stream).await.unwrap(), "three");
        }

        proxy.set(ProxyMode::Reset);
        let error = received(&mut stream).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
