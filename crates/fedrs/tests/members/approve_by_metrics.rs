//! `config/samples/approve-by-metrics.yaml`: its script, run as its ServiceAccount against a server that answers as the API of
//! Prometheus does. Prometheus itself compares with the threshold: a query of which nothing is left has an empty result.

use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    clusters::wait_until,
    controlled::joined,
    federation::{Federation, Outcome},
};

const SAMPLE: &str = include_str!("../../../../config/samples/approve-by-metrics.yaml");
const DOCUMENT: &str = include_str!("../../../../docs/rollouts.md");
const FEDRS: &str = "fedrs.dev/v1alpha1";
const KIND: &str = "FederatedDeployment";

/// What is left of the query: the canary does well.
const GOOD: (u16, &str) = (
    200,
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1800000000.123,"0.9987"]}]}}"#,
);
/// Nothing is left: too many requests fail, or there are none.
const NOTHING: (u16, &str) = (
    200,
    r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
);
const BAD_QUERY: (u16, &str) = (
    400,
    r#"{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:5: parse error"}"#,
);
const TIMED_OUT: (u16, &str) = (
    503,
    r#"{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}"#,
);
/// A proxy that hides the code.
const ERROR_AS_SUCCESS: (u16, &str) = (
    200,
    r#"{"status":"error","errorType":"execution","error":"expanding series: context canceled"}"#,
);

/// A server that answers as Prometheus does.
struct Prometheus {
    address: String,
    answer: Arc<Mutex<(u16, &'static str)>>,
    /// The first lines of the requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Prometheus {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let prometheus = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            answer: Arc::new(Mutex::new(NOTHING)),
            requests: Arc::default(),
        };
        let (answer, requests) = (prometheus.answer.clone(), prometheus.requests.clone());
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (code, body) = *answer.lock().unwrap();
                let request = respond(connection, code, body).await;
                requests.lock().unwrap().push(request);
            }
        });
        prometheus
    }
}

/// Reads a request, and returns its first line.
async fn respond(mut connection: TcpStream, code: u16, body: &str) -> String {
    let mut lines = BufReader::new(&mut connection).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    while !lines.next_line().await.unwrap().unwrap().is_empty() {}
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} -\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n"
    );
    let response = format!("{head}\r\n{body}");
    connection.write_all(response.as_bytes()).await.unwrap();
    first
}

/// The objects of the sample.
struct Sample(Vec<Value>);

impl Sample {
    fn read() -> Self {
        let documents = SAMPLE.split("\n---\n");
        Self(
            documents
                .map(|text| serde_saphyr::from_str(text).unwrap())
                .collect(),
        )
    }

    fn object(&self, kind: &str) -> &Value {
        let mut objects = self.0.iter();
        objects.find(|object| object["kind"] == kind).unwrap()
    }

