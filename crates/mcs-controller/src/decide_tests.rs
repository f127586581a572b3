//! The rules of KEP-1645, one by one.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    export::{Export, Service},
    fake_members::{FakeMembers, NAMESPACE},
    import::Import,
    slice::Slice,
    watches::Namespace,
};

/// `eu` exports since the first second, `us` since the second one; `ap` imports.
fn exported(eu: Value, us: Value) -> FakeMembers {
    let mut members = FakeMembers::new(&["ap", "eu", "us"]);
    members.restart();
    members.export("eu", 1, eu);
    members.export("us", 2, us);
    members.endpoint("eu", "web-e", "10.0.0.1");
    members.endpoint("us", "web-u", "10.1.0.1");
    members.settle();
    members
}

fn import<'a>(members: &'a FakeMembers, member: &str) -> &'a Value {
    members
        .get::<Import>(member, "web")
        .expect("it is imported")
}

fn addresses(members: &FakeMembers, member: &str) -> Value {
    json!(members.imported(member))
}

#[test]
fn each_member_with_the_namespace_imports_the_endpoints_of_all() {
    let members = exported(json!({}), json!({}));
    for member in ["ap", "eu", "us"] {
        let import = import(&members, member);
        assert_eq!(import["spec"]["type"], "ClusterSetIP");
        assert!(import["spec"].get("ips").is_none());
        assert_eq!(
            import["status"],
            json!({ "clusters": [{ "cluster": "eu" }, { "cluster": "us" }], "endpointSliceObjects": "Present" })
        );
        assert_eq!(
            addresses(&members, member),
            json!({ "eu": ["10.0.0.1"], "us": ["10.1.0.1"] })
        );
    }
    for member in ["eu", "us"] {
        assert_eq!(members.condition(member, "Valid").0, "True");
        assert_eq!(members.condition(member, "Ready").1, "Exported");
        assert_eq!(members.condition(member, "Conflict").1, "NoConflicts");
    }
}

#[test]
fn an_imported_slice_has_the_labels_of_the_api_and_belongs_to_the_import() {
    let members = exported(json!({}), json!({}));
    let slices = members.all::<Slice>("ap");
    let slice = slices[0];
    let labels = &slice["metadata"]["labels"];
    assert_eq!(labels["multicluster.kubernetes.io/service-name"], "web");
    assert_eq!(labels["multicluster.kubernetes.io/source-cluster"], "eu");
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        "mcs-controller.fedrs.dev"
    );
    // Neither kube-proxy nor DNS of the cluster takes it for one of a Service.
    assert!(labels.get("kubernetes.io/service-name").is_none());
    let owner = &slice["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], import(&members, "ap")["metadata"]["uid"]);
    assert_eq!(
        slice["endpoints"],
        json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true }, "zone": "a" }])
    );
}

#[test]
fn a_member_without_the_namespace_imports_when_it_gets_it() {
    let mut members = FakeMembers::new(&["ap", "eu"]);
    members.remove::<Namespace>("ap", NAMESPACE);
    members.restart();
    members.export("eu", 1, json!({}));
    members.endpoint("eu", "web-e", "10.0.0.1");
    members.settle();
    assert!(members.get::<Import>("ap", "web").is_none());
    members.put::<Namespace>("ap", json!({ "metadata": { "name": NAMESPACE } }));
    members.settle();
    assert_eq!(addresses(&members, "ap"), json!({ "eu": ["10.0.0.1"] }));
}

#[test]
fn nothing_is_written_into_a_namespace_that_is_being_deleted() {
    let mut members = FakeMembers::new(&["ap", "eu"]);
    let deleted = json!({ "name": NAMESPACE, "deletionTimestamp": "2026-01-01T00:00:00Z" });
    members.put::<Namespace>("ap", json!({ "metadata": deleted }));
    members.restart();
    members.export("eu", 1, json!({}));
    members.settle();
    assert!(members.get::<Import>("ap", "web").is_none());
}

