//! What the actions of a plan do.

use fedrs_api::{SetKind, labels};
use http::Method;
use serde_json::{Value, json};
use sim_cluster::{NodeSpec, kinds};
use tokio::time::Duration;

use super::{
    faults::{quota_of, secret_reference},
    runner::Runner,
};
use crate::{
    checks::is_of_other_federation,
    join::MEMBERS_PATH,
    plan::{Action, Fault, Selected, recovered_rollout},
    ready_pods::set_of,
    set_kind,
    sim_federation::HOST,
    trace::Topic,
};

/// The collection of Deployments.
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// The collection of pods.
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
/// The collection of quotas.
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

impl Runner {
    /// Carries out one step.
    pub(super) async fn act(&mut self, action: &Action) {
        self.recorder.trace(Topic::Step, action.to_string());
        self.recorder.is_disturbed();
        let time = action.disturbs();
        self.recorder.observe(|observed| observed.disturb(time));
        match action {
            Action::EditSet { set, spec } => {
                self.patch(
                    HOST,
                    &self.federation.set_path(set),
                    &json!({ "spec": spec }),
                )
                .await;
            }
            Action::Approve { set, step } => self.approve(set, step).await,
            Action::DeleteSet { set } => {
                let path = self.federation.set_path(set);
                self.request(HOST, Method::DELETE, &path, &Value::Null)
                    .await;
            }
            Action::CreateSet { set } => self.create_set(set).await,
            Action::EditMember { member, spec } => {
                let path = format!("{MEMBERS_PATH}/{member}");
                self.patch(HOST, &path, &json!({ "spec": spec })).await;
            }
            Action::CreateLocalSet {
                member,
                set,
                replicas,
                same_selector,
            } => {
                self.create_local_set(member, set, *replicas, *same_selector)
                    .await;
            }
            Action::EditLocalSet { member, set, patch } => {
                self.patch(member, &self.federation.local_path(set), patch)
                    .await;
            }
            Action::DeleteLocalSet {
                member,
                set,
                orphan,
            } => {
                let policy = if *orphan { "Orphan" } else { "Background" };
                let options = json!({ "propagationPolicy": policy });
                let path = self.federation.local_path(set);
                self.request(member, Method::DELETE, &path, &options).await;
            }
            Action::TakeOver { member, set } => self.take_over(member, set).await,
            Action::EditPod { pod, patch } => {
                if let Some(path) = self.pod(pod) {
                    self.patch(&pod.member, &path, patch).await;
                }
            }
            Action::DeletePod { pod } => {
                if let Some(path) = self.pod(pod) {
                    self.request(&pod.member, Method::DELETE, &path, &Value::Null)
                        .await;
                }
            }
            Action::Quota { member, pods } => self.quota(member, *pods).await,
            Action::Switch { cluster, fault, on } => self.switch(cluster, *fault, *on).await,
            Action::StepClock { clock, seconds } => self.step_clock(clock, *seconds),
            Action::Node {
                member,
                node,
                fails,
            } => self.node(member, &format!("{member}-node-{node}"), *fails),
            Action::Crash {
                process,
                write,
                after,
                down_ms,
            } => self.crash(*process, *write, *after, *down_ms).await,
            Action::BackUp { cluster } => {
                let backup = self.federation.cluster(cluster).snapshot();
                self.backups.insert(cluster.clone(), backup);
            }
            Action::Restore { cluster } => self.restore(cluster).await,
            Action::Suspend { process, ms } => self.suspend(*process, *ms),
            Action::RestartDiscovery { disk, down_ms } => {
                let down = Duration::from_millis(*down_ms);
                self.restart_discovery(*disk, down).await;
            }
            Action::DelayChanges { member, times, ms } => {
                let delay = Duration::from_millis(*ms);
                self.recorder.delay_changes(member, *times, delay);
                self.count("late changes");
            }
            Action::Work(work) => self.work(work).await,
            Action::Availability(work) => self.availability_work(work).await,
            Action::Slow { .. }
            | Action::Reject { .. }
            | Action::LoseResponses { .. }
            | Action::CutWatches { .. }
            | Action::Compact { .. } => self.fault(action),
        }
    }

