//! Shows every text of the crate once.

use std::{io, time::Duration};

use fedrs_api::{MemberCluster, MemberConditionType, ObjectKey, SetKind};
use k8s_openapi::{
    api::core::v1::{Namespace, Secret},
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::*;
use crate::{
    Error, SetRef,
    controller_lease::ControllerState,
    drain::pending::{PendingReplicas, PendingSet},
    explain::{Explanation, Observation, RolloutUse},
    join::Problem,
    kubeconfig::KubeconfigError,
    uninstall::{Remaining, SetCounts, UninstallPlan},
};

fn eu() -> String {
    "eu".to_owned()
}

fn member_cluster() -> ObjectRef {
    ObjectRef::cluster_scoped::<MemberCluster>("eu")
}

fn namespace() -> ObjectRef {
    ObjectRef::cluster_scoped::<Namespace>("fedrs-system")
}

fn lines(texts: impl IntoIterator<Item = impl ToString>) -> String {
    let texts: Vec<_> = texts.into_iter().map(|text| text.to_string()).collect();
    texts.join("\n")
}

fn applied(result: ApplyResult, mode: WriteMode, token: Option<NewToken>) -> Progress {
    Progress::Applied {
        cluster: ClusterType::Host,
        object: ObjectRef::namespaced::<Secret>("fedrs-system", "member-eu"),
        result,
        mode,
        token,
    }
}

fn token(replaces: Option<TokenProblem>) -> NewToken {
    NewToken {
        account: "fedrs-controller-1a2b3c4d".to_owned(),
        expires: Timestamp::UNIX_EPOCH,
        replaces,
    }
}

fn kept(reason: KeepReason) -> Progress {
    Progress::Kept {
        cluster: ClusterType::Member,
        object: namespace(),
        reason,
    }
}

fn not_ready() -> NotReady {
    NotReady::Condition {
        condition: MemberConditionType::Ready,
        status: "False".to_owned(),
        reason: "Unreachable".to_owned(),
        message: "connection refused".to_owned(),
    }
}

fn running() -> ControllerState {
    ControllerState::Running("pod-1".to_owned())
}

fn hint(not_ready: &NotReady, controller: &ControllerState) -> String {
    not_ready.hint("eu", "fedrs-system", controller)
}

fn stored_kubeconfig(place: &'static str) -> Error {
    Error::StoredKubeconfig {
        place,
        reason: "the server is not an https:// address".to_owned(),
    }
}

fn invalid_kubeconfig(file: &str) -> Error {
    Error::MemberKubeconfig(KubeconfigError::Invalid {
        file: file.to_owned(),
        reason: federation_controller::members::kubeconfig::KubeconfigError::NoContext,
    })
}

fn ready(excluded: Option<&'static str>) -> ReadyMember {
    ReadyMember {
        name: eu(),
        version: Some("v1.36.0".to_owned()),
        nodes: Some((2, 3)),
        excluded,
    }
}

fn pending_replicas() -> DrainPending {
    let set = |name: &str, blocked_by: &[&str]| PendingSet {
        set: ObjectKey::new("default", name),
        replicas: 1,
        blocked_by: blocked_by.iter().map(ToString::to_string).collect(),
    };
    let blocked_by = ["no cluster can run 2 replicas", "spec.paused is true"];
    let mut sets = vec![set("web", &[]), set("shop", &blocked_by)];
    sets.extend(["a", "b", "c", "d"].map(|name| set(name, &[])));
    DrainPending::Replicas(PendingReplicas {
        not_ready: Some("connection refused".to_owned()),
        sets,
    })
}

#[test]
fn all_join_texts() {
    let (persist, dry_run) = (WriteMode::Persist, WriteMode::DryRun);
    let progress = [
        Progress::Connected {
            cluster: ClusterType::Host,
            url: "https://10.0.0.1:6443".to_owned(),
            version: "v1.36.0".to_owned(),
        },
        Progress::HostIsMember,
        applied(ApplyResult::Unchanged, persist, None),
        applied(ApplyResult::Created, persist, Some(token(None))),
        applied(
            ApplyResult::Configured,
            persist,
            Some(token(Some(TokenProblem::Rejected))),
        ),
        applied(
            ApplyResult::Configured,
            persist,
            Some(token(Some(TokenProblem::Unreadable))),
        ),
        applied(
            ApplyResult::Configured,
            persist,
            Some(token(Some(TokenProblem::AccountDeleted))),
        ),
        applied(
            ApplyResult::Configured,
            persist,
            Some(token(Some(TokenProblem::OtherAccount))),
        ),
        applied(ApplyResult::Created, dry_run, None),
        Progress::DryRunComplete,
        Progress::WaitingForMember(NotReady::NotObserved),
        Progress::WaitingForMember(not_ready()),
        Progress::MemberReady(ready(None)),
        Progress::MemberReady(ready(Some("cordoned"))),
        Progress::MemberReady(ready(Some("draining"))),
    ];
    let not_synced = NotReady::Condition {
        condition: MemberConditionType::Synced,
        status: "False".to_owned(),
        reason: "NotSynced".to_owned(),
        message: String::new(),
    };
    let warnings = [
        Warning::InsecureSkipTlsVerify,
        Warning::LoopbackServer("https://127.0.0.1:6443".to_owned()),
        Warning::ControllerStopped,
    ];
    let hints = [
        hint(&not_ready(), &ControllerState::Stopped),
        hint(&NotReady::NotObserved, &ControllerState::Unknown),
        hint(&NotReady::NotObserved, &running()),
        hint(&not_synced, &running()),
    ];
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        lines(progress),
        lines(warnings),
        lines(hints)
    ));
}

