//! A small discovery service, which the tests start and kill.

use std::{net::SocketAddr, pin::Pin, sync::Arc};

use discovery_proto::{
    Changes, Endpoint, EndpointKey, Endpoints, Port, Problem, ReplicateRequest, ReplicateResponse,
    ResolveRequest, ResolveResponse, SetId, WatchRequest, WatchResponse,
    discovery_server::{Discovery, DiscoveryServer},
    problem::Reason,
    watch_response::Event,
};
use futures::{Stream, StreamExt, stream};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tonic::{
    Request, Response, Status,
    transport::{Server as Transport, server::TcpIncoming},
};

/// What the service says of each set, in turn.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The pods, and the version.
    Pods(u64, &'static [&'static str]),
    Problem(Reason),
    /// Changes that begin at a version that nobody has.
    Misfit,
}

/// A running service, whose connections end when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    answer: watch::Sender<Answer>,
    /// The versions that clients had when they began to watch, in the order of the calls.
    known: watch::Receiver<Vec<u64>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), answer).await
    }

    pub(crate) async fn start_at(address: SocketAddr, answer: Answer) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, answers) = watch::channel(answer);
        let (calls, known) = watch::channel(Vec::new());
        let service = DiscoveryServer::new(Service {
            answers,
            calls: Arc::new(calls),
        });
        let serving = Transport::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async { serving.await.unwrap() });
        Self {
            address,
            answer,
            known,
            task,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn say(&self, answer: Answer) {
        self.answer.send_replace(answer);
    }

    /// The versions that clients had in the first `count` calls.
    pub(crate) async fn known_versions(&self, count: usize) -> Vec<u64> {
        let mut known = self.known.clone();
        let enough = known.wait_for(|known| known.len() >= count);
        super::within("calls of a client", enough)
            .await
            .unwrap()
            .clone()
    }

    /// Ends all streams, and listens no more.
    pub(crate) async fn kill(self) {
        let Self { answer, task, .. } = self;
        // Each stream ends with its answers: connections are tasks of their own.
        drop(answer);
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
}

struct Service {
    answers: watch::Receiver<Answer>,
    calls: Arc<watch::Sender<Vec<u64>>>,
}

#[tonic::async_trait]
impl Discovery for Service {
    type ReplicateStream = stream::Empty<Result<ReplicateResponse, Status>>;

    async fn replicate(
        &self,
        _: Request<ReplicateRequest>,
    ) -> Result<Response<Self::ReplicateStream>, Status> {
        Err(Status::unimplemented("resolvers do not ask for it"))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

    async fn resolve(
        &self,
        _: Request<ResolveRequest>,
    ) -> Result<Response<ResolveResponse>, Status> {
        Err(Status::unimplemented("the client watches"))
    }

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let sets = request.into_inner().sets;
        let versions = sets.iter().map(|set| set.known_version);
        self.calls.send_modify(|calls| calls.extend(versions));
        let streams = sets.into_iter().map(|set| {
            let id = set.set.unwrap_or_default();
            follow(id, set.known_version, self.answers.clone()).boxed()
        });
        let responses = stream::select_all(streams.collect::<Vec<_>>());
        Ok(Response::new(responses.map(Ok).boxed()))
    }
}

/// The first response at once, the next ones at each change of the answer.
fn follow(
    set: SetId,
    known: u64,
    mut answers: watch::Receiver<Answer>,
) -> impl Stream<Item = WatchResponse> {
    answers.mark_changed();
    stream::unfold((answers, known), move |(mut answers, known)| {
        let set = set.clone();
        async move {
            answers.changed().await.ok()?;
            let answer = answers.borrow_and_update().clone();
            let (event, known) = event(&answer, known);
            let response = WatchResponse {
                set: Some(set),
                event: Some(event),
                stale_members: Vec::new(),
            };
            Some((response, (answers, known)))
        }
    })
}

/// The event for a client that has the version `known`, and the version that it has then.
fn event(answer: &Answer, known: u64) -> (Event, u64) {
    let changes = |from_version, version| {
        Event::Changes(Changes {
            from_version,
            version,
            ..Changes::default()
        })
    };
    match *answer {
        Answer::Pods(version, _) if version == known => (changes(known, known), known),
        Answer::Pods(version, pods) => {
            let endpoints = pods.iter().map(|pod| endpoint(pod)).collect();
            (Event::Endpoints(Endpoints { version, endpoints }), version)
        }
        Answer::Problem(reason) => {
            let message = format!("{reason:?}");
            let reason = reason.into();
            (Event::Problem(Problem { reason, message }), known)
        }
        Answer::Misfit => (changes(u64::MAX - 1, u64::MAX), known),
    }
}

/// A ready pod; its name may be its address and port.
pub(crate) fn endpoint(pod: &str) -> Endpoint {
    let address = pod.parse::<SocketAddr>();
    let address = address.unwrap_or_else(|_| "10.0.0.1:80".parse().unwrap());
    Endpoint {
        key: Some(EndpointKey {
            cluster: "eu".to_owned(),
            pod: pod.to_owned(),
        }),
        addresses: vec![address.ip().to_string()],
        ports: vec![Port {
            name: "http".to_owned(),
            number: address.port().into(),
        }],
        ready: true,
        serving: true,
        ..Endpoint::default()
    }
}
