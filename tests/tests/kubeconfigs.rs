//! What kubeconfigs may contain, over HTTPS: from a file in the directory to a ready member.
//!
//! In real time, because the tests use sockets and child processes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use control_plane::request;
use federation_controller::{
    Controller,
    clock::Clock,
    config::Config,
    election::Fence,
    members::{MemberSecrets, directory},
    metrics::Metrics,
};
use fedrs_tests::MEMBERS_PATH;
use kube::Client;
use serde_json::Value;
use sim_cluster::{Kubeconfig, SimCluster};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// A kubeconfig with these fields of its cluster and user, in flow style.
fn kubeconfig(server: &str, cluster: &str, user: &str) -> String {
    format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: '{server}'{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    )
}

/// The files of members, each with the start of the expected condition Ready.
async fn files(
    access: &Kubeconfig,
    proxies: &[Arc<AtomicUsize>; 2],
) -> Vec<(&'static str, String, &'static str)> {
    let authority = STANDARD.encode(&access.authority_pem);
    let authority = format!(", certificate-authority-data: {authority}");
    let token = format!("token: {}", access.token);
    let plugin = |script: &str| {
        format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, args: ['-c', '{script}']}}"
        )
    };
    let credential = format!(
        r#"echo "{{\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"{}\",\"expirationTimestamp\":\"2099-01-01T00:00:00Z\"}}}}""#,
        access.token
    );
    let proxied = |proxy: &str| format!("{authority}, proxy-url: '{proxy}'");
    let http = proxied(&format!(
        "http://{}",
        ProxyProtocol::Http.serve(&proxies[0]).await
    ));
    let socks = proxied(&format!(
        "socks5://{}",
        ProxyProtocol::Socks.serve(&proxies[1]).await
    ));
    let by = |cluster: &str, user: &str| kubeconfig(&access.server, cluster, user);
    vec![
        (
            "inline",
            by(&authority, &token),
            "True Healthy: the API server answers",
        ),
        (
            "files",
            by(", certificate-authority: ca.pem", "tokenFile: ./token"),
            "True Healthy",
        ),
        (
            "plugin",
            by(&authority, &plugin(&credential)),
            "True Healthy",
        ),
        ("http-proxy", by(&http, &token), "True Healthy"),
        ("socks-proxy", by(&socks, &token), "True Healthy"),
        (
            "insecure",
            by(", insecure-skip-tls-verify: true", &token),
            "True Healthy",
        ),
        (
            "stranger",
            by(&authority, "token: another"),
            "False Unauthorized: the member rejects the credentials",
        ),
        ("other-authority", by("", &token), "False Unreachable"),
        (
            "broken-plugin",
            by(&authority, &plugin("echo s3cret; exit 3")),
            "False InvalidKubeconfig: file DIRECTORY/broken-plugin.yaml: the credentials plugin failed: exit status: 3",
        ),
        (
            "no-file",
            by(", certificate-authority: nowhere.pem", &token),
            "False InvalidKubeconfig: file DIRECTORY/no-file.yaml: certificate-authority: failed to read ",
        ),
    ]
}

/// The protocol of a proxy.
#[derive(Clone, Copy)]
enum ProxyProtocol {
    /// HTTP CONNECT.
    Http,
    /// SOCKS5 for IPv4 addresses, without authentication.
    Socks,
}

impl ProxyProtocol {
    /// Connects each client to the address that it requests, until the test ends. Counts the clients.
    async fn serve(self, clients: &Arc<AtomicUsize>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clients = Arc::clone(clients);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                clients.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let target = self.target(&mut stream).await;
                    let mut target = TcpStream::connect(target).await.unwrap();
                    // Either side may close first.
                    let _ = copy_bidirectional(&mut stream, &mut target).await;
                });
            }
        });
        address
    }

    async fn target(self, stream: &mut BufReader<TcpStream>) -> String {
        match self {
            Self::Http => {
                let mut request = String::new();
                while !request.ends_with("\r\n\r\n") {
                    stream.read_line(&mut request).await.unwrap();
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let target = request.strip_prefix("CONNECT ").unwrap();
                target.split(' ').next().unwrap().to_owned()
            }
            Self::Socks => {
                let mut offer = [0; 2];
                stream.read_exact(&mut offer).await.unwrap();
                let mut methods = vec![0; usize::from(offer[1])];
                stream.read_exact(&mut methods).await.unwrap();
                stream.write_all(&[5, 0]).await.unwrap();
                let mut request = [0; 10];
                stream.read_exact(&mut request).await.unwrap();
                let [version, command, _, kind, a, b, c, d, high, low] = request;
                assert_eq!((version, command, kind), (5, 1, 1), "connect to an address");
                stream
                    .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
                    .await
                    .unwrap();
                format!("{a}.{b}.{c}.{d}:{}", u16::from_be_bytes([high, low]))
            }
        }
    }
}

