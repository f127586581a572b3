//! A host and clusters that can join it, and the operations of the library on them.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf, time::Duration};

use fedrs_api::ClusterType;
use membership::{
    WriteMode,
    cluster_client::ClusterClient,
    drain::Drain,
    join::{JoinNamespaces, JoinRequest, join},
    kubeconfig::KubeconfigSource,
    progress::{Progress, Reporter, Warning},
    uninstall::{Uninstall, UninstallRequest},
    unjoin::{Unjoin, UnjoinMode, UnjoinRequest},
};
use serde_json::{Value, json};
use sim_cluster::{Kubeconfig, User};
use tempfile::TempDir;

use crate::clusters::{Cluster, NAMESPACE};

/// A host, clusters that can join it, and their kubeconfigs in a directory.
pub(crate) struct Federation {
    directory: TempDir,
    pub(crate) host: Cluster,
    members: BTreeMap<String, Cluster>,
}

/// What an operation reported, and whether it succeeded.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Progress, warnings, and the error, as lines.
    pub(crate) text: String,
    failed: bool,
}

impl Reporter for Outcome {
    fn progress(&mut self, progress: Progress) {
        let _ = writeln!(self.text, "{progress}");
    }

    fn warn(&mut self, warning: Warning) {
        let _ = writeln!(self.text, "warning: {warning}");
    }
}

impl Outcome {
    fn end<E: std::fmt::Display>(mut self, result: Result<(), E>) -> Self {
        if let Err(error) = result {
            self.failed = true;
            self.text += &error.to_string();
        }
        self
    }

    /// Checks that the operation succeeded.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert!(!self.failed, "{}", self.text);
        self
    }

    /// Checks that the operation failed.
    #[track_caller]
    pub(crate) fn failed(self) -> Self {
        assert!(self.failed, "{}", self.text);
        self
    }

    /// Checks that the text contains all `parts`.
    #[track_caller]
    pub(crate) fn contains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.text.contains(part),
                "{part:?} is not in:\n{}",
                self.text
            );
        }
        self
    }

    /// The number of objects with this result.
    pub(crate) fn count(&self, result: &str) -> usize {
        let lines = self.text.lines();
        lines
            .filter(|line| line.ends_with(result) || line.contains(&format!("{result}: ")))
            .count()
    }
}

impl Federation {
    /// Starts the clusters, with the CRDs on the host.
    pub(crate) async fn start(members: &[&str]) -> Self {
        let federation = Self::without_crds(members).await;
        federation.host.install_crds();
        federation
    }