    fn container(&self) -> &Value {
        &self.object("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    }

    /// The value of an environment variable of the container.
    fn variable(&self, name: &str) -> &str {
        let variables = self.container()["env"].as_array().unwrap();
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.unwrap()["value"].as_str().unwrap()
    }

    /// Creates its objects on the host, and a kubeconfig of its ServiceAccount. The test itself runs the job.
    async fn install(&self, federation: &Federation) {
        for object in self.0.iter().filter(|object| object["kind"] != "CronJob") {
            federation.host.create(object.clone());
        }
        let account = self.object("ServiceAccount")["metadata"]["name"].as_str();
        let client = Client::new(federation.host.sim.service(), "default");
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
        let wanted = TokenRequest {
            spec: TokenRequestSpec::default(),
            ..TokenRequest::default()
        };
        let parameters = PostParams::default();
        let created = accounts.create_token_request(account.unwrap(), &parameters, &wanted);
        let mut kubeconfig = federation.host.server.kubeconfig().clone();
        kubeconfig.token = created.await.unwrap().status.unwrap().token;
        federation.write("job.yaml", &kubeconfig.to_yaml());
        let container = self.container();
        assert_eq!(container["command"], json!(["sh", "-ec"]));
        let script = container["args"][0].as_str().unwrap();
        assert!(DOCUMENT.contains(script), "the document shows the script");
        federation.write("job.sh", script);
    }
}

/// A federation in which the job may approve the step `others` of `web`.
struct World {
    federation: Federation,
    prometheus: Prometheus,
    sample: Sample,
}

impl World {
    async fn start() -> Self {
        let federation = joined(&["eu-west", "us-east"]).await;
        let steps = json!([
            { "name": "canary", "clusters": ["eu-west"], "soakSeconds": 1 },
            { "name": "others", "clusters": ["*"], "approval": "Before" },
        ]);
        federation.host.create(json!({
            "apiVersion": FEDRS, "kind": KIND, "metadata": { "namespace": "default", "name": "web" },
            "spec": {
                "replicas": 4, "selector": { "matchLabels": { "app": "web" } }, "template": template(1),
                "placement": { "rebalance": true, "clusters": { "*": { "weight": 1 } } }, "rollout": { "steps": steps },
            },
        }));
        wait_until("both members run two replicas", || {
            ["eu-west", "us-east"].iter().all(|member| {
                let deployment =
                    federation
                        .member(member)
                        .get("apps/v1", "Deployment", "default", "web");
                deployment.is_some_and(|found| found["status"]["availableReplicas"] == 2)
            })
        })
        .await;
        federation.wait_for_kind(KIND, "web").await;
        let sample = Sample::read();
        sample.install(&federation).await;
        Self {
            federation,
            prometheus: Prometheus::start().await,
            sample,
        }
    }

    /// Runs the script of the job once; Prometheus answers with `answer`.
    async fn run(&self, answer: (u16, &'static str)) -> Outcome {
        *self.prometheus.answer.lock().unwrap() = answer;
        self.run_with(&self.prometheus.address).await
    }

    async fn run_with(&self, prometheus: &str) -> Outcome {
        let programs = Path::new(env!("CARGO_BIN_EXE_fedrs")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", programs.display());
        let environment = [
            ("PATH", &*path),
            ("KUBECONFIG", "job.yaml"),
            ("PROMETHEUS", prometheus),
            ("QUERY", self.sample.variable("QUERY")),
            ("no_proxy", "127.0.0.1"),
        ];
        let shell = Path::new("sh");
        self.federation.run(shell, &environment, "-e job.sh").await
    }

    fn web(&self) -> Value {
        let web = self.federation.host.get(FEDRS, KIND, "default", "web");
        web.unwrap()
    }

    fn modify(&self, kind: (&str, &str), name: &str, change: impl Fn(&mut Value)) {
        let api = self.federation.host.api();
        let kind = api.kind_of(kind.0, kind.1).unwrap();
        api.modify(&kind, None, "default", name, change).unwrap();
    }

    /// Changes the template, and waits until the step `others` waits for its approval. Returns the revision.
    async fn roll_out_until_approval(&self, version: u32) -> Value {
        self.modify((FEDRS, KIND), "web", |web| {
            web["spec"]["template"] = template(version);
        });
        wait_until("the step waits for its approval", || self.waits()).await;
        self.web()["status"]["updateRevision"].clone()
    }

    /// Whether a step waits for the approval of the current template.
    fn waits(&self) -> bool {
        let web = self.web();
        let conditions = web["status"]["conditions"].as_array().cloned();
        let waits = |condition: &Value| condition["reason"] == "WaitingForApproval";
        let is_observed = web["status"]["observedGeneration"] == web["metadata"]["generation"];
        is_observed && conditions.iter().flatten().any(waits)
    }

    /// The versions that the members' Deployments have.
    fn versions(&self) -> [u64; 2] {
        ["eu-west", "us-east"].map(|member| {
            let member = self.federation.member(member);
            let deployment = member.get("apps/v1", "Deployment", "default", "web");
            let containers = &deployment.unwrap()["spec"]["template"]["spec"]["containers"];
            let image = containers[0]["image"].as_str().unwrap();
            image.strip_prefix("web:").unwrap().parse().unwrap()
        })
    }

    fn approvals(&self) -> Value {
        self.web()["spec"]["rollout"]["approvals"].clone()
    }
}

fn template(version: u32) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": format!("web:{version}") }] },
    })
}

/// Whether the script can run here.
fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn l14_a_job_approves_a_step_by_metrics_for_one_revision() {
    if !has_curl() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let world = World::start().await;
    let outcome = world.run(GOOD).await.succeeded();
    outcome.contains(&["no step waits for an approval"]);
    assert_eq!(world.approvals(), Value::Null);

    let second = world.roll_out_until_approval(2).await;
    for (answer, code, text) in [
        (NOTHING, 0, "not approved: "),
        (ERROR_AS_SUCCESS, 0, "not approved: "),
        (BAD_QUERY, 22, "400"),
        (TIMED_OUT, 22, "503"),
    ] {
        world.run(answer).await.ended(code).contains(&[text]);
    }
    // Nobody listens.
    world.run_with("http://127.0.0.1:1").await.ended(7);
    for request in world.prometheus.requests.lock().unwrap().iter() {
        // Versions of curl differ in the case of the digits.
        let expected = "get /api/v1/query?query=sum%28rate%28http_requests_total%7b";
        assert!(request.to_lowercase().starts_with(expected), "{request}");
    }
    assert_eq!(world.approvals(), Value::Null);
    assert!(world.waits());
    assert_eq!(world.versions(), [2, 1]);

    let outcome = world.run(GOOD).await.succeeded();
    outcome.contains(&["step others approved for revision"]);
    let approval = |revision: &Value| json!({ "step": "others", "revision": revision });
    assert_eq!(world.approvals(), json!([approval(&second)]));
    wait_until("all clusters have version 2", || world.versions() == [2, 2]).await;
    world.federation.wait_for_kind(KIND, "web").await;

    // The approval of the second revision is still there.
    let third = world.roll_out_until_approval(3).await;
    world.run(NOTHING).await.succeeded();
    assert!(world.waits());
    assert_eq!(world.versions(), [3, 2]);
    world.run(GOOD).await.succeeded();
    let both = json!([approval(&second), approval(&third)]);
    assert_eq!(world.approvals(), both);
    wait_until("all clusters have version 3", || world.versions() == [3, 3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_needs_each_permission_that_it_has() {
    if !has_curl() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let world = World::start().await;
    world.roll_out_until_approval(2).await;
    let role = world.sample.object("Role");
    let name = role["metadata"]["name"].as_str().unwrap();
    let verbs = role["rules"][0]["verbs"].as_array().unwrap();
    assert_eq!(role["rules"].as_array().unwrap().len(), 1);
    for verb in verbs {
        let rest: Vec<_> = verbs.iter().filter(|other| *other != verb).collect();
        let change = |role: &mut Value| role["rules"][0]["verbs"] = json!(rest);
        world.modify(("rbac.authorization.k8s.io/v1", "Role"), name, change);
        let outcome = world.run(GOOD).await.failed();
        outcome.contains(&[&format!("cannot {} resource", verb.as_str().unwrap())]);
    }
    assert_eq!(world.approvals(), Value::Null);
}