/// The condition Ready of each member: `NAME STATUS REASON: MESSAGE`.
async fn conditions(host: &Client) -> Vec<String> {
    let list = request(host, "GET", MEMBERS_PATH, &Value::Null)
        .await
        .unwrap();
    let ready = |member: &Value| {
        let conditions = member["status"]["conditions"].as_array()?;
        let ready = conditions
            .iter()
            .find(|condition| condition["type"] == "Ready")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&member["metadata"]["name"]);
        let [status, reason, message] =
            ["status", "reason", "message"].map(|field| text(&ready[field]));
        Some(format!("{name} {status} {reason}: {message}"))
    };
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(ready)
        .collect()
}

/// Expected events, although the members had no MemberCluster yet when they were found.
const EVENTS: [&str; 3] = [
    "broken-plugin InvalidKubeconfig",
    "no-file InvalidKubeconfig",
    "insecure InsecureKubeconfig",
];

/// The events of each member.
async fn recorded_events(host: &Client) -> Vec<String> {
    let path = "/api/v1/namespaces/default/events";
    let list = request(host, "GET", path, &Value::Null).await.unwrap();
    let words = |event: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [reason, message] = ["reason", "message"].map(|field| text(&event[field]));
        format!(
            "{} {reason}: {message}",
            text(&event["involvedObject"]["name"])
        )
    };
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(words)
        .collect()
}

#[tokio::test]
async fn f36_kubeconfig_files_may_use_whatever_kubectl_accepts() {
    let host = SimCluster::builder("host").nodes(0).start();
    let client = Client::new(host.service(), "default");
    fedrs_tests::install_crds(&client).await;
    let member = SimCluster::builder("member").nodes(1).start();
    let server = member.serve(None).await.unwrap();
    let access = server.kubeconfig();
    let kubeconfigs = tempfile::tempdir().unwrap();
    fs::write(kubeconfigs.path().join("ca.pem"), &access.authority_pem).unwrap();
    fs::write(
        kubeconfigs.path().join("token"),
        format!("{}\n", access.token),
    )
    .unwrap();
    let proxies = <[Arc<AtomicUsize>; 2]>::default();
    let files = files(access, &proxies).await;
    for (name, content, _) in &files {
        fs::write(kubeconfigs.path().join(format!("{name}.yaml")), content).unwrap();
    }

    let cancel = CancellationToken::new();
    let (events, members) = mpsc::channel(64);
    tokio::spawn(directory::watch(
        kubeconfigs.path().to_owned(),
        events,
        cancel.clone(),
    ));
    let mut config = Config::default();
    config.probe.period = Duration::from_millis(500);
    let controller = Controller {
        fence: Fence::open(),
        host: client.clone(),
        members,
        secrets: MemberSecrets::default(),
        config,
        clock: Clock::system(),
        seed: 1,
        metrics: Metrics::default().into(),
    };
    let running = controller.start(cancel.clone()).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let actual = [conditions(&client).await, recorded_events(&client).await].concat();
        let in_directory =
            |path: &str| path.replace("DIRECTORY", &kubeconfigs.path().display().to_string());
        let missing: Vec<_> = files
            .iter()
            .map(|(name, _, expected)| format!("{name} {}", in_directory(expected)))
            .chain(EVENTS.map(str::to_owned))
            .filter(|expected| !actual.iter().any(|line| line.starts_with(expected)))
            .collect();
        if missing.is_empty() {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "missing events: {missing:#?}\nactual events: {actual:#?}"
        );
        sleep(Duration::from_millis(100)).await;
    }
    for line in [conditions(&client).await, recorded_events(&client).await].concat() {
        assert!(
            !line.contains("s3cret") && !line.contains(&access.token),
            "{line}"
        );
    }
    for proxy in &proxies {
        assert!(
            proxy.load(Ordering::Relaxed) > 0,
            "the connection uses the proxy"
        );
    }
    cancel.cancel();
    running.joined().await;
}
