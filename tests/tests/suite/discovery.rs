//! EndpointSets over all members: what is looked up follows the pods (D1, D2).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use control_plane::ProxyMode;
use discovery::{Catalog, Discovery, Lookup, SetKey};
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use kube::Client;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// A set without replicas: once it is known, the service has seen all that happened to sets of its kind before it was created.
const LATER: &str = "later";

/// Starts the service for the members of the scenario, an EndpointSet `web` of its set `web`, and one of [`LATER`].
async fn start(env: &TestEnvironment) -> Discovery {
    for name in ["web", LATER] {
        env.create_endpoint_set(name, name).await;
    }
    let (host, members) = env.clients();
    let mut discovery = Discovery::start(host, Duration::from_secs(30));
    for (name, client) in members {
        discovery.set_member(name, client);
    }
    discovery.members_known();
    discovery
}

/// The endpoints that new requests may be sent to; none while nothing is answered.
fn ready(catalog: &Catalog, env: &TestEnvironment) -> Option<usize> {
    match catalog.lookup(&SetKey::new(env.namespace(), "web")) {
        Lookup::Found(snapshot) => Some(snapshot.ready().count()),
        _ => None,
    }
}

/// Waits until as many are ready. Returns the fewest on the way, seen every few milliseconds.
async fn until_ready(catalog: &Catalog, env: &TestEnvironment, count: usize) -> usize {
    let fewest = std::cell::Cell::new(usize::MAX);
    env.wait_until("the endpoints are ready", 120, async |env| {
        let ready = ready(catalog, env);
        fewest.set(fewest.get().min(ready.unwrap_or(0)));
        ready == Some(count) && env.is_settled("web").await
    })
    .await;
    fewest.get()
}

pub(crate) async fn d2_endpoints_follow_a_rollout_and_a_scale_down(env: &mut TestEnvironment) {
    let mut set = frs("web", 9, &even(true));
    set["spec"]["strategy"] = json!({ "rollingUpdate": { "maxUnavailable": 2, "maxSurge": 0 } });
    env.run(&set).await;
    let discovery = start(env).await;
    let catalog = Arc::clone(discovery.catalog());
    env.wait_until("all replicas are endpoints", 30, async |env| {
        ready(&catalog, env) == Some(9)
    })
    .await;

    let containers = json!([{ "name": "main", "image": "registry.example/main:2" }]);
    let template = json!({ "spec": { "containers": containers } });
    env.patch("web", &json!({ "spec": { "template": template } }))
        .await;
    env.wait_until("the rollout has begun", 60, async |env| {
        !env.is_settled("web").await
    })
    .await;
    let fewest = until_ready(&catalog, env, 9).await;
    assert!(fewest >= 7, "{fewest} of 9 endpoints");

    env.patch("web", &json!({ "spec": { "replicas": 4 } }))
        .await;
    let fewest = until_ready(&catalog, env, 4).await;
    assert!(fewest >= 4, "{fewest} of 4 endpoints");
    discovery.stop().await;
}

