//! Shows each text once.

use controller_base::readiness::NotReady;
use fedrs_api::{WorkloadKey, names};

use super::*;
use crate::{
    config::{Config, ConfigError},
    members::{
        kubeconfig::{Insecure, KubeconfigError},
        source_error::{SecretsForbidden, SourceError},
    },
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn each_text_once() {
    let members = ["eu".to_owned(), "us".to_owned()];
    let first = ["a", "b", "c"].map(|name| WorkloadKey::new("default", name));
    let held = |workloads, replicas, first: &[WorkloadKey]| WorkloadTotals {
        workloads,
        replicas,
        first: first.to_vec(),
    };
    let unread = |names: &[&str]| {
        let unread = |name: &&str| UnreadNamespace {
            name: (*name).to_owned(),
            failure: Some("403 Forbidden: pods is forbidden".to_owned()),
        };
        names.iter().map(unread).collect::<Vec<_>>()
    };
    let secret = "Secret fedrs-system/eu";
    let texts = [
        crds_missing("MemberClusters"),
        failed_to_list("MemberClusters", "connection refused"),
        may_not_list("Namespaces", "403 Forbidden: namespaces is forbidden"),
        deletion_pending(&members, at(1_800_000_000)),
        left_behind(&members, Duration::from_secs(600)),
        deletion_held(&["example.com/hold"]),
        deletion_held(&["foregroundDeletion", "example.com/hold"]),
        other_federation("blue"),
        controlled_by("Deployment", "web"),
        other_replicas(3, 40),
        namespace_not_created("shop"),
        namespace_labels_unknown("shop", &host_namespace_unknown("shop")),
        invalid_namespace_selector(&"unsupported operator"),
        NAMESPACE_LABELS_UNREAD.to_owned(),
        NO_KUBECONFIG.to_owned(),
        API_SERVER_ANSWERS.to_owned(),
        NODES_UNCONFIRMED.to_owned(),
        NO_READY_NODES.to_owned(),
        NOT_PROBED.to_owned(),
        NOT_WATCHED.to_owned(),
        SYNCED.to_owned(),
        NOT_SYNCED.to_owned(),
        stale(at(1_800_000_000)),
        in_namespaces(NOT_SYNCED, &unread(&["shop"])),
        in_namespaces(&stale(at(1_800_000_000)), &unread(&["a", "b", "c", "d"])),
        DRAINED.to_owned(),
        lost_at("timed out", at(1_800_000_000)),
        stabilizing(at(1_800_000_000), 0),
        stabilizing(at(1_800_000_000), 2),
        drain_unknown(NOT_SYNCED),
        draining(&held(1, 1, &first[..1])),
        draining(&held(5, 12, &first)),
        MEMBER_REMOVED.to_owned(),
        insecure_kubeconfig(Insecure::SkipTlsVerify),
        token_not_renewable(secret),
        token_renewed(secret, at(1_800_000_000)),
        token_renewal_failed(secret, at(1_800_000_000), "forbidden"),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn each_error_of_a_kubeconfig_once() {
    let why = || "permission denied".to_owned();
    let errors = [
        KubeconfigError::Malformed { line: 1, column: 8 },
        KubeconfigError::NotText,
        KubeconfigError::Empty,
        KubeconfigError::Mixed,
        KubeconfigError::NoContext,
        KubeconfigError::Missing {
            what: "context",
            name: "eu".to_owned(),
        },
        KubeconfigError::Server,
        KubeconfigError::Token,
        KubeconfigError::Proxy,
        KubeconfigError::Unreadable {
            path: "members/eu.yaml".to_owned(),
            why: why(),
        },
        KubeconfigError::NotFound,
        KubeconfigError::File {
            field: "tokenFile",
            path: "members/token".to_owned(),
            why: why(),
        },
        KubeconfigError::TwoFiles,
        KubeconfigError::NoKey(names::KUBECONFIG_KEY),
        KubeconfigError::ExecForbidden("exec"),
        KubeconfigError::InsecureForbidden(Insecure::SkipTlsVerify),
        KubeconfigError::InsecureForbidden(Insecure::Http),
        KubeconfigError::FileForbidden("tokenFile"),
        KubeconfigError::Plugin,
        KubeconfigError::PluginTimeout(Duration::from_secs(15)),
        KubeconfigError::Client("the credentials plugin failed: exit status: 3".to_owned()),
    ];
    let (file, secret) = ("file members/eu.yaml", "Secret fedrs-system/eu");
    let sources = [
        SourceError::Invalid {
            place: file.to_owned(),
            error: KubeconfigError::NoContext,
        },
        SourceError::SecretMissing {
            place: secret.to_owned(),
        },
        SourceError::SecretsForbidden {
            place: secret.to_owned(),
            error: SecretsForbidden {
                namespace: "fedrs-system".to_owned(),
                response: "403 Forbidden: no".to_owned(),
            },
        },
        SourceError::Duplicate {
            file: file.to_owned(),
            secret: secret.to_owned(),
        },
    ];
    let errors = errors.iter().map(ToString::to_string);
    let texts: Vec<_> = errors
        .chain(sources.iter().map(ToString::to_string))
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn each_error_of_the_configuration_and_reason_not_to_be_ready_once() {
    let invalid = |yaml: &str| -> ConfigError { Config::parse(yaml).unwrap_err() };
    let errors = [
        "checkdelay: 1s",
        "checkDelay: soon",
        "workers: 0",
        "backoffMax: 1s",
        "federation: a.b",
        "leaderElection: {leaseDuration: 10s}",
        "leaderElection: {retryPeriod: 9s}",
    ]
    .map(|yaml| invalid(yaml).to_string());
    let not_ready =
        [NotReady::Lists, NotReady::Listing, NotReady::Members].map(|error| error.to_string());
    insta::assert_snapshot!([&errors[..], &not_ready[..]].concat().join("\n"));
}
