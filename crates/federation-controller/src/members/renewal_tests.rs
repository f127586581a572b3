//! The renewal of a token on paused time, against a fake member and a fake host.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use fedrs_api::{MemberCluster, MemberClusterSpec};
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::*;

const EPOCH: i64 = 1_800_000_000;
const HOUR: u64 = 3600;

fn token(issued: i64, lifetime: i64) -> String {
    token_of("fedrs-controller", issued, lifetime)
}

fn token_of(account: &str, issued: i64, lifetime: i64) -> String {
    let claims = json!({
        "iat": issued,
        "exp": issued + lifetime,
        "sub": format!("system:serviceaccount:fedrs-system:{account}"),
    });
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// A kubeconfig with comments and another user, of which the token alone may change.
fn kubeconfig(token: &str) -> String {
    format!(
        "# made by hand\napiVersion: v1\nkind: Config\ncurrent-context: eu # the one\n\
         clusters:\n- {{name: eu, cluster: {{server: 'https://eu:6443', tls-server-name: x}}}}\n\
         users:\n- name: eu\n  user:\n    token: {token}\n- name: other\n  user: {{token: t}}\n\
         contexts:\n- {{name: eu, context: {{cluster: eu, user: eu}}}}\n"
    )
}

/// The two clusters. The member rejects the first `fails` requests for a token.
#[derive(Default)]
struct World {
    fails: u32,
    /// The lifetime of tokens that the member issues, in seconds; as requested if 0.
    cuts_to: i64,
    /// Times of requests, with their bodies.
    requests: Vec<(u64, Value)>,
    secret: Value,
    puts: Vec<Value>,
    events: Vec<Value>,
    changed: CancellationToken,
}

struct Clusters {
    world: Arc<Mutex<World>>,
    /// Cancelled when the Secret is written, as the watch of it does.
    changed: CancellationToken,
    start: Instant,
}

impl Clusters {
    fn start(text: &str) -> Self {
        let secret = json!({
            "metadata": { "name": "eu-1", "resourceVersion": "7", "annotations": { "team": "blue" } },
            "data": { "kubeconfig": STANDARD.encode(text), "more": "eA==" },
        });
        let world = World {
            secret,
            ..World::default()
        };
        Self {
            changed: world.changed.clone(),
            world: Arc::new(Mutex::new(world)),
            start: Instant::now(),
        }
    }

    fn client(&self) -> Client {
        let (world, start) = (Arc::clone(&self.world), self.start);
        let service = tower::service_fn(move |request: Request<Body>| {
            let world = Arc::clone(&world);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let seconds = start.elapsed().as_secs();
                let (code, answer) = world.lock().answer(&parts, body, seconds);
                let body = Body::from(answer.to_string().into_bytes());
                Response::builder().status(code).body(body)
            }
        });
        Client::new(service, "default")
    }

    /// Renews for so long what `text` holds.
    async fn renew(&self, text: &str, hours: u64) -> Option<String> {
        self.renew_of(Holder::Controller, text, hours).await
    }

    async fn renew_of(&self, holder: Holder, text: &str, hours: u64) -> Option<String> {
        let start = self.start;
        let clock = Clock::new(move || Timestamp::from_second(EPOCH).unwrap() + start.elapsed());
        let cancel = CancellationToken::new();
        let (recorder, writers) = EventRecorder::new(
            crate::COMPONENT,
            &self.client(),
            clock.clone(),
            Counter::default(),
            &cancel,
        );
        for writer in writers {
            tokio::spawn(writer);
        }
        let registry = Arc::new(Registry::new(
            &crate::config::Config::default(),
            "fedrs-system",
            Arc::default(),
            clock.now(),
        ));
        registry.admit("eu", true, clock.now());
        let mut object = MemberCluster::new("eu", MemberClusterSpec::default());
        object.metadata.uid = Some("u-1".to_owned());
        registry.put_object("eu", Some(object));
        let renewal = Renewal {
            holder,
            member: self.client(),
            host: self.client(),
            namespace: "fedrs-system".into(),
            secret: "eu-1".into(),
            text: text.to_owned(),
            cluster: "eu".into(),
            registry: Arc::clone(&registry),
            recorder,
            clock,
            call_timeout: Duration::from_secs(10),
            cancel: self.changed.clone(),
        };
        let _ended_or_not = timeout(Duration::from_secs(hours * HOUR), renewal.run()).await;
        // Events are written by tasks of their own.
        sleep(Duration::from_secs(1)).await;
        registry.get("eu").unwrap().credentials.renewal_error
    }

    fn reasons(&self) -> Vec<String> {
        let events = &self.world.lock().events;
        events
            .iter()
            .map(|event| event["reason"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl World {
    fn answer(
        &mut self,
        parts: &http::request::Parts,
        body: Value,
        seconds: u64,
    ) -> (StatusCode, Value) {
        let accounts = "/api/v1/namespaces/fedrs-system/serviceaccounts/fedrs-";
        let secret = "/api/v1/namespaces/fedrs-system/secrets/eu-1";
        match (&parts.method, parts.uri.path()) {
            (&Method::POST, path) if path.starts_with(accounts) && path.ends_with("/token") => {
                let lifetime = body["spec"]["expirationSeconds"].as_i64().unwrap();
                self.requests.push((seconds, body));
                if self.fails > 0 {
                    self.fails -= 1;
                    return (
                        StatusCode::FORBIDDEN,
                        json!({ "kind": "Status", "message": "may not", "code": 403 }),
                    );
                }
                let lifetime = if self.cuts_to > 0 {
                    self.cuts_to
                } else {
                    lifetime
                };
                let token = token(EPOCH + i64::try_from(seconds).unwrap(), lifetime);
                (StatusCode::CREATED, json!({ "status": { "token": token } }))
            }
            (&Method::GET, path) if path == secret => (StatusCode::OK, self.secret.clone()),
            (&Method::PUT, path) if path == secret => {
                self.puts.push(body.clone());
                self.changed.cancel();
                (StatusCode::OK, body)
            }
            (_, path) if path.contains("/events") => {
                if parts.method == Method::POST {
                    self.events.push(body.clone());
                }
                (StatusCode::CREATED, body)
            }
            (method, path) => panic!("{method} {path} was asked for"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_when_it_is_due_and_nothing_else_of_the_secret_changes() {
    let old = token(EPOCH, 24 * 3600);
    let text = kubeconfig(&old);
    let clusters = Clusters::start(&text);
    assert_eq!(clusters.renew(&text, 24).await, None);
    let world = clusters.world.lock();
    let [(second, request)] = &world.requests[..] else {
        panic!("once: {:?}", world.requests)
    };
    let due = 24 * HOUR / 5 * 4;
    assert!((due..due + 60).contains(second), "{second}");
    assert_eq!(request["spec"], json!({ "expirationSeconds": 24 * 3600 }));
    let new = token(EPOCH + i64::try_from(*second).unwrap(), 24 * 3600);
    let mut expected = world.secret.clone();
    expected["data"]["kubeconfig"] = json!(STANDARD.encode(kubeconfig(&new)));
    assert_eq!(
        world.puts,
        [expected],
        "with the resourceVersion it was read with"
    );
    drop(world);
    assert_eq!(clusters.reasons(), ["TokenRenewed"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_retried_and_reported_without_the_token() {
    let old = token(EPOCH, 10 * 3600);
    let text = kubeconfig(&old);
    let clusters = Clusters::start(&text);
    clusters.world.lock().fails = 3;
    assert_eq!(
        clusters.renew(&text, 10).await,
        None,
        "in the end it is renewed"
    );
    assert_eq!(
        clusters.reasons(),
        ["TokenRenewalFailed", "TokenRenewed"],
        "the same again is counted"
    );
    let world = clusters.world.lock();
    let times: Vec<u64> = world.requests.iter().map(|(time, _)| *time).collect();
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [30, 60, 120]);
    let message = world.events[0]["message"].as_str().unwrap();
    let words = "failed to renew the token of Secret fedrs-system/eu-1, which expires at 2027-01-15T18:00:00Z: the member \
                 issued no token: may not";
    assert_eq!(message, words);
    assert!(
        world
            .events
            .iter()
            .all(|event| !event.to_string().contains(&old))
    );
}

#[tokio::test(start_paused = true)]
async fn while_it_fails_the_condition_says_so() {
    let text = kubeconfig(&token(EPOCH, 10 * 3600));
    let clusters = Clusters::start(&text);
    clusters.world.lock().fails = u32::MAX;
    let trouble = clusters.renew(&text, 9).await.unwrap();
    assert!(trouble.contains("failed to renew"), "{trouble}");
    let longest = clusters.world.lock().requests.len();
    assert!(longest < 15, "it backs off: {longest}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_issues_no_longer_token_is_reported() {
    let text = kubeconfig(&token(EPOCH, 10 * 3600));
    let clusters = Clusters::start(&text);
    clusters.world.lock().cuts_to = 600;
    let trouble = clusters.renew(&text, 9).await.unwrap();
    assert!(trouble.contains("no token that expires later"), "{trouble}");
    assert_eq!(clusters.world.lock().puts.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_changed_meanwhile_is_left_alone() {
    let text = kubeconfig(&token(EPOCH, 10 * 3600));
    let clusters = Clusters::start(&kubeconfig("somebody-elses"));
    assert_eq!(
        clusters.renew(&text, 9).await,
        None,
        "the watch brings the other one"
    );
    assert_eq!(clusters.world.lock().puts.len(), 0);
    assert_eq!(clusters.reasons(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_renewed_is_reported_once() {
    let person = json!({ "iat": EPOCH, "exp": EPOCH + 3600, "sub": "jane" });
    let person = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(person.to_string()));
    for token in ["opaque", &person] {
        let text = kubeconfig(token);
        let clusters = Clusters::start(&text);
        let trouble = clusters.renew(&text, 9).await.unwrap();
        assert!(
            trouble.contains("can't be renewed: it is not a ServiceAccount token"),
            "{trouble}"
        );
        assert!(!trouble.contains(token), "{trouble}");
        assert_eq!(clusters.reasons(), ["TokenNotRenewable"]);
    }
}

#[test]
fn the_token_alone_changes_in_the_text() {
    let old = token(EPOCH, 600);
    let folded = kubeconfig(&format!(">-\n      {}\n      {}", &old[..9], &old[9..]));
    assert_eq!(
        with_token(&kubeconfig(&old), "a.b.c"),
        Some(kubeconfig("a.b.c"))
    );
    assert_eq!(
        with_token(&folded, "a.b.c"),
        None,
        "not found on one line: reported, not guessed"
    );
    assert_eq!(with_token("no kubeconfig", "a.b.c"), None);
}

#[test]
fn each_error_of_a_renewal_once() {
    let late = || CallError::Deadline(Duration::from_secs(10));
    let errors = [
        RenewalError::Request(late()),
        RenewalError::Answer,
        RenewalError::Write(late()),
        RenewalError::Changed,
        RenewalError::Text,
    ]
    .map(|error| error.to_string());
    insta::assert_snapshot!(errors.join("\n"), @r"
    the member issued no token: no answer within 10s
    the member's response has no token that expires later
    failed to write the new token: no answer within 10s
    the Secret has changed
    failed to put the token into the kubeconfig
    ");
}

#[tokio::test(start_paused = true)]
async fn the_token_of_discovery_is_renewed_and_never_one_of_another_account() {
    for (account, is_renewed) in [
        ("fedrs-discovery-1a2b3c4d", true),
        ("fedrs-controller-1a2b3c4d", false),
        ("default", false),
    ] {
        let text = kubeconfig(&token_of(account, EPOCH, 24 * 3600));
        let clusters = Clusters::start(&text);
        let trouble = clusters.renew_of(Holder::Discovery, &text, 24).await;
        assert_eq!(trouble, None, "Ready says nothing about discovery");
        let reason = if is_renewed {
            "TokenRenewed"
        } else {
            "TokenNotRenewable"
        };
        assert_eq!(clusters.reasons(), [reason], "{account}");
        let requests = clusters.world.lock().requests.len();
        assert_eq!(requests, usize::from(is_renewed), "{account}");
    }
}
