//! The status of a MemberCluster, by what is known of the member.

use std::sync::Arc;

use cluster_informer::{ClusterInfo, MemberView, NodeTotals, WorkloadState, WorkloadView};
use fedrs_api::{MemberCluster, MemberClusterSpec, MemberSource, WorkloadKey};
use kube::Client;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    super::{kubeconfig::KubeconfigError, registry::*, source_error::SourceError},
    *,
};
use crate::executor::{MemberAccess, Slots};

/// The view of a member in a test.
#[derive(Clone)]
struct View {
    health: Health,
    sync: SyncState,
    exceeded: Option<String>,
    info: ClusterInfo,
    totals: WorkloadTotals,
    unread: Vec<UnreadNamespace>,
}

impl MemberView for View {
    fn unread_namespaces(&self) -> Vec<UnreadNamespace> {
        self.unread.clone()
    }

    fn observe_scale(&self, _: &WorkloadKey, _: &str, _: i64, _: u32) {}
    fn observe_rejected_scale(&self, _: &WorkloadKey, _: &str, _: i64) {}

    fn workload(&self, _: &WorkloadKey) -> WorkloadView {
        WorkloadView::default()
    }
    fn sync_state(&self) -> SyncState {
        self.sync
    }
    fn sync_state_of(&self, _: &WorkloadKey) -> SyncState {
        self.sync
    }
    fn exceeded_limit(&self) -> Option<String> {
        self.exceeded.clone()
    }
    fn health(&self) -> Health {
        self.health.clone()
    }
    fn cluster_info(&self) -> ClusterInfo {
        self.info.clone()
    }
    fn totals(&self, max_names: usize) -> WorkloadTotals {
        let first = self.totals.first.iter().take(max_names).cloned().collect();
        WorkloadTotals {
            first,
            ..self.totals.clone()
        }
    }
    fn confirm_nodes(&self) {}
    fn confirm_workloads(&self, _: &WorkloadKey) {}
    fn relist(&self, _: &WorkloadKey) {}
    fn observe_write(&self, _: WorkloadState) {}
    fn observe_deletion(&self, _: &WorkloadKey, _: &str) {}
    fn observe_absence(&self, _: &WorkloadKey, _: &str) {}
    fn observe_release(&self, _: &WorkloadKey, _: &str, _: &str) {}
}

fn healthy() -> View {
    View {
        health: Health::Healthy,
        sync: SyncState::Synced,
        exceeded: None,
        info: ClusterInfo::default(),
        totals: WorkloadTotals::default(),
        unread: Vec::new(),
    }
}

fn member(view: Option<View>) -> MemberState {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("nobody"))
    });
    let access = |view| MemberAccess {
        name: "eu".into(),
        client: Client::new(service, "default"),
        store: Arc::new(view),
        slots: Slots::new(1),
    };
    MemberState {
        followed: view.is_some(),
        access: view.map(access),
        ..MemberState::default()
    }
}