#[rstest]
#[case::headless(
    json!({ "clusterIP": "None" }), json!({}),
    "TypeConflict", "type", json!("Headless")
)]
#[case::cluster_ip(
    json!({}), json!({ "clusterIP": "None" }),
    "TypeConflict", "type", json!("ClusterSetIP")
)]
#[case::affinity(
    json!({ "sessionAffinity": "ClientIP" }), json!({ "sessionAffinity": "None" }),
    "SessionAffinityConflict", "sessionAffinity", json!("ClientIP")
)]
#[case::affinity_config(
    json!({ "sessionAffinity": "ClientIP", "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 5 } } }),
    json!({ "sessionAffinity": "ClientIP", "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 6 } } }),
    "SessionAffinityConfigConflict", "sessionAffinityConfig", json!({ "clientIP": { "timeoutSeconds": 5 } })
)]
#[case::internal_traffic(
    json!({ "internalTrafficPolicy": "Local" }), json!({ "internalTrafficPolicy": "Cluster" }),
    "InternalTrafficPolicyConflict", "internalTrafficPolicy", json!("Local")
)]
#[case::traffic_distribution(
    json!({ "trafficDistribution": "PreferClose" }), json!({}),
    "TrafficDistributionConflict", "trafficDistribution", json!("PreferClose")
)]
#[case::port_of_a_name(
    json!({ "ports": [{ "name": "http", "port": 80 }] }), json!({ "ports": [{ "name": "http", "port": 81 }] }),
    "PortConflict", "ports", json!([{ "name": "http", "protocol": "TCP", "port": 80 }])
)]
#[case::name_of_a_port(
    json!({ "ports": [{ "name": "http", "port": 80 }] }), json!({ "ports": [{ "name": "web", "port": 80 }] }),
    "PortConflict", "ports", json!([{ "name": "http", "protocol": "TCP", "port": 80 }])
)]
fn the_oldest_export_wins_and_all_report_the_conflict(
    #[case] eu: Value,
    #[case] us: Value,
    #[case] reason: &str,
    #[case] field: &str,
    #[case] expected: Value,
) {
    let members = exported(eu, us);
    for member in ["ap", "eu", "us"] {
        assert_eq!(import(&members, member)["spec"][field], expected);
    }
    for member in ["eu", "us"] {
        let (status, found, message) = members.condition(member, "Conflict");
        assert_eq!((&*status, &*found), ("True", reason));
        assert!(
            message.contains("oldest export in eu; 1 of 2 exports disagree"),
            "{message}"
        );
    }
    // Endpoints of both are imported all the same.
    assert_eq!(
        addresses(&members, "ap"),
        json!({ "eu": ["10.0.0.1"], "us": ["10.1.0.1"] })
    );
}

#[rstest]
#[case::other_ports(json!([{ "name": "http", "port": 80 }, { "name": "stcp", "port": 142, "protocol": "SCTP" }]))]
#[case::same_number_of_another_protocol(json!([{ "name": "dns", "port": 80, "protocol": "UDP" }]))]
fn ports_are_merged_without_a_conflict(#[case] us: Value) {
    let members = exported(json!({}), json!({ "ports": us }));
    let ports = import(&members, "ap")["spec"]["ports"].as_array();
    assert_eq!(ports.map(Vec::len), Some(2));
    assert_eq!(members.condition("us", "Conflict").1, "NoConflicts");
}

#[test]
fn several_conflicts_have_all_their_reasons() {
    let members = exported(
        json!({ "sessionAffinity": "ClientIP" }),
        json!({ "clusterIP": "None", "ports": [{ "name": "http", "port": 81 }] }),
    );
    let (_, reason, _) = members.condition("eu", "Conflict");
    assert_eq!(reason, "PortConflict,TypeConflict,SessionAffinityConflict");
}

#[test]
fn of_exports_of_the_same_second_the_name_of_the_member_decides() {
    let mut members = FakeMembers::new(&["ap", "eu", "us"]);
    members.restart();
    members.export("us", 1, json!({}));
    members.export("eu", 1, json!({ "clusterIP": "None" }));
    members.settle();
    assert_eq!(import(&members, "ap")["spec"]["type"], "Headless");
}

