//! Notifications over the network: a small HTTP server on a loopback address, in real time (M8).

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use local_controller::{NotifyConfig, Webhooks};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
    time::timeout,
};

use crate::{
    migrations::{POLICIES, REQUESTS, policy, request, status},
    world::{World, text},
};

/// The longest that a test waits for a request: pauses after failures are a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server does with the requests, in their order; it acknowledges all further ones.
#[derive(Clone, Copy, Debug)]
enum Next {
    Fail,
    Redirect,
    /// It reads the request, and closes the connection.
    Close,
}

/// The headers and the body of a request.
type Received = (BTreeMap<String, String>, Value);

async fn server(script: Vec<Next>) -> (SocketAddr, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut script = script.into_iter();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (next, sender) = (script.next(), sender.clone());
            let answer = move |request| take(request, next, sender.clone());
            let serving = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
            // That it was closed without an answer.
            assert_eq!(serving.is_err(), matches!(next, Some(Next::Close)));
        }
    });
    (address, received)
}

async fn take(
    request: Request<Incoming>,
    next: Option<Next>,
    sender: mpsc::Sender<Received>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    let (head, body) = request.into_parts();
    assert_eq!(
        (head.method.as_str(), head.uri.path()),
        ("POST", "/hooks/SECRET")
    );
    let headers = head.headers.iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let body = body.collect().await.unwrap().to_bytes();
    let event = serde_json::from_slice(&body).unwrap();
    sender.send((headers.collect(), event)).await.unwrap();
    let answer = Response::builder();
    let answer = match next {
        Some(Next::Fail) => answer.status(503),
        Some(Next::Redirect) => answer.status(307).header("location", "/elsewhere"),
        Some(Next::Close) => return Err("the connection is closed"),
        None => answer.status(200),
    };
    Ok(answer.body(Full::default()).unwrap())
}

async fn next(received: &mut mpsc::Receiver<Received>) -> Received {
    let next = timeout(PATIENCE, received.recv()).await;
    next.expect("a notification arrives").unwrap()
}

/// A controller that reaches webhooks over the network, with a request that has ended or will soon.
async fn notified(address: SocketAddr, config: NotifyConfig) -> World {
    let mut world = World::without_controller(sim_cluster::Settings::default()).await;
    world.network = Some(Webhooks::over_network());
    world.notify = config;
    world.start_controller();
    let mut set = crate::world::set(&json!({}));
    set["spec"]["replicas"] = 2.into();
    world.create(crate::world::SETS, &set).await;
    let mut object = policy(&json!({}));
    let webhook = format!("http://{address}/hooks/SECRET");
    if world.notify.webhook.is_none() {
        object["spec"]["notify"] = json!({ "webhook": webhook });
    }
    world.create(POLICIES, &object).await;
    world
        .wait_until("there are pods", 60, async |world: &World| {
            world.pods().await.len() == 2
        })
        .await;
    let pod = world.pods().await.remove(0);
    world.create(REQUESTS, &request("one", &pod.name)).await;
    world
}

#[tokio::test]
async fn m8_failures_and_lost_answers_are_sent_again_with_the_same_id() {
    let script = vec![Next::Fail, Next::Close, Next::Redirect];
    let attempts = script.len() + 1;
    let (address, mut received) = server(script).await;
    let config = NotifyConfig {
        allowed_hosts: vec!["127.0.0.1".to_owned()],
        ..NotifyConfig::default()
    };
    let world = notified(address, config).await;
    let object = world.get(&format!("{REQUESTS}/one")).await;
    let uid = text(&object["metadata"]["uid"]);
    let mut bodies = Vec::new();
    for _ in 0..attempts {
        let (headers, event) = next(&mut received).await;
        assert_eq!(headers["idempotency-key"], format!("{uid}.opened"));
        assert_eq!(event["id"], headers["idempotency-key"]);
        assert!(!headers.contains_key("authorization"));
        bodies.push((event["time"].clone(), event["type"].clone()));
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "time and type are the same: {bodies:?}");
    world
        .wait_until("it is acknowledged", 60, async |world: &World| {
            let notified = status(world, "one").await["notified"].clone();
            !notified["opened"].is_null() && notified["failure"].is_null()
        })
        .await;
    let cancel = json!({ "spec": { "cancel": true } });
    world.patch(&format!("{REQUESTS}/one"), &cancel).await;
    let (headers, event) = next(&mut received).await;
    assert_eq!(headers["idempotency-key"], format!("{uid}.closed"));
    assert_eq!(event["type"], "dev.fedrs.migration.closed");
}

#[tokio::test]
async fn m8_the_webhook_of_the_configuration_gets_its_token() {
    let (address, mut received) = server(Vec::new()).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "of-the-tracker\n").unwrap();
    let config = NotifyConfig {
        webhook: Some(format!("http://{address}/hooks/SECRET")),
        token_file: Some(file),
        ..NotifyConfig::default()
    };
    let _world = notified(address, config).await;
    let (headers, _) = next(&mut received).await;
    assert_eq!(headers["authorization"], "Bearer of-the-tracker");
}

#[tokio::test]
async fn m8_an_answer_without_end_is_not_read_and_a_webhook_that_is_away_names_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endless = Arc::new(tokio::sync::Notify::new());
    let cut = Arc::clone(&endless);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 16];
        let _ = stream.read(&mut request).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nx-long: ")
            .await
            .unwrap();
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        // Nobody listens any more.
        drop(listener);
        cut.notify_one();
    });
    let config = NotifyConfig {
        allowed_hosts: vec!["*".to_owned()],
        ..NotifyConfig::default()
    };
    let world = notified(address, config).await;
    let cut = timeout(PATIENCE, endless.notified()).await;
    cut.expect("the connection is closed by the controller");
    let failure = async |world: &World| text(&status(world, "one").await["notified"]["failure"]);
    world
        .wait_until("the failure is shown", 60, async |world: &World| {
            failure(world).await.contains("Connection refused")
        })
        .await;
    let shown = failure(&world).await;
    assert!(
        shown.starts_with(&format!("webhook {address}: ")),
        "{shown}"
    );
    assert!(!shown.contains("SECRET"), "{shown}");
}