    /// A user approves a step for the revision that the status names.
    async fn approve(&self, set: &str, step: &str) {
        let frs = self.frs(set).unwrap_or_default();
        let revision = &frs["status"]["updateRevision"];
        let mut approvals = frs["spec"]["rollout"]["approvals"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let approval = json!({ "step": step, "revision": revision });
        if revision.is_string() && !approvals.contains(&approval) {
            approvals.push(approval);
        }
        let patch = json!({ "spec": { "rollout": { "approvals": approvals } } });
        self.patch(HOST, &self.federation.set_path(set), &patch)
            .await;
    }

    /// A local set of the name of the set, which nobody but its creator knows.
    async fn create_local_set(&self, member: &str, set: &str, replicas: u32, same_selector: bool) {
        let kind = self.federation.kind_of(set);
        let all = json!({ "app": set, "by": "somebody" });
        let selector = if same_selector {
            json!({ "app": set })
        } else {
            all.clone()
        };
        let object = json!({
            "apiVersion": "apps/v1",
            "kind": set_kind::local(kind).kind,
            "metadata": { "name": set },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": selector },
                "template": {
                    "metadata": { "labels": all },
                    "spec": { "containers": [{ "name": "main", "image": "registry.example/main:0" }] },
                },
            },
        });
        let path = set_kind::local_collection(kind);
        self.request(member, Method::POST, &path, &object).await;
    }

