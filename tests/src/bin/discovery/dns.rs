//! Clients of a DNS server, by UDP.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use futures::future::try_join_all;
use hickory_proto::{
    op::{Message, ResponseCode},
    rr::RData,
    serialize::binary::BinDecodable,
};
use tokio::{net::UdpSocket, time::timeout};

use crate::{
    clients::{Rate, any_set},
    members::Shape,
};

/// Clients, each with a socket and one query at a time.
const CLIENTS: usize = 128;
/// How long an answer may take before its query counts as failed.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most bytes of an answer: what queries say, too.
const LARGEST: u16 = 4096;

/// A query for the addresses of a set, with EDNS.
fn query(id: u16, number: usize) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    // Recursion desired; one question and one additional record.
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    let set = format!("set-{number}");
    for label in [&*set, "default", "endpoints", "fedrs", "internal"] {
        query.push(u8::try_from(label.len()).expect("labels are short"));
        query.extend(label.as_bytes());
    }
    // The root; type A, class IN; then OPT, with the size of answers as its class.
    query.extend([0, 0, 1, 0, 1, 0, 0, 41]);
    query.extend(LARGEST.to_be_bytes());
    query.extend([0; 6]);
    query
}

async fn socket(server: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    socket.connect(server).await?;
    Ok(socket)
}

/// The addresses that the server has of a set, by one query.
pub(crate) async fn addresses(
    server: SocketAddr,
    number: usize,
) -> anyhow::Result<BTreeSet<Ipv4Addr>> {
    let socket = socket(server).await?;
    socket.send(&query(1, number)).await?;
    let mut answer = [0; LARGEST as usize];
    let received = timeout(PATIENCE, socket.recv(&mut answer)).await;
    let size = received.context("there is no answer")??;
    let answer = Message::from_bytes(&answer[..size])?;
    let code = answer.metadata.response_code;
    anyhow::ensure!(code == ResponseCode::NoError, "the answer is {code}");
    let address = |data: RData| match data {
        RData::A(address) => Ok(address.0),
        other => bail!("{other} is no address"),
    };
    let records = answer.answers.into_iter();
    records.map(|record| address(record.data)).collect()
}

/// Asks for the addresses of sets.
pub(crate) async fn load(
    server: SocketAddr,
    shape: Shape,
    duration: Duration,
) -> anyhow::Result<Rate> {
    let started = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        tokio::spawn(async move {
            let socket = socket(server).await?;
            let (mut answers, mut failed, mut id) = (0, 0, 0_u16);
            let mut answer = [0; LARGEST as usize];
            while started.elapsed() < duration {
                id = id.wrapping_add(1);
                socket.send(&query(id, any_set(shape))).await?;
                match timeout(PATIENCE, socket.recv(&mut answer)).await {
                    Ok(Ok(size)) if is_whole(&answer[..size], id, shape) => answers += 1,
                    _ => failed += 1,
                }
            }
            std::io::Result::Ok((answers, failed))
        })
    });
    let counts = try_join_all(clients).await?;
    let counts = counts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Rate::of(&counts, started))
}

/// Whether it answers the query with all endpoints: not cut off, without an error.
fn is_whole(answer: &[u8], id: u16, shape: Shape) -> bool {
    // Not cut off, and the code in the last four bits is that of no error.
    let is_fine = |flags: &[u8]| flags[0] & 0x02 == 0 && flags[1] << 4 == 0;
    let count = answer
        .get(6..8)
        .map(|count| u16::from_be_bytes([count[0], count[1]]));
    answer.get(..2) == Some(&id.to_be_bytes())
        && answer.get(2..4).is_some_and(is_fine)
        && count.map(usize::from) == Some(shape.endpoints)
}
