//! The resolver and small services on loopback, which come and go.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod balance;
mod server;

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use discovery_proto::problem;
use endpoint_resolver::{Endpoints, Reason, Resolved, Resolver};
use rstest::rstest;

use crate::server::{Answer, Server};

const ONE: Answer = Answer::Pods(7, &["web-1"]);
const TWO: Answer = Answer::Pods(9, &["web-1", "web-2"]);

/// Waits for `what`, which has to come soon.
async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(60), future).await;
    done.unwrap_or_else(|_| panic!("no {what} in 60 s"))
}

/// Waits until `is_met` of the endpoints.
async fn until(what: &str, endpoints: &Endpoints, is_met: impl Fn(&Endpoints) -> bool) {
    let mut endpoints = endpoints.clone();
    let met = async {
        while !is_met(&endpoints) {
            endpoints.changed().await.unwrap();
        }
    };
    within(what, met).await;
}

fn pods(resolved: &Resolved) -> Vec<&str> {
    let endpoints = resolved.endpoints.iter();
    endpoints.map(|endpoint| endpoint.pod.as_str()).collect()
}

fn has(endpoints: &Endpoints, expected: &[&str]) -> bool {
    let current = endpoints.current();
    current.is_some_and(|current| pods(&current) == expected && current.is_live())
}

fn has_problem(endpoints: &Endpoints, reason: Reason) -> bool {
    let problem = endpoints.problem();
    problem.is_some_and(|problem| problem.reason == reason)
}

fn resolver(servers: &[String], directory: Option<&Path>) -> Resolver {
    let builder = servers.iter().fold(Resolver::builder(), |builder, server| {
        builder.server(server)
    });
    match directory {
        Some(directory) => builder.directory(directory),
        None => builder,
    }
    .build()
    .unwrap()
}

/// Leaves the answer of a service in a directory, as a program does that ends.
async fn written(answer: Answer) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(answer).await;
    let resolver = resolver(&[server.uri()], Some(directory.path()));
    let mut endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    drop(resolver);
    let closed = async { while endpoints.changed().await.is_ok() {} };
    within("end of the refresher", closed).await;
    let file = directory.path().join("shop.web.json");
    let exists = async {
        while !file.exists() {
            tokio::task::yield_now().await;
        }
    };
    within("file", exists).await;
    directory
}

/// An address at which nobody listens.
async fn nobody() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn d2_changes_arrive() {
    let server = Server::start(ONE).await;
    let resolver = resolver(&[server.uri()], None);
    let endpoints = resolver.endpoints("shop/web").unwrap();
    assert_eq!(endpoints.current(), None);
    let first = within("answer", endpoints.ready()).await.unwrap();
    assert_eq!((first.version, pods(&first)), (7, vec!["web-1"]));
    assert_eq!(first.age(), Duration::ZERO);
    server.say(TWO);
    until("change", &endpoints, |endpoints| {
        has(endpoints, &["web-1", "web-2"])
    })
    .await;
    let again = resolver.endpoints("shop/web").unwrap();
    assert!(
        has(&again, &["web-1", "web-2"]),
        "handles share what is known"
    );
}

#[tokio::test]
async fn d1_more_sets_than_a_stream_has() {
    let server = Server::start(ONE).await;
    let resolver = resolver(&[server.uri()], None);
    let first = resolver.endpoints("shop/web").unwrap();
    within("answer", first.ready()).await.unwrap();
    // One by one: more streams than the client opens for single sets.
    for number in 0..40 {
        let endpoints = resolver.endpoints(&format!("shop/web-{number}")).unwrap();
        within("answer", endpoints.ready()).await.unwrap();
    }
    let many: Vec<_> = (0..2_500)
        .map(|number| resolver.endpoints(&format!("many/web-{number}")).unwrap())
        .collect();
    for endpoints in &many {
        within("answer", endpoints.ready()).await.unwrap();
    }
    server.say(TWO);
    for endpoints in many.iter().chain([&first]) {
        until("change", endpoints, |endpoints| {
            has(endpoints, &["web-1", "web-2"])
        })
        .await;
    }
}