#[test]
fn all_join_errors() {
    let problems = vec![
        Problem::UnsupportedVersion {
            cluster: ClusterType::Member,
            version: "v1.31.4".to_owned(),
        },
        Problem::UnknownVersion {
            cluster: ClusterType::Member,
            version: "vNext".to_owned(),
        },
        Problem::OtherFederation {
            name: eu(),
            federation: "blue".to_owned(),
        },
        Problem::OtherFederation {
            name: eu(),
            federation: String::new(),
        },
        Problem::AlreadyMember("europe".to_owned()),
        Problem::OtherCluster(eu()),
        Problem::NamespaceTerminating {
            cluster: ClusterType::Host,
            namespace: "fedrs-system".to_owned(),
        },
        Problem::OtherSecret {
            name: eu(),
            secret: "own".to_owned(),
        },
        Problem::FileMember(eu()),
        Problem::ForeignSecret {
            namespace: "fedrs-system".to_owned(),
            name: "member-eu".to_owned(),
        },
    ];
    let errors = [
        invalid_kubeconfig(" eu.yaml"),
        invalid_kubeconfig(""),
        Error::Authority {
            path: "ca.crt".to_owned(),
            source: io::ErrorKind::NotFound.into(),
        },
        Error::NotEncrypted("http://eu:8080".to_owned()),
        Error::NotVerified,
        Error::CrdsMissing,
        stored_kubeconfig("for"),
        Error::MemberNotFound(eu()),
        Error::NotReady {
            name: eu(),
            timeout: Duration::from_secs(60),
            hint: hint(&not_ready(), &running()),
            reason: Box::new(not_ready()),
        },
        Error::ReplicasLeft {
            name: eu(),
            timeout: Duration::from_secs(60),
            namespaces: "blog, shop".to_owned(),
        },
        Error::Preflight(vec![Problem::AlreadyMember("europe".to_owned())]),
        Error::Preflight(problems),
    ];
    insta::assert_snapshot!(lines(errors));
}

#[test]
fn all_cordon_and_drain_texts() {
    let progress = [
        Progress::Cordoned(eu()),
        Progress::AlreadyCordoned(eu()),
        Progress::Uncordoned(eu()),
        Progress::DrainCanceled(eu()),
        Progress::AlreadyUncordoned(eu()),
        Progress::Draining(eu()),
        Progress::AlreadyDraining(eu()),
        Progress::WaitingForNamespaces("blog, shop".to_owned()),
        Progress::WaitingForDrain(DrainPending::NotObserved),
        Progress::WaitingForDrain(DrainPending::Terminating),
        Progress::WaitingForDrain(DrainPending::NotDrained(
            "(the controller's message)".to_owned(),
        )),
        Progress::WaitingForDrain(pending_replicas()),
        Progress::Drained(eu()),
    ];
    let error = Error::NotDrained {
        name: eu(),
        timeout: Duration::from_secs(600),
        pending: Box::new(pending_replicas()),
    };
    insta::assert_snapshot!(format!("{}\n\n{error}", lines(progress)));
}