fn draining() -> MemberClusterSpec {
    MemberClusterSpec {
        drain: true,
        ..MemberClusterSpec::default()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The conditions: type, status, reason.
fn conditions(member: &MemberState) -> Vec<String> {
    let status = status(&MemberClusterStatus::default(), member, at(100));
    let words = |condition: &Condition| {
        format!(
            "{} {} {}",
            condition.type_, condition.status, condition.reason
        )
    };
    status.conditions.iter().map(words).collect()
}

fn message(member: &MemberState, type_: &str) -> String {
    let status = status(&MemberClusterStatus::default(), member, at(100));
    let found = status
        .conditions
        .into_iter()
        .find(|condition| condition.type_ == type_);
    found.unwrap().message
}

#[tokio::test]
async fn each_state_of_a_member_has_its_reason() {
    let (since, message) = (at(50), "reset".to_owned());
    let with = |health: Health, sync| {
        member(Some(View {
            health,
            sync,
            ..healthy()
        }))
    };
    let failing = Health::Failing {
        since,
        message: message.clone(),
    };
    let unreachable = Health::Unreachable {
        since,
        message: message.clone(),
    };
    let denied = Health::Unauthorized { message };
    let stopped = |error: SourceError| MemberState {
        source_error: Some(error),
        followed: false,
        ..member(Some(healthy()))
    };
    let going_on = |error: SourceError| MemberState {
        source_error: Some(error),
        ..member(Some(healthy()))
    };
    let removed = MemberState {
        removed: Some(since),
        followed: false,
        ..member(Some(healthy()))
    };
    for (member, ready, synced) in [
        (
            member(Some(healthy())),
            "Ready True Healthy",
            "Synced True Synced",
        ),
        (
            member(None),
            "Ready False NotProbed",
            "Synced False NotSynced",
        ),
        (
            with(Health::Unknown, SyncState::NotSynced),
            "Ready False NotProbed",
            "Synced False NotSynced",
        ),
        (
            with(failing, SyncState::Synced),
            "Ready False ProbeFailing",
            "Synced True Synced",
        ),
        (
            with(unreachable, SyncState::Stale { since }),
            "Ready False Unreachable",
            "Synced False Stale",
        ),
        (
            with(denied, SyncState::Stale { since }),
            "Ready False Unauthorized",
            "Synced False Stale",
        ),
        (
            stopped(SourceError::SecretMissing { place: "x".into() }),
            "Ready False SecretMissing",
            "Synced False NotWatched",
        ),
        (
            going_on(SourceError::Invalid {
                place: "x".into(),
                error: KubeconfigError::Token,
            }),
            "Ready False InvalidKubeconfig",
            "Synced True Synced",
        ),
        (
            going_on(SourceError::Duplicate {
                file: "x".into(),
                secret: "y".into(),
            }),
            "Ready False DuplicateSource",
            "Synced True Synced",
        ),
        (removed, "Ready False Removed", "Synced False NotWatched"),
    ] {
        assert_eq!(conditions(&member), [ready, synced]);
    }
}

#[tokio::test]
async fn a_drain_says_how_far_it_is_and_never_that_all_is_gone_where_nobody_knows() {
    let names = ["a", "b", "c", "d", "e"].map(|name| WorkloadKey::new("default", name));
    let totals = |workloads: usize, replicas| WorkloadTotals {
        workloads: u32::try_from(workloads).unwrap(),
        replicas,
        first: names[..workloads].to_vec(),
    };
    let drained = |view: View| MemberState {
        spec: draining(),
        ..member(Some(view))
    };
    assert_eq!(
        conditions(&member(Some(healthy()))).len(),
        2,
        "not drained: no condition"
    );
    let empty = drained(healthy());
    assert_eq!(conditions(&empty)[2], "Drained True Drained");
    let going = drained(View {
        totals: totals(5, 12),
        ..healthy()
    });
    assert_eq!(conditions(&going)[2], "Drained False Draining");
    let words = "12 replicas of 5 sets left: default/a, default/b, default/c and 2 more";
    assert_eq!(message(&going, "Drained"), words);
    let last = drained(View {
        totals: totals(1, 1),
        ..healthy()
    });
    let words = "1 replica of 1 set left: default/a";
    assert_eq!(message(&last, "Drained"), words);
    for view in [
        View {
            health: Health::Unknown,
            ..healthy()
        },
        View {
            sync: SyncState::NotSynced,
            ..healthy()
        },
        View {
            sync: SyncState::Stale { since: at(1) },
            ..healthy()
        },
    ] {
        let unknown = drained(view);
        assert_eq!(conditions(&unknown)[2], "Drained False Unknown");
        assert!(message(&unknown, "Drained").starts_with("the remaining replicas are unknown: "));
    }
}

#[tokio::test]
async fn unknown_fields_keep_their_last_value() {
    let totals = NodeTotals {
        total: 4,
        ready: 3,
        unconfirmed: 0,
        cpu_millis: 11_500,
        memory_bytes: 3 << 30,
        pods: 330,
    };
    let info = |version: Option<&str>, nodes| ClusterInfo {
        version: version.map(str::to_owned),
        nodes,
    };
    let status_after = |before: &MemberClusterStatus, info| {
        status(before, &member(Some(View { info, ..healthy() })), at(100))
    };
    let known = status_after(
        &MemberClusterStatus::default(),
        info(Some("v1.36.4"), NodeInfo::Known(totals)),
    );
    assert_eq!(known.nodes, Some(NodeCounts { total: 4, ready: 3 }));
    let given: Vec<_> = known
        .allocatable
        .iter()
        .map(|(name, amount)| format!("{name} {amount}"))
        .collect();
    assert_eq!(given, ["cpu 11500m", "memory 3Gi", "pods 330"]);
    let restarted = status_after(&known, info(None, NodeInfo::Unknown));
    assert_eq!(restarted, known);
    let forbidden = status_after(&known, info(None, NodeInfo::Forbidden));
    assert_eq!((forbidden.nodes, forbidden.allocatable.len()), (None, 0));
    assert_eq!(forbidden.version.as_deref(), Some("v1.36.4"));
}

#[tokio::test]
async fn the_expiry_of_the_token_and_a_failed_renewal_are_shown() {
    let credentials = Credentials {
        expires: Some(at(500)),
        renewal_error: Some("failed to renew the token".into()),
        source: Some(MemberSource::Secret),
        namespace: None,
    };
    let member = MemberState {
        credentials,
        ..member(Some(healthy()))
    };
    assert_eq!(
        message(&member, "Ready"),
        "the API server answers; failed to renew the token"
    );
    let shown = status(&MemberClusterStatus::default(), &member, at(100));
    assert_eq!(shown.token_expires, Some(Time(at(500))));
    assert_eq!(shown.source, Some(MemberSource::Secret));
}

#[tokio::test]
async fn a_condition_is_urgent_and_progress_is_not() {
    let with = |replicas| {
        let totals = WorkloadTotals {
            workloads: 1,
            replicas,
            first: vec![WorkloadKey::new("default", "a")],
        };
        let member = MemberState {
            spec: draining(),
            ..member(Some(View {
                totals,
                ..healthy()
            }))
        };
        status(&MemberClusterStatus::default(), &member, at(100))
    };
    assert!(with(2) != with(1) && !is_urgent(&with(2), &with(1)));
    assert!(
        is_urgent(&with(1), &with(0)),
        "the end of a drain is urgent"
    );
}

#[tokio::test]
async fn a_condition_says_of_which_spec_it_is() {
    let mut member = member(None);
    member.object.generation = Some(7);
    let status = status(&MemberClusterStatus::default(), &member, at(100));
    let generations = status
        .conditions
        .iter()
        .map(|condition| condition.observed_generation);
    assert!(
        generations
            .into_iter()
            .all(|generation| generation == Some(7))
    );
}

#[tokio::test]
async fn f33_an_outage_of_the_controller_and_a_return_are_reported_as_such() {
    let unreachable = View {
        health: Health::Unreachable {
            since: at(10),
            message: "connection refused".into(),
        },
        ..healthy()
    };
    let mut disconnected = member(Some(unreachable));
    disconnected.outage.disconnected = true;
    let mut returned = member(Some(healthy()));
    returned.outage.stabilizing = Some((at(160), 2));
    let with_nodes = |ready, unconfirmed| {
        let nodes = NodeInfo::Known(NodeTotals {
            total: 3,
            ready,
            unconfirmed,
            ..NodeTotals::default()
        });
        let info = ClusterInfo {
            version: None,
            nodes,
        };
        member(Some(View { info, ..healthy() }))
    };
    let (dead, silent) = (with_nodes(0, 0), with_nodes(2, 2));
    for (member, condition, text) in [
        (
            disconnected,
            "Ready Unknown ControllerDisconnected",
            "no member cluster answers: the controller changes nothing (connection refused)",
        ),
        (
            returned,
            "Ready True Stabilizing",
            "the API server answers; replicas elsewhere stay until 1970-01-01T00:02:40Z, because the cluster was lost \
             2 times within an hour",
        ),
        (
            silent,
            "Ready Unknown NodesUnconfirmed",
            "the API server answers again, and no node has renewed its Lease since",
        ),
        (
            dead,
            "Ready False NoReadyNodes",
            "the API server answers, and none of the nodes is ready",
        ),
    ] {
        assert_eq!(conditions(&member)[0], condition);
        assert_eq!(message(&member, "Ready"), text);
    }
}

#[tokio::test]
async fn s1_a_namespace_that_cannot_be_read_is_named_and_ends_no_drain_of_the_others() {
    let view = View {
        sync: SyncState::Stale { since: at(50) },
        unread: vec![UnreadNamespace {
            name: "shop".to_owned(),
            failure: Some("403 Forbidden: pods is forbidden".to_owned()),
        }],
        ..healthy()
    };
    let mut member = MemberState {
        spec: draining(),
        ..member(Some(view))
    };
    let shown = |member: &MemberState| -> Vec<String> {
        let status = status(&MemberClusterStatus::default(), member, at(100));
        let conditions = status.conditions.iter();
        conditions
            .map(|condition| format!("{} {}", condition.status, condition.message))
            .collect()
    };
    let conditions = shown(&member);
    assert!(conditions[1].contains("in namespace shop (403 Forbidden"));
    assert!(conditions[2].starts_with("True"), "{}", conditions[2]);
    member.occupied.insert("shop".to_owned());
    let conditions = shown(&member);
    assert!(conditions[2].starts_with("False"), "{}", conditions[2]);
    assert!(conditions[2].contains("in namespace shop"));
}

#[tokio::test]
async fn f39_a_member_counts_once_its_first_answer_was_compared_with_what_an_earlier_leader_recorded()
 {
    let config = crate::config::Config::default();
    let registry = Registry::new(&config, "fedrs-system", Arc::default(), at(0));
    let now = tokio::time::Instant::now();
    registry.admit("eu", true, at(0));
    let access = member(Some(healthy())).access.unwrap();
    registry.put_access(access, Credentials::default(), at(0));
    let seen = || {
        let members = registry.snapshot(&WorkloadKey::new("default", "web"), None);
        (
            members[0].health.clone(),
            members[0].stabilizes_at.is_some(),
        )
    };
    assert_eq!(seen(), (Health::Unknown, false));
    registry.observe(now);
    assert_eq!(seen(), (Health::Healthy, false));
    let mut object = MemberCluster::new("eu", MemberClusterSpec::default());
    let status = object.status.get_or_insert_default();
    (
        status.internal.outage_reason,
        status.internal.outage_seconds,
    ) = ("Unreachable".to_owned(), 30);
    assert!(
        registry.put_object("eu", Some(object)),
        "it shows something"
    );
    registry.observe(now);
    assert_eq!(seen(), (Health::Healthy, true));
}
