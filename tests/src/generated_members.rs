//! Members whose objects are generated, behind one HTTP server: for benchmarks of more than real or embedded clusters can hold.
//!
//! Each member is below a path of its own: `http://127.0.0.1:PORT/MEMBER/...`.

use std::{
    convert::Infallible,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::bail;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use serde_json::json;
use tokio::net::TcpListener;

/// The body of a response.
pub type Body = BoxBody<Bytes, Infallible>;

/// How often is looked whether something has happened: the precision of times.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a stage of a benchmark may take.
const DEADLINE: Duration = Duration::from_secs(1800);

/// Serves all members by `answer` until the runtime ends. Returns the address.
///
/// # Errors
/// If no port is free.
pub async fn serve<F>(
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) -> anyhow::Result<String>
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // An event is small, and must arrive at once.
            let _ = stream.set_nodelay(true);
            let answer = answer.clone();
            let service = tower::service_fn(move |request| {
                let response = answer(request);
                async move { Ok::<_, Infallible>(response.await) }
            });
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                let service = TowerToHyperService::new(service);
                // A client may disconnect at any time.
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Ok(address)
}

/// A response with this body.
#[must_use]
pub fn response(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    response
}

/// The value of `key` in the query of a request.
#[must_use]
pub fn query<'a, B>(request: &'a Request<B>, key: &str) -> Option<&'a str> {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    let pair = pairs.find(|(name, _)| *name == key)?;
    Some(pair.1)
}

/// Writes the kubeconfig of each member of the server at `address` into `members/` of the directory.
///
/// # Errors
/// If a file can't be written.
pub fn write_kubeconfigs(
    directory: &Path,
    address: &str,
    names: impl IntoIterator<Item = String>,
) -> anyhow::Result<()> {
    let kubeconfigs = directory.join("members");
    fs::create_dir(&kubeconfigs)?;
    for name in names {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "member",
            "clusters": [{ "name": "member", "cluster": { "server": format!("{address}/{name}") } }],
            "users": [{ "name": "member", "user": {} }],
            "contexts": [{ "name": "member", "context": { "cluster": "member", "user": "member" } }],
        });
        let file = kubeconfigs.join(format!("{name}.yaml"));
        fs::write(file, kubeconfig.to_string())?;
    }
    Ok(())
}

/// Waits until something holds.
///
/// # Errors
/// If it does not within half an hour.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> anyhow::Result<()> {
    let started = Instant::now();
    while !holds().await {
        if started.elapsed() > DEADLINE {
            bail!("timed out waiting: {what}");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
