//! Deployments: watched once somebody asks for them, in a member that has only what it needs, and in one with controllers.

use fedrs_api::LocalKind;
use serde_json::Value;
use sim_cluster::{DeleteOptions, Kind, Object, SimCluster, WriteOptions, kinds};

use super::*;
use crate::{DeploymentState, WorkloadView};

fn key() -> WorkloadKey {
    WorkloadKey::of_kind(LocalKind::Deployment, "default", "web")
}

#[tokio::test(start_paused = true)]
async fn deployments_cost_nothing_until_somebody_asks_for_them() {
    let world = World::new([
        (DEPLOYMENT_PATH, deployment(1)),
        (SET_PATH, owned_set(1)),
        (POD_PATH, pod("p1", Some("n"))),
    ]);
    world.synced().await;
    let store = &world.informer.store;
    let requests = |world: &World| {
        let member = world.member.lock();
        let uris = member.requests.iter();
        uris.filter(|uri| uri.starts_with(DEPLOYMENT_PATH)).count()
    };
    // Neither a return of the member nor a change of its client asks for them.
    world.informer.client.replace(client(&world.member));
    store.relist_all();
    sleep(Duration::from_mins(10)).await;
    assert_eq!(requests(&world), 0);
    assert_eq!(store.sync_state_of(&key()), SyncState::NotSynced);
    assert_eq!(store.workload(&key()), WorkloadView::default());
    world.changes();

    store.watch(LocalKind::Deployment);
    store.watch(LocalKind::Deployment);
    let is_synced = || store.sync_state_of(&key()) == SyncState::Synced;
    world.until("Deployments are synced", is_synced).await;
    world.settle().await;
    assert_eq!(world.changes(), ["a"], "everything is checked");
    assert_eq!(requests(&world), 2, "a list and a watch");
    let view = store.workload(&key());
    let replicas = view.workload.map(|workload| workload.replicas);
    assert_eq!((replicas, view.pods.active), (Some(1), 1));
    world.member.lock().put(DEPLOYMENT_PATH, deployment(2));
    world.member.lock().put(POD_PATH, pod("p2", Some("n")));
    world.settle().await;
    let mut changes = world.changes();
    changes.sort();
    assert_eq!(
        changes,
        [
            "a FederatedDeployment default/web Drift",
            "a FederatedDeployment default/web Pods"
        ]
    );
    assert_eq!(store.workload(&key()).pods.active, 2);
    world.informer.client.replace(client(&world.member));
    world.settle().await;
    world.until("Deployments are synced again", is_synced).await;
    assert!(requests(&world) > 2, "also by another client");
}

/// A permission that only one kind lacks.
#[tokio::test(start_paused = true)]
async fn f39_a_missing_permission_for_one_kind_leaves_the_other_one_current() {
    for (path, sets, deployments) in [
        (DEPLOYMENT_PATH, SyncState::Synced, SyncState::NotSynced),
        (SET_PATH, SyncState::NotSynced, SyncState::Synced),
    ] {
        let world = World::new([(DEPLOYMENT_PATH, deployment(1)), (SET_PATH, owned_set(1))]);
        world.member.lock().forbidden = vec![path];
        let store = &world.informer.store;
        store.watch(LocalKind::Deployment);
        sleep(Duration::from_mins(5)).await;
        let set = WorkloadKey::new("default", "web");
        let states = || (store.sync_state_of(&set), store.sync_state_of(&key()));
        assert_eq!(states(), (sets, deployments), "{path}");
        assert_eq!(store.sync_state(), sets, "{path}");
        assert_eq!(store.health(), Health::Healthy, "{path}");
        let failures = (store.failure_of(&set), store.failure_of(&key()));
        let fails = |state| state == SyncState::NotSynced;
        let is_failing = (failures.0.is_some(), failures.1.is_some());
        assert_eq!(
            is_failing,
            (fails(sets), fails(deployments)),
            "{failures:?}"
        );
        world.member.lock().forbidden.clear();
        world
            .until("all is synced", || {
                states() == (SyncState::Synced, SyncState::Synced)
            })
            .await;
    }
}

/// A cluster with a Deployment controller, and an informer of it.
struct Cluster {
    cluster: SimCluster,
    informer: MemberInformer,
}

impl Cluster {
    fn new() -> Self {
        let cluster = SimCluster::builder("a").nodes(2).start();
        let api = cluster.api().clone();
        let informer = MemberInformer::spawn(
            "a",
            Client::new(cluster.service(), "default"),
            "fed",
            WatchScope::All,
            Arc::new(Changes(Arc::default())),
            InformerSettings::default(),
            &InformerMetrics::default(),
            Arc::new(move || api.clock().now()),
            1,
            CancellationToken::new(),
        );
        informer.store.watch(LocalKind::Deployment);
        Self { cluster, informer }
    }

