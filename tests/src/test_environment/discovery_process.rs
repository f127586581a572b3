//! The process `fedrs discovery`, with an account of its own on the host, and clients of it.
//!
//! The account has exactly the permissions of the manifests, and in members those that `fedrs join --with-discovery` gives it.

use std::{fs, net::SocketAddr};

use fedrs_api::{EndpointSource, names::DISCOVERY};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TestEnvironment, program::Program, service_account};
use crate::ports::free_ports;

/// A replica of the service, which authorizes clients; it is killed when this is dropped.
pub struct DiscoveryProcess {
    /// Its kubeconfig, its snapshots and its log.
    directory: TempDir,
    grpc: SocketAddr,
    program: Option<Program>,
}

/// For whom a token is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The service.
    Discovery,
    /// The API server.
    ApiServer,
}

impl TestEnvironment {
    /// Starts a replica of the service for the members that have joined ([`Capability::AuditLog`](super::Capability)).
    pub async fn start_discovery(&self) -> DiscoveryProcess {
        let host = &self.real().shared.host;
        let directory = TempDir::with_prefix("fedrs-discovery-").expect("a temporary directory");
        let kubeconfig = service_account::kubeconfig(DISCOVERY, host, host).await;
        let file = directory.path().join("host.yaml");
        fs::write(file, kubeconfig).expect("a file can be written");
        let [grpc] = free_ports().expect("an address is free");
        let mut process = DiscoveryProcess {
            directory,
            grpc,
            program: None,
        };
        process.start();
        process
    }

    /// The token of a new ServiceAccount `name` on the host.
    pub async fn host_token(&self, name: &str, audience: Audience) -> String {
        let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace);
        let account =
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } });
        let made = self.on_host("POST", &accounts, &account).await;
        made.expect("an account can be made");
        let spec = match audience {
            Audience::Discovery => json!({ "audiences": ["fedrs-discovery"] }),
            Audience::ApiServer => json!({}),
        };
        service_account::token(&self.host, (&self.namespace, name), &spec).await
    }

    /// Allows the ServiceAccount `account` to get the EndpointSet `set` on the host.
    pub async fn allow_endpoint_set(&self, account: &str, set: &str) {
        let path = format!(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{}",
            self.namespace
        );
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "get-set" },
            "rules": [{
                "apiGroups": ["fedrs.dev"], "resources": ["endpointsets"], "resourceNames": [set], "verbs": ["get"],
            }],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "get-set" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "get-set" },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": self.namespace }],
        });
        for (kind, object) in [("roles", role), ("rolebindings", binding)] {
            let made = self
                .on_host("POST", &format!("{path}/{kind}"), &object)
                .await;
            made.unwrap_or_else(|error| panic!("{kind}: {error}"));
        }
    }

    /// Creates an EndpointSet of this name, for the federated set `source`.
    pub async fn create_endpoint_set(&self, name: &str, source: &str) {
        let path = format!(
            "/apis/fedrs.dev/v1alpha1/namespaces/{}/endpointsets",
            self.namespace
        );
        let set: Value = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": name },
            "spec": { "source": EndpointSource::of_set(self.kind(), source) },
        });
        let made = self.on_host("POST", &path, &set).await;
        made.expect("an EndpointSet can be made");
    }
}

impl DiscoveryProcess {
    /// Starts it again after it was killed, at the same address.
    pub fn start(&mut self) {
        let grpc = self.grpc.to_string();
        let options = [
            "--grpc",
            &grpc,
            "--http",
            "127.0.0.1:0",
            "--authorization",
            "SubjectAccessReview",
            "--write-status",
        ];
        let options = options.map(str::to_owned);
        self.program = Some(Program::start_discovery(self.directory.path(), &options));
    }

    /// Ends it as Kubernetes does: it writes its snapshots.
    pub async fn terminate(&mut self) {
        let program = self.program.take().expect("it runs");
        let ended = tokio::task::spawn_blocking(|| program.terminate());
        ended.await.expect("the task does not panic");
    }

    /// Kills it, with no chance to write anything.
    pub fn kill(&mut self) {
        self.program = None;
    }

    /// Its address for gRPC.
    pub fn server(&self) -> String {
        format!("http://{}", self.grpc)
    }
}