    /// Starts the clusters.
    pub(crate) async fn without_crds(members: &[&str]) -> Self {
        // Tests of one process share the provider.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut federation = Self {
            directory: tempfile::tempdir().unwrap(),
            host: Cluster::start("host", 0).await,
            members: BTreeMap::new(),
        };
        let kubeconfig = federation.host.server.kubeconfig().to_yaml();
        federation.write("host.yaml", &kubeconfig);
        for name in members {
            let member = Cluster::start(name, 3).await;
            let kubeconfig = member.server.kubeconfig().to_yaml();
            federation.write(&format!("{name}.yaml"), &kubeconfig);
            federation.members.insert((*name).to_owned(), member);
        }
        federation
    }

    /// Starts the clusters, and joins `eu` without a controller.
    pub(crate) async fn joined(members: &[&str]) -> Self {
        let federation = Self::start(members).await;
        federation.join("eu").await.failed();
        federation
    }

    pub(crate) fn member(&self, name: &str) -> &Cluster {
        &self.members[name]
    }

    /// The name of the controller's ServiceAccount in members.
    pub(crate) fn account(&self) -> String {
        format!("{}-{}", fedrs_api::names::CONTROLLER, &self.host_id()[..8])
    }

    /// The uid of the host.
    pub(crate) fn host_id(&self) -> String {
        let system = self.host.get("v1", "Namespace", "", "kube-system").unwrap();
        system["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// The token in the Secret of the member `name`.
    pub(crate) fn stored_token(&self, name: &str) -> Option<String> {
        let kubeconfig = self.host.stored_kubeconfig(name)?;
        let token = kubeconfig["users"][0]["user"]["token"].as_str()?;
        Some(token.to_owned())
    }

    /// The contents of all clusters.
    pub(crate) fn contents(&self) -> Vec<String> {
        let clusters = self.members.values().chain([&self.host]);
        clusters.flat_map(Cluster::contents).collect()
    }

    /// Writes a file to the directory of kubeconfigs.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The kubeconfig file of this name.
    pub(crate) fn kubeconfig(&self, file: &str) -> KubeconfigSource {
        KubeconfigSource {
            file: Some(self.path(file)),
            context: None,
        }
    }

    /// Writes a kubeconfig of a user without permissions in the member `name`.
    pub(crate) fn write_stranger(&self, name: &str) {
        let member = self.member(name);
        let token = "a-stranger";
        let user = User::named("stranger", &["system:authenticated"]);
        member.api().admit_token(token, user);
        let kubeconfig = Kubeconfig {
            token: token.to_owned(),
            ..member.server.kubeconfig().clone()
        };
        self.write("stranger.yaml", &kubeconfig.to_yaml());
    }

    /// A client of the cluster with this kubeconfig file, as a host.
    async fn client(&self, file: &str) -> ClusterClient {
        let source = self.kubeconfig(file);
        let config = source.config(source.read().unwrap()).await.unwrap();
        ClusterClient::new(ClusterType::Host, config).unwrap()
    }

    /// Reads `path` in the member `eu` with the kubeconfig of this Secret on the host.
    pub(crate) async fn get_as(&self, secret: &str, path: &str) -> Result<Value, String> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.send_as(secret, request).await
    }

    /// Requests a token in the member `eu`, with the kubeconfig of this Secret on the host.
    pub(crate) async fn request_token_as(&self, secret: &str, path: &str) -> Result<Value, String> {
        let request =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(request.to_string().into_bytes())
            .unwrap();
        self.send_as(secret, request).await
    }

    async fn send_as(
        &self,
        secret: &str,
        request: http::Request<Vec<u8>>,
    ) -> Result<Value, String> {
        let kubeconfig = self.host.kubeconfig_in(secret).unwrap();
        self.write("stored.yaml", &kubeconfig.to_string());
        let source = self.kubeconfig("stored.yaml");
        let config = source.config(source.read().unwrap()).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let response = client.request(request).await;
        response.map_err(|error| error.to_string())
    }

    /// A join of the member `name`, which does not wait for a controller.
    pub(crate) fn join_request(&self, name: &str) -> JoinRequest {
        JoinRequest {
            name: name.to_owned(),
            labels: BTreeMap::new(),
            federation: String::new(),
            namespace: NAMESPACE.to_owned(),
            namespaces: JoinNamespaces::default(),
            token_duration: Duration::from_secs(168 * 3600),
            timeout: Duration::ZERO,
            mode: WriteMode::Persist,
            member: self.kubeconfig(&format!("{name}.yaml")),
            member_server: None,
            replica_sets: None,
            with_discovery: false,
            allow_insecure: false,
        }
    }

    /// Joins the member `name`.
    pub(crate) async fn join(&self, name: &str) -> Outcome {
        self.join_as(self.join_request(name)).await
    }

    /// Joins a member.
    pub(crate) async fn join_as(&self, request: JoinRequest) -> Outcome {
        self.join_to("host.yaml", request).await
    }

    /// Joins a member to the host with this kubeconfig file.
    pub(crate) async fn join_to(&self, host: &str, request: JoinRequest) -> Outcome {
        let mut outcome = Outcome::default();
        let result = join(&self.client(host).await, request, &mut outcome).await;
        let outcome = outcome.end(result);
        self.assert_no_token_in(&outcome);
        outcome
    }

    /// Removes the member `name`.
    pub(crate) async fn unjoin(&self, name: &str, mode: UnjoinMode) -> Outcome {
        let request = UnjoinRequest {
            name: name.to_owned(),
            mode,
            namespace: NAMESPACE.to_owned(),
        };
        self.unjoin_from("host.yaml", request).await
    }

    /// Removes a member from the host with this kubeconfig file.
    pub(crate) async fn unjoin_from(&self, host: &str, request: UnjoinRequest) -> Outcome {
        let mut outcome = Outcome::default();
        let host = self.client(host).await;
        let result = Box::pin(async {
            let unjoin = Unjoin::prepare(&host, request).await?;
            if let Some(drain) = unjoin.drain(&mut outcome).await? {
                drain.wait(Duration::ZERO, &mut outcome).await?;
            }
            unjoin.remove(&mut outcome).await
        });
        let result = result.await;
        let outcome = outcome.end(result);
        self.assert_no_token_in(&outcome);
        outcome
    }

    /// Removes a member with its own kubeconfig.
    pub(crate) fn as_user(&self, name: &str) -> UnjoinMode {
        UnjoinMode::DrainAsUser(self.kubeconfig(&format!("{name}.yaml")))
    }

    /// Runs an operation on the member `name` that takes a client and a reporter.
    pub(crate) async fn cordon(&self, name: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let host = self.client("host.yaml").await;
        let result = membership::cordon::cordon(&host, name, &mut outcome).await;
        outcome.end(result)
    }

    /// Uncordons the member `name`.
    pub(crate) async fn uncordon(&self, name: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let host = self.client("host.yaml").await;
        let result = membership::cordon::uncordon(&host, name, &mut outcome).await;
        outcome.end(result)
    }

    /// Drains the member `name`, and does not wait.
    pub(crate) async fn drain(&self, name: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let host = self.client("host.yaml").await;
        let result = async {
            let drain = Drain::start(&host, name, &mut outcome).await?;
            drain.wait(Duration::ZERO, &mut outcome).await
        };
        let result = result.await;
        outcome.end(result)
    }

    /// Removes a federation from the host; reports the plan first, and what remains last.
    pub(crate) async fn uninstall(&self, federation: &str, namespace: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let host = self.client("host.yaml").await;
        let request = UninstallRequest {
            federation: federation.to_owned(),
            namespace: namespace.to_owned(),
        };
        let result = async {
            let uninstall = Uninstall::prepare(&host, request, &mut outcome).await?;
            if let Some(plan) = uninstall.plan() {
                let _ = writeln!(outcome.text, "{plan}");
                uninstall.run(&mut outcome).await?;
            }
            let _ = writeln!(outcome.text, "{}", uninstall.remaining());
            Ok::<_, membership::Error>(())
        };
        let result = result.await;
        outcome.end(result)
    }

    /// No operation reports a token, neither a user's nor the controller's.
    fn assert_no_token_in(&self, outcome: &Outcome) {
        let clusters = self.members.values().chain([&self.host]);
        let mut tokens: Vec<String> = clusters
            .map(|cluster| cluster.server.kubeconfig().token.clone())
            .collect();
        let members = self.members.keys();
        tokens.extend(members.filter_map(|name| self.stored_token(name)));
        for token in tokens {
            assert!(
                !outcome.text.contains(&token),
                "a token is in:\n{}",
                outcome.text
            );
        }
    }
}
