//! An embedded cluster that serves its API over HTTPS.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use sim_cluster::{Api, DeleteOptions, Kind, NodeSpec, Server, SimCluster, WriteOptions};

/// The namespace of the controller and its ServiceAccount.
pub(crate) const NAMESPACE: &str = "fedrs-system";
/// The longest time a test waits for a condition.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often a test polls a condition.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// Kinds that a cluster writes without any request.
const VOLATILE_KINDS: [&str; 3] = ["Node", "Lease", "Event"];

/// An embedded cluster and its server.
pub(crate) struct Cluster {
    pub(crate) sim: SimCluster,
    pub(crate) server: Server,
}

impl Cluster {
    /// Starts a cluster with so many nodes.
    pub(crate) async fn start(name: &str, nodes: u32) -> Self {
        let mut builder = SimCluster::builder(name).epoch(Timestamp::now());
        for number in 1..=nodes {
            builder = builder.node(NodeSpec::new(format!("{name}-{number}")).pods(20));
        }
        let sim = builder.start();
        let server = sim.serve(None).await.unwrap();
        let cluster = Self { sim, server };
        // The cluster's controllers complete the first namespaces before a test compares contents.
        wait_until("each namespace is complete", || {
            let count = |kind| cluster.api().list(&cluster.kind("v1", kind), None).len();
            count("ConfigMap") >= count("Namespace")
        })
        .await;
        cluster
    }

    pub(crate) fn api(&self) -> &Api {
        self.sim.api()
    }

    fn kind(&self, api_version: &str, kind: &str) -> Kind {
        self.api().kind_of(api_version, kind).unwrap()
    }

    /// Installs the CRDs of fedrs.
    pub(crate) fn install_crds(&self) {
        for crd in fedrs_api::crd::all() {
            self.create(serde_json::to_value(&crd).unwrap());
        }
    }

    pub(crate) fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Value> {
        let kind = self.kind(api_version, kind);
        let object = self.api().get(&kind, namespace, name).ok()?;
        Some(serde_json::to_value(&*object).unwrap())
    }

    pub(crate) fn create(&self, object: Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = self.kind(text("/apiVersion").unwrap(), text("/kind").unwrap());
        let namespace = text("/metadata/namespace").unwrap_or_default().to_owned();
        self.api()
            .create(&kind, &namespace, object, &WriteOptions::default())
            .unwrap();
    }

    pub(crate) fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) {
        let kind = self.kind(api_version, kind);
        self.api()
            .delete(&kind, namespace, name, &DeleteOptions::default())
            .unwrap();
    }

    /// The uid and version of every object, except for those that the cluster writes without any request.
    pub(crate) fn contents(&self) -> Vec<String> {
        let mut kinds = self.api().kinds();
        kinds.retain(|kind| !VOLATILE_KINDS.contains(&kind.kind.as_str()));
        let objects = kinds.iter().flat_map(|kind| self.api().list(kind, None));
        let versions = objects.map(|object| {
            let metadata = &serde_json::to_value(&*object).unwrap()["metadata"];
            format!(
                "{} {} {}",
                self.sim.name(),
                metadata["uid"],
                metadata["resourceVersion"]
            )
        });
        versions.collect()
    }

    /// The kubeconfig in the Secret of a member, if this is its host.
    pub(crate) fn stored_kubeconfig(&self, member: &str) -> Option<Value> {
        self.kubeconfig_in(&format!("member-{member}"))
    }

    /// The kubeconfig in a Secret of the host.
    pub(crate) fn kubeconfig_in(&self, secret: &str) -> Option<Value> {
        let secret = self.get("v1", "Secret", NAMESPACE, secret)?;
        let encoded: k8s_openapi::ByteString =
            serde_json::from_value(secret["data"]["kubeconfig"].clone()).unwrap();
        let yaml = String::from_utf8(encoded.0).unwrap();
        Some(serde_saphyr::from_str(&yaml).unwrap())
    }

    /// The MemberCluster of a member.
    pub(crate) fn member_cluster(&self, member: &str) -> Option<Value> {
        self.get("fedrs.dev/v1alpha1", "MemberCluster", "", member)
    }
}

/// Waits until `holds`.
pub(crate) async fn wait_until(condition: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(POLL_PERIOD).await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    assert!(waited.is_ok(), "timed out after {TIMEOUT:?}: {condition}");
}
