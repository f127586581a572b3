//! Shows each text once.

use fedrs_api::SetKey;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn each_text_once() {
    let members = ["eu".to_owned(), "us".to_owned()];
    let first = ["a", "b", "c"].map(|name| SetKey::new("default", name));
    let held = |workloads, replicas, first: &[SetKey]| WorkloadTotals {
        workloads,
        replicas,
        first: first.to_vec(),
    };
    let done = "eu: scaled from 3 to 5";
    let secret = "Secret fedrs-system/eu";
    let texts = [
        crds_missing("MemberClusters"),
        failed_to_list("MemberClusters", "connection refused"),
        repaired(done, None),
        repaired(done, Some("kubectl-scale")),
        repaired(done, Some(names::FIELD_MANAGER)),
        adopted("eu", "replicas 2 to 5; template and labels"),
        adopted_changes(Some((&2, 5)), Some(("web:1", "web:2"))),
        adopted_changes(None::<(&u32, u32)>, None),
        replaced("eu", "replicas 2, images web:1, selector app=old"),
        creation_rejected("eu", "exceeded quota"),
        write_rejected("eu", "admission webhook denied the request"),
        pods_labeled("eu: labeled adopted pods", 1),
        deletion_pending(&members, at(1_800_000_000)),
        left_behind(&members, Duration::from_secs(600)),
        other_federation("blue"),
        controlled_by("Deployment", "web"),
        namespace_not_created("kube-tools"),
        NO_KUBECONFIG.to_owned(),
        API_SERVER_ANSWERS.to_owned(),
        NOT_PROBED.to_owned(),
        NOT_WATCHED.to_owned(),
        SYNCED.to_owned(),
        NOT_SYNCED.to_owned(),
        stale(at(1_800_000_000)),
        DRAINED.to_owned(),
        drain_unknown(NOT_SYNCED),
        draining(&held(1, 1, &first[..1])),
        draining(&held(5, 12, &first)),
        MEMBER_REMOVED.to_owned(),
        insecure_kubeconfig("insecure-skip-tls-verify is set"),
        token_not_renewable(secret),
        token_renewed(secret, at(1_800_000_000)),
        token_renewal_failed(secret, at(1_800_000_000), "forbidden"),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
