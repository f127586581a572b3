//! The kinds of clusters that the scenarios run on, and the clusters that several scenarios share.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use control_plane::{Environment, EnvironmentSpec, Programs, Proxy, request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use super::{
    client::client,
    program::{self, ServedClusters},
    service_account,
    spec::{Capability, NAMESPACE_PREFIX, is_missing},
};

/// The environment variable that selects the kind of clusters.
const CLUSTERS: &str = "FEDRS_CLUSTERS";
/// The names of the members in scenarios.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A kind of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// Embedded clusters on paused time.
    Sim,
    /// Embedded clusters that a `fedrs sim` of the tests serves, in real time.
    Served,
    /// Real control planes that the tests start.
    Local,
    /// The clusters of `DIR/host.yaml` and of the first three files in `DIR/members/`.
    Kubeconfigs(PathBuf),
}

impl ClusterKind {
    /// The kind that `FEDRS_CLUSTERS` names: `sim` (the default), `served`, `local`, or `kubeconfigs:DIR`.
    pub fn from_env() -> Result<Self, String> {
        match std::env::var(CLUSTERS) {
            Ok(text) => Self::parse(&text),
            Err(_) => Ok(Self::Sim),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "sim" || text.is_empty() => Ok(Self::Sim),
            None if text == "served" => Ok(Self::Served),
            None if text == "local" => Ok(Self::Local),
            Some(("kubeconfigs", dir)) if !dir.is_empty() => Ok(Self::Kubeconfigs(dir.into())),
            _ => Err(format!(
                "{CLUSTERS}: {text:?} is not `sim`, `served`, `local` or `kubeconfigs:DIR`"
            )),
        }
    }

    /// Whether clusters of this kind have a capability.
    pub fn supports(&self, need: Capability) -> bool {
        match self {
            Self::Sim => !matches!(
                need,
                Capability::Autoscaler
                    | Capability::ClusterProcesses
                    | Capability::ControllerProcess
                    | Capability::AuditLog
                    | Capability::Kstatus
                    | Capability::Kubectl
            ),
            Self::Served => matches!(need, Capability::ControllerProcess | Capability::Kubectl),
            Self::Local => need != Capability::Embedded,
            Self::Kubeconfigs(_) => {
                matches!(need, Capability::Autoscaler | Capability::ControllerProcess)
            }
        }
    }
}

/// The kubeconfigs of a cluster.
pub(super) struct Route {
    /// For the scenario itself: it bypasses all faults.
    pub(super) direct: String,
    /// For the controller.
    pub(super) controlled: String,
    /// The proxy between the controller and the cluster.
    pub(super) proxy: Option<Proxy>,
}

/// Clusters that several scenarios share.
pub struct Shared {
    pub(super) host: String,
    pub(super) members: BTreeMap<&'static str, Route>,
    pub(super) local: Option<Mutex<Option<Environment>>>,
    served: Mutex<Option<ServedClusters>>,
}

impl Shared {
    /// Starts or finds the clusters of `kind`; none if each scenario has its own.
    pub async fn start(kind: &ClusterKind) -> Result<Option<Self>, String> {
        if *kind != ClusterKind::Sim {
            program::make()?;
        }
        let shared = match kind {
            ClusterKind::Sim => return Ok(None),
            ClusterKind::Local => {
                let programs = Programs::pinned().map_err(|error| error.to_string())?;
                let shared = Self::local().await;
                let shared = shared.map_err(|error| error.to_string())?;
                service_account::make(&*shared.control_planes().await, &programs)?;
                shared
            }
            ClusterKind::Served => {
                let served = ServedClusters::start()?;
                let mut shared = Self::found(served.directory())?;
                shared.served = Mutex::new(Some(served));
                shared
            }
            ClusterKind::Kubeconfigs(dir) => {
                let shared = Self::found(dir)?;
                shared.reject_clusters_in_use().await?;
                shared.install_crds().await?;
                shared
            }
        };
        Ok(Some(shared))
    }

    async fn local() -> control_plane::Result<Self> {
        let spec = EnvironmentSpec {
            audit: true,
            ..EnvironmentSpec::default()
        };
        let control_planes = control_plane::Environment::start_temporary(&spec).await?;
        let mut members = BTreeMap::new();
        for (number, (name, member)) in (1..).zip(NAMES.iter().zip(&control_planes.members)) {
            let proxy =
                Proxy::start(control_planes.subnet().proxy(number), member.address()).await?;
            let route = Route {
                direct: member.kubeconfig().to_owned(),
                controlled: member.kubeconfig_by(proxy.address())?,
                proxy: Some(proxy),
            };
            members.insert(*name, route);
        }
        Ok(Self {
            host: control_planes.host.kubeconfig().to_owned(),
            members,
            local: Some(Mutex::new(Some(control_planes))),
            served: Mutex::default(),
        })
    }