/// The clusters of the endpoints that new requests may be sent to.
fn serving_clusters(catalog: &Catalog, env: &TestEnvironment) -> BTreeSet<String> {
    match catalog.lookup(&SetKey::new(env.namespace(), "web")) {
        Lookup::Found(snapshot) => {
            let clusters = snapshot.ready().map(|one| one.cluster().to_owned());
            clusters.collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The members that the set was lost in.
async fn lost_clusters(env: &TestEnvironment) -> Vec<String> {
    let set = env.frs("web").await;
    let clusters = set["status"]["clusters"].as_array().into_iter().flatten();
    let lost = clusters.filter(|cluster| cluster["state"] == "Lost");
    lost.map(|cluster| cluster["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The service reaches all members, the controller does not.
pub(crate) async fn d2_endpoints_in_lost_clusters_serve_only_if_no_others_do(
    env: &mut TestEnvironment,
) {
    env.run(&frs("web", 12, &even(true))).await;
    let discovery = start(env).await;
    let catalog = Arc::clone(discovery.catalog());
    let all = env.member_names().into_iter().collect::<BTreeSet<_>>();
    env.wait_until("all replicas are endpoints", 30, async |env| {
        ready(&catalog, env) == Some(12) && serving_clusters(&catalog, env) == all
    })
    .await;
    env.set_network("b", ProxyMode::Blackhole);
    env.wait_until("b is left out", 90, async |env| {
        let serving = serving_clusters(&catalog, env);
        assert!(ready(&catalog, env) >= Some(8));
        !serving.contains("b") && ready(&catalog, env) == Some(12)
    })
    .await;
    assert_eq!(lost_clusters(env).await, ["b"]);
    env.set_network("b", ProxyMode::Forward(Duration::ZERO));
    env.wait_until("b serves again", 90, async |env| {
        serving_clusters(&catalog, env) == all && env.is_settled("web").await
    })
    .await;
    let only_b = json!({ "clusters": { "*": { "weight": 0 }, "b": { "weight": 1 } } });
    env.patch("web", &json!({ "spec": { "placement": only_b } }))
        .await;
    let of_b = BTreeSet::from(["b".to_owned()]);
    env.wait_until("all replicas are in b", 90, async |env| {
        serving_clusters(&catalog, env) == of_b && env.is_settled("web").await
    })
    .await;
    env.set_network("b", ProxyMode::Blackhole);
    env.wait_until("b is lost", 90, async |env| {
        lost_clusters(env).await == ["b"]
    })
    .await;
    env.create(&frs(LATER, 0, &even(true))).await;
    env.wait_until("the service has seen that", 30, async |env| {
        let later = catalog.lookup(&SetKey::new(env.namespace(), LATER));
        !matches!(later, Lookup::NoSource)
    })
    .await;
    assert_eq!(ready(&catalog, env), Some(12));
    env.set_network("b", ProxyMode::Forward(Duration::ZERO));
    discovery.stop().await;
}

/// How old an answer is that a client uses: it is asked for anew each time, and used later.
const CLIENT_DELAY: usize = 10;
/// Between two requests of the client.
const REQUEST_INTERVAL: Duration = Duration::from_millis(100);

/// A client of the set `web` that sends requests to one replica after the other, of an answer that is a second old.
struct Traffic {
    members: BTreeMap<String, Client>,
    namespace: String,
    catalog: Arc<Catalog>,
}

/// Cluster and name of a pod.
type Replica = (String, String);

impl Traffic {
    fn start(
        env: &TestEnvironment,
        catalog: &Arc<Catalog>,
        end: CancellationToken,
    ) -> JoinHandle<Requests> {
        let traffic = Self {
            members: env.clients().1.clone(),
            namespace: env.namespace().to_owned(),
            catalog: Arc::clone(catalog),
        };
        tokio::spawn(traffic.send(end))
    }

    async fn send(self, end: CancellationToken) -> Requests {
        let mut answers = VecDeque::from([self.replicas()]);
        let mut requests = Requests::default();
        for number in 0.. {
            if end.is_cancelled() {
                break;
            }
            let answer = &answers[0];
            let (cluster, pod) = &answer[number % answer.len()];
            requests.sent += 1;
            if !self.serves(cluster, pod).await {
                requests.failed.push(format!("{cluster}/{pod}"));
            }
            answers.push_back(self.replicas());
            if answers.len() > CLIENT_DELAY {
                answers.pop_front();
            }
            sleep(REQUEST_INTERVAL).await;
        }
        requests
    }

    /// The replicas that new requests may be sent to.
    fn replicas(&self) -> Vec<Replica> {
        let Lookup::Found(snapshot) = self.catalog.lookup(&SetKey::new(&*self.namespace, "web"))
        else {
            panic!("the set is known");
        };
        let replicas = snapshot
            .ready()
            .map(|one| (one.cluster().to_owned(), one.name().to_owned()));
        replicas.collect()
    }

    /// Whether the pod runs, its containers too, and is not shut down.
    async fn serves(&self, cluster: &str, pod: &str) -> bool {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}", self.namespace);
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let found = self.members[cluster].request::<Value>(request).await;
        let are_ready = |pod: &Value| {
            let containers = pod["status"]["containerStatuses"].as_array();
            let mut containers = containers.into_iter().flatten();
            containers.all(|container| container["ready"] == true)
        };
        found.is_ok_and(|pod| pod["metadata"]["deletionTimestamp"].is_null() && are_ready(&pod))
    }
}

/// What became of the requests.
#[derive(Debug, Default)]
struct Requests {
    sent: usize,
    failed: Vec<String>,
}

/// A set of 9 replicas whose clients have 4 seconds to leave those that go.
fn draining() -> Value {
    let mut set = frs("web", 9, &even(true));
    set["spec"]["drainSeconds"] = 4.into();
    set
}

/// The service, and a client that sends requests all the time.
struct Requesting {
    discovery: Discovery,
    traffic: JoinHandle<Requests>,
    end: CancellationToken,
}

impl Requesting {
    /// Runs the set of 9 replicas.
    async fn start(env: &TestEnvironment, set: &Value) -> Self {
        env.run(set).await;
        let discovery = start(env).await;
        let catalog = discovery.catalog();
        env.wait_until("all replicas are endpoints", 30, async |env| {
            ready(catalog, env) == Some(9)
        })
        .await;
        let end = CancellationToken::new();
        let traffic = Traffic::start(env, catalog, end.clone());
        Self {
            discovery,
            traffic,
            end,
        }
    }

    /// No request has failed.
    async fn end(self) {
        self.end.cancel();
        let requests = self.traffic.await.unwrap();
        assert!(requests.sent >= 50, "{requests:?}");
        assert!(requests.failed.is_empty(), "{requests:?}");
        self.discovery.stop().await;
    }
}

pub(crate) async fn d2_no_request_fails_while_replicas_move(env: &mut TestEnvironment) {
    let requesting = Requesting::start(env, &draining()).await;
    let catalog = Arc::clone(requesting.discovery.catalog());

    let away_from_c =
        json!({ "clusters": { "*": { "weight": 0 }, "a": { "weight": 1 }, "b": { "weight": 2 } } });
    env.patch("web", &json!({ "spec": { "placement": away_from_c } }))
        .await;
    env.wait_until("all replicas have left c", 120, async |env| {
        env.pods("c").await.is_empty() && env.is_settled("web").await
    })
    .await;
    assert_eq!(until_ready(&catalog, env, 9).await, 9);
    env.patch("web", &json!({ "spec": { "replicas": 4 } }))
        .await;
    assert!(until_ready(&catalog, env, 4).await >= 4);
    env.wait_until("the others are gone", 60, async |env| {
        let mut pods = 0;
        for member in env.member_names() {
            pods += env.pods(&member).await.len();
        }
        pods == 4
    })
    .await;
    requesting.end().await;
}

/// In place, and anew: pods take no requests while their containers restart, or once they are shut down.
pub(crate) async fn d2_no_request_fails_while_local_replica_sets_roll(env: &mut TestEnvironment) {
    let mut set = draining();
    set["spec"]["strategy"] = json!({ "rollingUpdate": { "maxUnavailable": 3, "maxSurge": 0 } });
    let requesting = Requesting::start(env, &set).await;
    let catalog = Arc::clone(requesting.discovery.catalog());
    let in_place = json!({ "name": "main", "image": "registry.example/main:2" });
    let mut anew = in_place.clone();
    anew["env"] = json!([{ "name": "MODE", "value": "other" }]);
    for container in [in_place, anew] {
        let template = json!({ "spec": { "containers": [container] } });
        env.patch("web", &json!({ "spec": { "template": template } }))
            .await;
        env.wait_until("the rollout has begun", 60, async |env| {
            !env.is_settled("web").await
        })
        .await;
        assert!(until_ready(&catalog, env, 9).await >= 6);
    }
    requesting.end().await;
}