#[tokio::test]
async fn d3_a_program_starts_with_what_is_on_disk() {
    let directory = written(TWO).await;
    let address = nobody().await;
    let resolver = resolver(&[format!("http://{address}")], Some(directory.path()));
    let endpoints = resolver.endpoints("shop/web").unwrap();
    let current = endpoints.current().expect("it is there at once");
    assert_eq!(
        (current.version, pods(&current)),
        (9, vec!["web-1", "web-2"])
    );
    assert!(!current.is_live());
    until("problem", &endpoints, |endpoints| {
        has_problem(endpoints, Reason::Unavailable)
    })
    .await;
    assert_eq!(pods(&endpoints.current().unwrap()).len(), 2);

    let server = Server::start_at(address, ONE).await;
    until("answer", &endpoints, |endpoints| has(endpoints, &["web-1"])).await;
    assert_eq!(
        server.known_versions(1).await,
        [0],
        "the version may be of another replica"
    );
    assert_eq!(endpoints.problem(), None);
}

#[tokio::test]
async fn d3_a_damaged_file_is_as_good_as_none_and_is_replaced() {
    let directory = written(ONE).await;
    let file = directory.path().join("shop.web.json");
    let content = fs::read(&file).unwrap();
    fs::write(&file, &content[..content.len() / 2]).unwrap();

    let away = resolver(
        &[format!("http://{}", nobody().await)],
        Some(directory.path()),
    );
    let endpoints = away.endpoints("shop/web").unwrap();
    assert_eq!(endpoints.current(), None);
    until("problem", &endpoints, |endpoints| {
        has_problem(endpoints, Reason::Unavailable)
    })
    .await;
    assert_eq!(endpoints.current(), None, "not an empty set");
    drop(away);

    let server = Server::start(TWO).await;
    let resolver = resolver(&[server.uri()], Some(directory.path()));
    let endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    let replaced = async {
        while !fs::read_to_string(&file).is_ok_and(|content| content.contains("web-2")) {
            tokio::task::yield_now().await;
        }
    };
    within("other file", replaced).await;
}

#[tokio::test]
async fn d3_endpoints_outlive_the_service_and_age() {
    let server = Server::start(TWO).await;
    let address = server.address();
    let resolver = resolver(&[server.uri()], None);
    let endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    server.kill().await;
    until("problem", &endpoints, |endpoints| {
        has_problem(endpoints, Reason::Unavailable)
    })
    .await;
    let current = endpoints.current().unwrap();
    assert_eq!(pods(&current), ["web-1", "web-2"]);
    let young = current.age();
    // Each attempt reports another problem; the age goes on.
    let message = |endpoints: &Endpoints| endpoints.problem().map(|problem| problem.message);
    until("failed attempt", &endpoints, |endpoints| {
        message(endpoints).is_some_and(|message| message.contains("failed to connect"))
    })
    .await;
    assert!(endpoints.current().unwrap().age() > young);

    let server = Server::start_at(address, Answer::Pods(9, &["web-1", "web-2"])).await;
    until("confirmation", &endpoints, |endpoints| {
        has(endpoints, &["web-1", "web-2"])
    })
    .await;
    assert_eq!(
        server.known_versions(1).await,
        [9],
        "the client goes on from its version"
    );
    assert_eq!(endpoints.current().unwrap().age(), Duration::ZERO);
}

#[tokio::test]
async fn d3_another_replica_takes_over() {
    let servers = [Server::start(ONE).await, Server::start(ONE).await];
    let resolver = resolver(&servers.each_ref().map(Server::uri), None);
    let endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    let [a, b] = servers;
    let is_first = a.known_versions(0).await.len() == 1;
    let (used, other) = if is_first { (a, b) } else { (b, a) };
    other.say(TWO);
    used.kill().await;
    until("other answer", &endpoints, |endpoints| {
        has(endpoints, &["web-1", "web-2"])
    })
    .await;
    assert_eq!(
        other.known_versions(1).await,
        [0],
        "versions are of one replica"
    );
}