#[test]
fn all_unjoin_texts() {
    let objects = (1..=7).map(|number| format!("configmap/map-{number}"));
    let progress = [
        Progress::Deleted {
            cluster: ClusterType::Host,
            object: member_cluster(),
        },
        Progress::WorkloadDeleted {
            kind: LocalKind::Deployment,
            namespace: "default".to_owned(),
            name: "web".to_owned(),
        },
        Progress::WorkloadKept {
            kind: LocalKind::ReplicaSet,
            namespace: "default".to_owned(),
            name: "shop".to_owned(),
            replicas: 1,
        },
        kept(KeepReason::NotCreatedByJoin),
        kept(KeepReason::NotEmpty(objects.collect())),
        kept(KeepReason::UnknownContents(
            "member: failed to list widgets in namespace fedrs-system: timed out after 15s"
                .to_owned(),
        )),
        kept(KeepReason::RequiresMemberKubeconfig),
        Progress::MemberUnchanged(eu()),
        Progress::ManualCleanup {
            account: "fedrs-controller-1a2b3c4d".to_owned(),
            namespace: "fedrs-system".to_owned(),
        },
        Progress::Unjoined(eu()),
    ];
    let errors = [
        Error::MemberNotFound(eu()),
        Error::NothingToDelete {
            name: eu(),
            url: "https://10.0.0.1:6443".to_owned(),
        },
        Error::OtherCluster(eu()),
        Error::OtherMember {
            name: eu(),
            actual: "us".to_owned(),
        },
        Error::FileMember(eu()),
        stored_kubeconfig("in"),
        Error::DeletionBlocked {
            name: eu(),
            timeout: Duration::from_secs(30),
        },
    ];
    insta::assert_snapshot!(format!("{}\n\n{}", lines(progress), lines(errors)));
}

#[test]
fn all_uninstall_texts() {
    let sets = |replica_sets, deployments| SetCounts {
        replica_sets,
        deployments,
    };
    let plan = UninstallPlan {
        sets: sets(3, 1),
        maintenances: vec!["rack-7".to_owned()],
        availability_sets: vec!["web".to_owned()],
        members: vec![eu(), "us".to_owned()],
        namespace: Some("fedrs-system".to_owned()),
    };
    let progress = [
        Progress::WatchingLease("pod-1".to_owned()),
        Progress::FinalizersRemoved(sets(3, 0)),
        Progress::MaintenancesReleased(1),
        Progress::AvailabilitySetsReleased(1),
        Progress::Member(eu()),
    ];
    let remaining = [
        Remaining::Nothing,
        Remaining::Crds { sets: sets(0, 1) },
        Remaining::SharedCrds {
            sets: sets(0, 0),
            other_sets: sets(2, 2),
        },
    ];
    let errors = [
        Error::ControllerRunning {
            holder: "pod-1".to_owned(),
            namespace: "fedrs-system".to_owned(),
            deployment: "fedrs-controller".to_owned(),
        },
        Error::FinalizersRestored(sets(1, 0)),
    ];
    insta::assert_snapshot!(format!(
        "{plan}\n\n{}\n\n{}\n\n{}",
        lines(progress),
        lines(remaining),
        lines(errors)
    ));
}

#[test]
fn all_explain_texts() {
    let explanation = |observation| Explanation {
        kind: SetKind::FederatedReplicaSet,
        rollout: None,
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        desired_replicas: 8,
        observation,
        deletion_timestamp: (observation == Observation::Current)
            .then(|| Time("2026-11-01T00:00:00Z".parse().expect("a time"))),
        status: fedrs_api::FederatedReplicaSetStatus {
            placed_replicas: 7,
            unplaced_replicas: 1,
            ready_replicas: 6,
            available_replicas: 5,
            ..fedrs_api::FederatedReplicaSetStatus::default()
        },
    };
    let name = |kind| SetRef {
        kind,
        namespace: "default".to_owned(),
        name: "web".to_owned(),
    };
    let errors = [
        Error::SetNotFound(name(None)),
        Error::SetNotFound(name(Some(SetKind::FederatedDeployment))),
        Error::AmbiguousSet {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
        },
        Error::SetUnreadable {
            set: ObjectKey::of_kind(SetKind::FederatedDeployment, "default", "web"),
            reason: "invalid type".to_owned(),
        },
    ];
    let explanations = [
        Observation::Missing,
        Observation::Outdated,
        Observation::Current,
    ]
    .map(explanation);
    let rollouts = [(None, "web-2"), (Some("canary"), "web-1")].map(|(step, current)| {
        let mut explanation = explanation(Observation::Current);
        explanation.kind = SetKind::FederatedDeployment;
        explanation.deletion_timestamp = None;
        explanation.status.update_revision = Some("web-2".to_owned());
        explanation.status.current_revision = Some(current.to_owned());
        explanation.status.updated_replicas = 3;
        explanation.rollout = Some(RolloutUse {
            step: step.map(str::to_owned),
            failed_revision: step.map(|_| "web-3".to_owned()),
            max_unavailable: 2,
            unavailable: 1,
            max_surge: 2,
            surge: 0,
        });
        explanation
    });
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        lines(explanations),
        lines(rollouts),
        lines(errors)
    ));
}