    /// Creates the Deployment with our labels, and with these in its template.
    fn create(&self, template: &Value) {
        let object = json!({
            "metadata": { "name": "web", "labels": own_labels() },
            "spec": {
                "replicas": 4,
                "selector": { "matchLabels": { "app": "web" } },
                "strategy": { "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 1 } },
                "template": {
                    "metadata": { "labels": template, "annotations": { "fedrs.dev/template-hash": "00000001" } },
                    "spec": { "containers": [{ "name": "c", "image": "web:1" }] },
                },
            },
        });
        let (api, options) = (self.cluster.api(), WriteOptions::default());
        let created = api.create(&kinds::DEPLOYMENTS, "default", object, &options);
        created.expect("it is valid");
    }

    /// Edits an object, or all of a kind.
    fn edit(&self, kind: &Kind, name: Option<&str>, change: impl Fn(&mut Value)) {
        for object in self.cluster.api().list(kind, Some("default")) {
            let of = object["metadata"]["name"].as_str().expect("a name");
            if name.is_none_or(|name| name == of) {
                let api = self.cluster.api();
                let edited = api.modify(kind, None, "default", of, &change);
                edited.expect("it is valid");
            }
        }
    }

    fn view(&self) -> WorkloadView {
        self.informer.store.workload(&key())
    }

    /// Pods in the cluster that are not being deleted.
    fn pods(&self) -> usize {
        let pods = self.cluster.api().list(&kinds::PODS, Some("default"));
        let pods = pods.iter();
        pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .count()
    }

    async fn until(&self, what: &str, mut holds: impl FnMut(&WorkloadView) -> bool) {
        let wait = async {
            while !holds(&self.view()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(2), wait)
            .await
            .unwrap_or_else(|_| panic!("not {what} within 2 minutes: {:?}", self.view()));
    }
}

fn own_labels() -> Value {
    json!({ "fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web", "app": "web" })
}

fn deployment_of(view: &WorkloadView) -> Option<&DeploymentState> {
    view.workload.as_ref()?.deployment.as_deref()
}

/// Whether all four replicas are available, of the template with this hash.
fn has_rolled_out(view: &WorkloadView, hash: u32) -> bool {
    let available = |set: &WorkloadState| set.available_replicas == 4 && set.status_replicas == 4;
    let progress = deployment_of(view).and_then(|state| state.progressing.as_ref());
    view.workload.as_ref().is_some_and(available)
        && progress.is_some_and(|progress| progress.reason == "NewReplicaSetAvailable")
        && (view.pods.active, view.pods.ready) == (4, 4)
        && view.pods.by_template == [(hash, 4)]
}

#[tokio::test(start_paused = true)]
async fn a_rollout_shows_the_pods_of_both_templates() {
    let member = Cluster::new();
    member.create(&own_labels());
    member
        .until("rolled out", |view| has_rolled_out(view, 1))
        .await;
    let view = member.view();
    let deployment = deployment_of(&view).expect("a Deployment");
    let strategy = deployment.strategy;
    assert_eq!(
        (
            strategy.max_unavailable,
            strategy.max_surge,
            strategy.is_fixed
        ),
        (1, 1, true)
    );
    assert!(deployment.template_is_labeled && deployment.updated_replicas == 4);

    member.edit(&kinds::DEPLOYMENTS, Some("web"), |object| {
        let template = &mut object["spec"]["template"];
        template["spec"]["containers"][0]["image"] = json!("web:2");
        template["metadata"]["annotations"]["fedrs.dev/template-hash"] = json!("00000002");
    });
    let mut both = 0;
    member
        .until("rolled out again", |view| {
            let (old, new) = (view.updated_replicas(1), view.updated_replicas(2));
            both += u32::from(old > 0 && new > 0);
            // Pods are created before those that they replace are removed, and never more than one.
            assert!((3..=5).contains(&view.pods.active), "{view:?}");
            has_rolled_out(view, 2)
        })
        .await;
    assert!(both > 0, "pods of both templates were seen together");

    // Somebody deletes the ReplicaSet, and so its pods.
    let sets = member
        .cluster
        .api()
        .list(&kinds::REPLICA_SETS, Some("default"));
    let newest = |set: &&Object| set["spec"]["replicas"] == 4;
    let name = sets.iter().find(newest).expect("a ReplicaSet")["metadata"]["name"].clone();
    let name = name.as_str().expect("a name");
    let (api, options) = (member.cluster.api(), DeleteOptions::default());
    let deleted = api.delete(&kinds::REPLICA_SETS, "default", name, &options);
    deleted.expect("it exists");
    member
        .until("without the pods that were ready", |view| {
            view.pods.ready < 4
        })
        .await;
    member
        .until("created again", |view| has_rolled_out(view, 2))
        .await;
    assert_eq!(member.pods(), 4);
    assert!(!member.view().has_unlabeled_pods());
}

#[tokio::test(start_paused = true)]
async fn f30_the_pods_of_an_adopted_deployment_count_once_they_and_their_replica_set_are_labeled() {
    let member = Cluster::new();
    member.create(&json!({ "app": "web" }));
    let available = |view: &WorkloadView| {
        let set = view.workload.as_ref();
        set.is_some_and(|set| set.available_replicas == 4)
    };
    member.until("available", available).await;
    let view = member.view();
    assert!(view.has_unlabeled_pods());
    assert_eq!(
        (
            view.pods.active,
            deployment_of(&view).unwrap().template_is_labeled
        ),
        (0, false)
    );
    for kind in [&kinds::REPLICA_SETS, &kinds::PODS] {
        member.edit(kind, None, |object| {
            for (label, value) in own_labels().as_object().expect("labels") {
                object["metadata"]["labels"][label] = value.clone();
            }
        });
    }
    member.until("labeled", |view| view.pods.active == 4).await;
    assert!(!member.view().has_unlabeled_pods());
    let view = member.view();
    let (set, pods) = (view.workload.expect("a Deployment"), member.pods());
    assert_eq!(
        (set.available_replicas, pods),
        (4, 4),
        "nothing was replaced"
    );
}