#[test]
fn the_next_oldest_decides_when_the_oldest_is_gone() {
    let mut members = exported(json!({ "clusterIP": "None" }), json!({}));
    members.remove::<Export>("eu", "web");
    members.settle();
    assert_eq!(import(&members, "ap")["spec"]["type"], "ClusterSetIP");
    assert_eq!(members.condition("us", "Conflict").1, "NoConflicts");
    assert_eq!(addresses(&members, "ap"), json!({ "us": ["10.1.0.1"] }));
}

#[test]
fn exported_labels_and_annotations_are_those_of_the_oldest() {
    let mut members = exported(json!({}), json!({}));
    for (member, second) in [("eu", 1), ("us", 2)] {
        let metadata =
            json!({ "name": "web", "creationTimestamp": format!("2026-01-01T00:00:0{second}Z") });
        let spec = json!({
            "exportedLabels": { format!("label-{member}"): "a" },
            "exportedAnnotations": { format!("annotation-{member}"): "b" },
        });
        members.put::<Export>(member, json!({ "metadata": metadata, "spec": spec }));
    }
    members.settle();
    let metadata = &import(&members, "ap")["metadata"];
    assert_eq!(metadata["labels"]["label-eu"], "a");
    assert_eq!(metadata["annotations"]["annotation-eu"], "b");
    assert!(metadata["labels"].get("label-us").is_none());
    let (_, reason, _) = members.condition("us", "Conflict");
    assert_eq!(reason, "AnnotationsConflict,LabelsConflict");
    // Those of an export that is gone are removed; those of others stay.
    let mut foreign = import(&members, "ap").clone();
    foreign["metadata"]["annotations"]["derived-service"] = json!("derived-1");
    foreign["spec"]["ips"] = json!(["10.9.0.1"]);
    members.put::<Import>("ap", foreign);
    members.remove::<Export>("eu", "web");
    members.settle();
    let import = import(&members, "ap");
    assert!(import["metadata"]["labels"].get("label-eu").is_none());
    assert_eq!(import["metadata"]["labels"]["label-us"], "a");
    assert_eq!(
        import["metadata"]["annotations"]["derived-service"],
        "derived-1"
    );
    assert_eq!(import["spec"]["ips"], json!(["10.9.0.1"]));
}

#[rstest]
#[case::external_name(Some(json!({ "type": "ExternalName", "externalName": "example.com" })), "InvalidServiceType")]
#[case::no_service(None, "NoService")]
fn an_invalid_export_says_why_and_exports_nothing(
    #[case] service: Option<Value>,
    #[case] reason: &str,
) {
    let mut members = FakeMembers::new(&["ap", "eu"]);
    members.restart();
    members.export("eu", 1, json!({}));
    members.endpoint("eu", "web-e", "10.0.0.1");
    members.settle();
    assert_eq!(members.condition("eu", "Valid").1, "Valid");
    match service {
        Some(service) => members.service("eu", service),
        None => members.remove::<Service>("eu", "web"),
    }
    members.settle();
    let (status, found, _) = members.condition("eu", "Valid");
    assert_eq!((&*status, &*found), ("False", reason));
    assert!(members.get::<Import>("ap", "web").is_none());
    assert_eq!(addresses(&members, "ap"), json!({}));
}

#[test]
fn a_service_that_is_not_exported_in_its_own_member_is_not_imported() {
    let mut members = FakeMembers::new(&["ap", "eu", "us"]);
    members.restart();
    members.export("eu", 1, json!({}));
    members.service("us", json!({}));
    members.endpoint("us", "web-u", "10.1.0.1");
    members.settle();
    assert_eq!(addresses(&members, "ap"), json!({}));
    assert_eq!(
        import(&members, "ap")["status"],
        json!({ "clusters": [{ "cluster": "eu" }], "endpointSliceObjects": "Absent" })
    );
}