    /// The control planes that the tests started, for scenarios that require their capabilities.
    pub(super) async fn control_planes(&self) -> MappedMutexGuard<'_, Environment> {
        let local = self
            .local
            .as_ref()
            .expect("the kind of clusters has this capability");
        MutexGuard::map(local.lock().await, |environment| {
            environment.as_mut().expect("the process runs")
        })
    }

    fn found(dir: &Path) -> Result<Self, String> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let directory = dir.join("members");
        let entries = fs::read_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "yaml" || extension == "kubeconfig")
        });
        files.sort();
        if files.len() < NAMES.len() {
            return Err(format!("{}: three members are needed", directory.display()));
        }
        let mut members = BTreeMap::new();
        for (name, file) in NAMES.iter().zip(&files) {
            let kubeconfig = read(file)?;
            let route = Route {
                direct: kubeconfig.clone(),
                controlled: kubeconfig,
                proxy: None,
            };
            members.insert(*name, route);
        }
        Ok(Self {
            host: read(&dir.join("host.yaml"))?,
            members,
            local: None,
            served: Mutex::default(),
        })
    }

    /// Scenarios delete all members, and their controller handles every FederatedReplicaSet.
    async fn reject_clusters_in_use(&self) -> Result<(), String> {
        let host = client(&self.host).await;
        let list = async |plural: &str| {
            let path = format!("/apis/fedrs.dev/v1alpha1/{plural}");
            let answer = request(&host, "GET", &path, &Value::Null).await;
            match answer {
                // Without the CRDs nothing is in use.
                answer if is_missing(&answer) => Ok(Value::Null),
                answer => answer.map_err(|error| format!("the host's {plural}: {error}")),
            }
        };
        let in_use = in_use(
            &list("federatedreplicasets").await?,
            &list("memberclusters").await?,
        );
        if in_use.is_empty() {
            return Ok(());
        }
        let in_use = in_use.join(", ");
        Err(format!(
            "the host is in use, and scenarios would change it: it has {in_use}"
        ))
    }

    async fn install_crds(&self) -> Result<(), String> {
        let host = client(&self.host).await;
        for crd in fedrs_api::crd::all() {
            let name = crd.metadata.name.clone().unwrap_or_default();
            let api: kube::Api<CustomResourceDefinition> = kube::Api::all(host.clone());
            let params = kube::api::PatchParams::apply("fedrs-suite").force();
            api.patch(&name, &params, &kube::api::Patch::Apply(&crd))
                .await
                .map_err(|error| format!("CustomResourceDefinition {name}: {error}"))?;
        }
        Ok(())
    }

    /// Stops the control planes that the tests started.
    pub async fn end(&self) {
        if let Some(local) = &self.local {
            drop(local.lock().await.take());
        }
        drop(self.served.lock().await.take());
    }
}

/// Objects of other users: FederatedReplicaSets in other namespaces, and members that were joined.
fn in_use(sets: &Value, members: &Value) -> Vec<String> {
    fn items(list: &Value) -> impl Iterator<Item = &Value> {
        list["items"].as_array().into_iter().flatten()
    }
    let text = |object: &Value, field: &str| {
        let text = object["metadata"][field].as_str();
        text.unwrap_or_default().to_owned()
    };
    let sets = items(sets)
        .filter(|set| !text(set, "namespace").starts_with(NAMESPACE_PREFIX))
        .map(|set| {
            format!(
                "FederatedReplicaSet {}/{}",
                text(set, "namespace"),
                text(set, "name")
            )
        });
    let members = items(members)
        .filter(|member| member["spec"]["secretRef"].is_object())
        .map(|member| format!("MemberCluster {} with a Secret", text(member, "name")));
    sets.chain(members).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clusters_in_use_are_rejected() {
        let set =
            |namespace: &str| json!({ "metadata": { "namespace": namespace, "name": "web" } });
        let member = |spec: Value| json!({ "metadata": { "name": "a" }, "spec": spec });
        let list = |items: &[Value]| json!({ "items": items });
        let left_behind = [set("scenario-77-1")];
        let of_the_directory = [member(json!({}))];
        assert!(in_use(&Value::Null, &Value::Null).is_empty());
        assert!(in_use(&list(&left_behind), &list(&of_the_directory)).is_empty());
        let joined = [member(json!({ "secretRef": { "name": "member-a" } }))];
        assert_eq!(
            in_use(&list(&[set("default")]), &list(&joined)),
            [
                "FederatedReplicaSet default/web",
                "MemberCluster a with a Secret"
            ]
        );
    }

    #[test]
    fn the_kind_of_clusters_is_parsed() {
        assert_eq!(ClusterKind::parse(""), Ok(ClusterKind::Sim));
        assert_eq!(ClusterKind::parse("served"), Ok(ClusterKind::Served));
        assert_eq!(ClusterKind::parse("local"), Ok(ClusterKind::Local));
        let dir = ClusterKind::Kubeconfigs("some/dir".into());
        assert_eq!(ClusterKind::parse("kubeconfigs:some/dir"), Ok(dir));
        for text in ["kind", "kubeconfigs", "kubeconfigs:", "local:x"] {
            assert!(ClusterKind::parse(text).is_err(), "{text}");
        }
    }
}