    /// A Deployment of the name of the set becomes the controller of its local set. It is paused: it keeps the number of
    /// replicas and creates no ReplicaSet.
    async fn take_over(&self, member: &str, set: &str) {
        if self.federation.kind_of(set) == SetKind::FederatedDeployment {
            let text = "(has no effect: nothing in a member controls Deployments)";
            self.recorder.trace(Topic::Step, text);
            return;
        }
        let local = self.federation.local_set(member, set).unwrap_or_default();
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": set },
            "spec": {
                "paused": true,
                "replicas": local["spec"]["replicas"],
                "selector": local["spec"]["selector"],
                "template": local["spec"]["template"],
            },
        });
        self.request(member, Method::POST, DEPLOYMENTS, &deployment)
            .await;
        let api = self.federation.member(member).api();
        let kind = api.kind_of("apps/v1", "Deployment");
        let deployment = kind.and_then(|kind| api.get(&kind, "default", set).ok());
        let Some(deployment) = deployment else { return };
        let owner = json!([{
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": set,
            "uid": deployment["metadata"]["uid"],
            "controller": true,
        }]);
        // A Deployment releases ReplicaSets that its selector does not match.
        let labels = &local["spec"]["selector"]["matchLabels"];
        let patch = json!({ "metadata": { "labels": labels, "ownerReferences": owner } });
        self.patch(member, &self.federation.local_path(set), &patch)
            .await;
    }

    /// The Deployments of a member, and other federations, give back what they took over.
    async fn give_back(&self, member: &str) {
        let options = json!({ "propagationPolicy": "Orphan" });
        for set in &self.sets {
            if set.kind == SetKind::FederatedReplicaSet {
                let path = format!("{DEPLOYMENTS}/{}", set.name);
                self.request(member, Method::DELETE, &path, &options).await;
            }
            self.give_back_to_federation(member, &set.name).await;
        }
    }

    /// A local ReplicaSet of another federation belongs to the one that its pods belong to.
    pub(super) async fn give_back_to_federation(&self, member: &str, set: &str) {
        let local = self.federation.local_set(member, set);
        if let Some(local) = local.filter(is_of_other_federation) {
            let template = &local["spec"]["template"]["metadata"]["labels"];
            let federation = template[labels::FEDERATION].as_str();
            self.give_to(member, set, federation).await;
        }
    }

    /// Somebody gives a local ReplicaSet to a federation, or to none.
    pub(super) async fn give_to(&self, member: &str, set: &str, federation: Option<&str>) {
        let patch = json!({ "metadata": { "labels": { labels::FEDERATION: federation } } });
        let path = self.federation.local_path(set);
        self.patch(member, &path, &patch).await;
    }

    pub(super) async fn patch(&self, cluster: &str, path: &str, patch: &Value) {
        self.request(cluster, Method::PATCH, path, patch).await;
    }

    /// The path of a pod.
    pub(super) fn pod(&self, pod: &Selected) -> Option<String> {
        let pods = self
            .federation
            .member(&pod.member)
            .api()
            .list(&kinds::PODS, Some("default"));
        let is_of_set = |object: &&sim_cluster::Object| set_of(object) == Some(pod.set.as_str());
        let pods: Vec<_> = pods.iter().filter(is_of_set).collect();
        let Some(found) = pod.index.checked_rem(pods.len()).map(|index| pods[index]) else {
            self.recorder
                .trace(Topic::Step, "(has no effect: there are no pods)");
            return None;
        };
        let name = found["metadata"]["name"].as_str().unwrap_or_default();
        Some(format!("{PODS}/{name}"))
    }

    async fn quota(&mut self, member: &str, pods: Option<u32>) {
        let path = format!("{QUOTAS}/limit");
        let key = format!("{member}: quota");
        self.others.remove(&key);
        let exists = self.federation.member(member).api();
        if exists
            .get(&kinds::RESOURCE_QUOTAS, "default", "limit")
            .is_ok()
        {
            self.request(member, Method::DELETE, &path, &Value::Null)
                .await;
        }
        if let Some(pods) = pods {
            self.request(member, Method::POST, QUOTAS, &quota_of(pods))
                .await;
            self.others.insert(key);
            self.count("quotas");
        }
    }

    /// Ends the faults of the host and of the members of the core, undoes what keeps sets from their replicas, and adds
    /// capacity.
    pub(super) async fn recover(&mut self, core: &[String]) {
        let names = core.join(", ");
        self.recorder
            .trace(Topic::Phase, format!("faults of host and {names} end"));
        for cluster in core.iter().map(String::as_str).chain([HOST]) {
            let lasting: Vec<_> = self
                .faults
                .iter()
                .filter(|fault| fault.0 == cluster)
                .cloned()
                .collect();
            for (cluster, fault) in lasting {
                self.switch(&cluster, fault, false).await;
            }
            self.federation.cluster(cluster).faults().heal();
            // With a clock that is hours behind, tokens are not valid yet.
            self.federation.cluster(cluster).clock().correct();
            self.put_slow(cluster, Duration::ZERO);
        }
        for member in core {
            self.recorder.delay_changes(member, 0, Duration::ZERO);
            self.quota(member, None).await;
            self.give_back(member).await;
            if !self.has(member, Fault::NoPower) {
                self.start_nodes(member);
            }
            let prefix = format!("{member}: ");
            self.others.retain(|fault| !fault.starts_with(&prefix));
            let node = NodeSpec::new(format!("{member}-large")).pods(300);
            let _ = self.federation.member(member).add_node(&node);
            let path = format!("{MEMBERS_PATH}/{member}");
            let mut open = json!({ "unschedulable": false, "drain": false, "namespaces": null });
            if self.federation.joined.contains(member) {
                // A restored host may be of when there was none.
                open["secretRef"] = secret_reference(member);
            }
            self.patch(HOST, &path, &json!({ "spec": open })).await;
        }
        for set in self.sets.clone() {
            let path = self.federation.set_path(&set.name);
            let mut spec = json!({ "paused": false, "placement": { "rebalance": true } });
            if set.kind == SetKind::FederatedDeployment {
                let fields = recovered_rollout();
                spec.as_object_mut()
                    .into_iter()
                    .for_each(|spec| spec.extend(fields.clone()));
            }
            self.patch(HOST, &path, &json!({ "spec": spec })).await;
        }
        self.processes.crash_no_more();
        self.start_controllers();
        self.start_discovery();
    }
}