#[test]
fn the_import_goes_with_the_last_export_after_its_slices() {
    let mut members = exported(json!({}), json!({}));
    members.remove::<Export>("eu", "web");
    members.remove::<Export>("us", "web");
    members.observe("eu");
    members.observe("us");
    let paths: Vec<_> = members
        .writes()
        .into_iter()
        .map(|(_, write)| write.path)
        .collect();
    assert!(
        paths.iter().all(|path| path.contains("/endpointslices/")),
        "{paths:?}"
    );
    members.settle();
    for member in ["ap", "eu", "us"] {
        assert!(members.get::<Import>(member, "web").is_none());
        assert_eq!(addresses(&members, member), json!({}));
    }
}

#[test]
fn a_foreign_import_is_left_and_reported() {
    let mut members = FakeMembers::new(&["ap", "eu"]);
    members.restart();
    let foreign =
        json!({ "metadata": { "name": "web" }, "spec": { "type": "Headless", "ports": [] } });
    members.put::<Import>("ap", foreign);
    let before = import(&members, "ap").clone();
    members.export("eu", 1, json!({}));
    members.endpoint("eu", "web-e", "10.0.0.1");
    members.settle();
    assert_eq!(import(&members, "ap"), &before);
    assert_eq!(addresses(&members, "ap"), json!({}));
    assert_eq!(addresses(&members, "eu"), json!({ "eu": ["10.0.0.1"] }));
    let (status, reason, message) = members.condition("eu", "Ready");
    assert_eq!((&*status, &*reason), ("False", "Failed"));
    assert!(message.ends_with("somebody else in ap"), "{message}");
}

#[test]
fn what_an_unreachable_member_exports_stays_after_a_restart_too() {
    let mut members = exported(
        json!({ "clusterIP": "None", "ports": [{ "name": "http", "port": 80 }, { "name": "admin", "port": 9 }] }),
        json!({}),
    );
    let before = import(&members, "ap").clone();
    members.members.get_mut("eu").unwrap().is_unreachable = true;
    members.restart();
    members.endpoint("us", "web-u", "10.1.0.2");
    members.settle();
    assert_eq!(import(&members, "ap")["spec"], before["spec"]);
    assert_eq!(import(&members, "ap")["status"], before["status"]);
    assert_eq!(
        addresses(&members, "ap"),
        json!({ "eu": ["10.0.0.1"], "us": ["10.1.0.2"] })
    );
    let (_, reason, message) = members.condition("us", "Conflict");
    assert_eq!(reason, "TypeConflict");
    assert!(
        message.contains("a member that is not known now"),
        "{message}"
    );
    // The others unexport: it may still.
    members.remove::<Export>("us", "web");
    members.settle();
    assert_eq!(addresses(&members, "ap"), json!({ "eu": ["10.0.0.1"] }));
    // Known again, it does not.
    members.remove::<Export>("eu", "web");
    members.members.get_mut("eu").unwrap().is_unreachable = false;
    members.settle();
    assert!(members.get::<Import>("ap", "web").is_none());
}

#[test]
fn a_member_that_is_none_any_more_stays_as_it_is_and_so_do_its_endpoints() {
    let mut members = exported(json!({}), json!({}));
    members.end("eu");
    members.endpoint("us", "web-u", "10.1.0.2");
    members.settle();
    assert_eq!(
        addresses(&members, "ap"),
        json!({ "eu": ["10.0.0.1"], "us": ["10.1.0.2"] })
    );
    assert_eq!(addresses(&members, "eu")["us"], json!(["10.1.0.1"]));
}

#[test]
fn an_import_that_is_deleted_comes_back_and_owns_what_it_had() {
    let mut members = exported(json!({}), json!({}));
    members.members.get_mut("eu").unwrap().is_unreachable = true;
    members.restart();
    members.remove::<Import>("ap", "web");
    members.settle();
    let uid = &import(&members, "ap")["metadata"]["uid"];
    for slice in members.all::<Slice>("ap") {
        assert_eq!(&slice["metadata"]["ownerReferences"][0]["uid"], uid);
    }
    assert_eq!(addresses(&members, "ap")["eu"], json!(["10.0.0.1"]));
}
