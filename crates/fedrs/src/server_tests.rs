//! Tests of the port: its responses, and clients that keep their connections open.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    net::TcpStream,
    time::Instant,
};

use super::*;

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

/// A client whose connection is answered.
fn connect(state: ServerState) -> DuplexStream {
    let (client, server) = duplex(1 << 10);
    tokio::spawn(answer(server, state.into()));
    client
}

/// Everything that the server sends, and how long it takes until the connection ends.
async fn read_all(client: &mut (impl AsyncRead + Unpin)) -> (String, Duration) {
    let started = Instant::now();
    let mut received = Vec::new();
    // A reset is an end, too.
    let _ = client.read_to_end(&mut received).await;
    (
        String::from_utf8_lossy(&received).into_owned(),
        started.elapsed(),
    )
}

#[test]
fn a_standby_is_ready_if_it_could_become_leader() {
    let state = ServerState::default();
    assert_eq!(state.ready(), Err(ProcessNotReady::Host));
    let (sender, election) = watch::channel(LeaderState::Unknown);
    state.election.set(election).unwrap();
    let leader = "other".to_owned();
    let why = "namespaces \"eu-west\" is forbidden".to_owned();
    for (leader_state, ready, part) in [
        (LeaderState::Unknown, false, "waiting for the Lease"),
        (
            LeaderState::Failed(why),
            false,
            "cannot read or write the Lease: see the log",
        ),
        (LeaderState::Standby { leader }, true, "ok: standby"),
        (LeaderState::Leading, false, "waiting for the host"),
    ] {
        sender.send_replace(leader_state);
        let answer = state.ready();
        assert_eq!(answer.is_ok(), ready, "{answer:?}");
        let text = answer.map_or_else(|reason| reason.to_string(), str::to_owned);
        assert_eq!(text, part);
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_is_answered_for_each_connection() {
    for (request, status) in [
        (HEALTH, "HTTP/1.1 200 OK"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET /readyz?x HTTP/1.1\r\n\r\n", "HTTP/1.1 503"),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        (
            b"POST /metrics HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
            "HTTP/1.1 405",
        ),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", "HTTP/1.1 400"),
    ] {
        let mut client = connect(ServerState::default());
        client.write_all(request).await.unwrap();
        let (answer, took) = read_all(&mut client).await;
        assert!(answer.starts_with(status), "{answer}");
        assert_eq!(took, Duration::ZERO, "the server closes the connection");
    }
}

#[tokio::test(start_paused = true)]
async fn s8_a_request_that_does_not_come_or_does_not_end_is_given_up() {
    let mut silent = connect(ServerState::default());
    assert_eq!(
        read_all(&mut silent).await,
        (String::new(), REQUEST_TIMEOUT)
    );

    let (mut reader, mut writer) = tokio::io::split(connect(ServerState::default()));
    let slow = async {
        for byte in HEALTH.iter().cycle() {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    let ((answer, took), ()) = tokio::join!(read_all(&mut reader), slow);
    assert_eq!((answer.as_str(), took), ("", REQUEST_TIMEOUT));

    let mut large = connect(ServerState::default());
    let header = vec![b'a'; 4 * MAX_REQUEST_BYTES];
    // The server may close the connection before all is written.
    let _ = large.write_all(b"GET /healthz HTTP/1.1\r\nX: ").await;
    let _ = large.write_all(&header).await;
    let (answer, _) = read_all(&mut large).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn s8_a_client_that_does_not_read_is_given_up() {
    let mut state = ServerState::default();
    let many = prometheus_client::metrics::counter::Counter::<u64>::default();
    state.registry.register("many", "a".repeat(1 << 20), many);
    let (mut client, server) = duplex(1 << 10);
    client
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let started = Instant::now();
    answer(server, state.into()).await;
    assert_eq!(started.elapsed(), CONNECTION_TIMEOUT);
}

/// A server on a port, and its address.
fn served(state: ServerState) -> (std::net::SocketAddr, tokio_util::sync::DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    serve(listener, state.into(), cancel.clone()).unwrap();
    (address, cancel.drop_guard())
}

async fn health(address: std::net::SocketAddr) -> String {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(HEALTH).await.unwrap();
    read_all(&mut client).await.0
}

#[tokio::test]
async fn s8_silent_connections_keep_no_probe_away() {
    let (address, _server) = served(ServerState::default());
    let mut silent = VecDeque::new();
    for _ in 0..3 * MAX_CONNECTIONS {
        silent.push_back(TcpStream::connect(address).await.unwrap());
    }
    assert!(health(address).await.starts_with("HTTP/1.1 200"));
    let mut oldest = silent.pop_front().unwrap();
    let (answer, took) = read_all(&mut oldest).await;
    assert_eq!(answer, "");
    assert!(took < REQUEST_TIMEOUT, "ended by a later connection");
}

#[tokio::test]
async fn s10_a_runtime_that_stands_still_is_not_healthy() {
    let watchdog = Watchdog::new(HEARTBEAT / 10);
    let beats = heartbeat(watchdog.watch("runtime"));
    let (address, _server) = served(ServerState {
        watchdog,
        ..ServerState::default()
    });
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let runtime = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::spawn(beats);
            tokio::task::yield_now().await;
            // The only thread of the runtime.
            let _ = blocked.recv();
        });
    });
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = health(address).await;
        if answer.starts_with("HTTP/1.1 500") {
            assert!(
                answer.contains("runtime has made no progress for"),
                "{answer}"
            );
            break;
        }
        assert!(Instant::now() < deadline, "still healthy: {answer}");
    }
    drop(release);
    runtime.join().unwrap();
}