#[tokio::test]
async fn d3_a_replica_that_knows_nothing_is_left() {
    let waiting = Server::start(Answer::Problem(problem::Reason::Waiting)).await;
    let knowing = Server::start(TWO).await;
    // Several, as each begins with any of the servers.
    for _ in 0..8 {
        let resolver = resolver(&[waiting.uri(), knowing.uri()], None);
        let endpoints = resolver.endpoints("shop/web").unwrap();
        until("answer", &endpoints, |endpoints| {
            has(endpoints, &["web-1", "web-2"])
        })
        .await;
    }
}

#[rstest]
#[case::not_found(problem::Reason::NotFound, Reason::NotFound)]
#[case::invalid(problem::Reason::Invalid, Reason::Invalid)]
#[case::waiting(problem::Reason::Waiting, Reason::Waiting)]
#[tokio::test]
async fn d3_a_problem_keeps_the_endpoints(#[case] sent: problem::Reason, #[case] reason: Reason) {
    let server = Server::start(TWO).await;
    let resolver = resolver(&[server.uri()], None);
    let endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    server.say(Answer::Problem(sent));
    until("problem", &endpoints, |endpoints| {
        has_problem(endpoints, reason)
    })
    .await;
    let current = endpoints.current().unwrap();
    assert_eq!((pods(&current).len(), current.is_live()), (2, false));
    server.say(TWO);
    until("answer", &endpoints, |endpoints| {
        has(endpoints, &["web-1", "web-2"])
    })
    .await;
    assert_eq!(server.known_versions(1).await, [0], "on the same stream");
}

#[tokio::test]
async fn d3_an_empty_set_is_empty() {
    let directory = written(Answer::Pods(9, &[])).await;
    let away = resolver(
        &[format!("http://{}", nobody().await)],
        Some(directory.path()),
    );
    let endpoints = away.endpoints("shop/web").unwrap();
    assert_eq!(pods(&endpoints.current().unwrap()), [""; 0]);
}

#[tokio::test]
async fn d2_after_changes_that_do_not_fit_the_client_asks_for_the_whole() {
    let server = Server::start(ONE).await;
    let resolver = resolver(&[server.uri()], None);
    let endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    server.say(Answer::Misfit);
    until("problem", &endpoints, |endpoints| {
        has_problem(endpoints, Reason::Unavailable)
    })
    .await;
    assert_eq!(pods(&endpoints.current().unwrap()), ["web-1"]);
    server.say(TWO);
    until("answer", &endpoints, |endpoints| {
        has(endpoints, &["web-1", "web-2"])
    })
    .await;
    assert_eq!(server.known_versions(2).await[..2], [0, 0]);
}

#[tokio::test]
async fn d3_dropping_the_resolver_ends_its_tasks() {
    let server = Server::start(ONE).await;
    let directory = tempfile::tempdir().unwrap();
    let resolver = resolver(&[server.uri()], Some(directory.path()));
    let mut endpoints = resolver.endpoints("shop/web").unwrap();
    within("answer", endpoints.ready()).await.unwrap();
    let before = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    drop(resolver.clone());
    drop(resolver);
    let closed = async { while endpoints.changed().await.is_ok() {} };
    within("end of the refresher", closed).await;
    assert_eq!(
        pods(&endpoints.current().unwrap()),
        ["web-1"],
        "it stays readable"
    );
    let fewer = async {
        // The refresher, the writer, and the connection, with its end at the server.
        while tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
            + 3
            > before
        {
            tokio::task::yield_now().await;
        }
    };
    within("end of all tasks", fewer).await;
}
