//! The manifests as kustomize and helm render them, without a cluster.

use serde_json::{Value, json};

use crate::{
    host::{Host, repository},
    objects::{Objects, assert_same, comparable, read},
};

/// The chart, from the root of the repository.
pub(crate) const CHART: &str = "deploy/helm/fedrs";
/// The namespace of the manifests.
pub(crate) const NAMESPACE: &str = "fedrs-system";

/// The objects of an overlay.
pub(crate) fn kustomize(host: &Host, overlay: &str) -> String {
    let directory = format!("deploy/kustomize/overlays/{overlay}");
    host.must(&["kustomize", &directory], "")
}

/// The objects of the chart with these values.
pub(crate) fn template(host: &Host, values: &[&str]) -> String {
    let mut arguments = vec!["template", "fedrs", CHART, "--namespace", NAMESPACE];
    for value in values {
        arguments.extend(["--set", value]);
    }
    let output = host.helm(&arguments);
    assert!(output.succeeded, "helm {arguments:?}: {}", output.errors);
    output.out
}

fn chart(host: &Host, values: &[&str]) -> Objects {
    comparable(read(&template(host, values)))
}

fn overlay(host: &Host, name: &str) -> Objects {
    comparable(read(&kustomize(host, name)))
}

pub(crate) fn one_replica_has_no_disruption_budget_and_three_have(host: &Host) {
    let in_member = "replica-set-controller";
    for (one, three, name) in [
        ("one", "three", "fedrs-controller"),
        (
            in_member,
            "replica-set-controller-three",
            "fedrs-replica-set-controller",
        ),
    ] {
        let (one, mut three) = (overlay(host, one), overlay(host, three));
        let deployment = format!("Deployment/{name}");
        assert_eq!(one[&deployment]["spec"]["replicas"], 1);
        let deployment = three.get_mut(&deployment).unwrap();
        assert_eq!(deployment["spec"]["replicas"], 3);
        // A disruption budget for one replica would block each drain of a node, or protect nothing.
        deployment["spec"]["replicas"] = json!(1);
        let budget = format!("PodDisruptionBudget/{name}");
        let budget = three.remove(&budget).unwrap();
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        assert_same(&one, &three);
    }
}

pub(crate) fn the_chart_has_the_version_of_the_program(host: &Host) {
    let text = std::fs::read_to_string(repository().join(CHART).join("Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&text).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&json!(version), &json!(version))
    );
    for (name, deployment) in [
        ("one", "Deployment/fedrs-controller"),
        ("discovery", "Deployment/fedrs-discovery"),
    ] {
        let deployment = &overlay(host, name)[deployment];
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(*image, format!("fedrs:{version}"));
    }
}

pub(crate) fn lint_finds_nothing(host: &Host) {
    let output = host.helm(&["lint", "--strict", "--quiet", CHART]);
    assert!(output.succeeded, "{}{}", output.out, output.errors);
    assert_eq!(output.out.trim(), "", "{}", output.errors);
}

pub(crate) fn the_defaults_are_the_overlay_one(host: &Host) {
    assert_same(&chart(host, &[]), &overlay(host, "one"));
}

pub(crate) fn three_replicas_are_the_overlay_three(host: &Host) {
    assert_same(&chart(host, &["replicas=3"]), &overlay(host, "three"));
}

/// The values of a release in a member, which has no federated controller.
pub(crate) const IN_MEMBER: [&str; 2] = [
    "federatedController.enabled=false",
    "replicaSetController.enabled=true",
];

pub(crate) fn the_controller_of_a_member_is_its_overlay(host: &Host) {
    let overlay = overlay(host, "replica-set-controller");
    assert_same(&chart(host, &IN_MEMBER), &overlay);
    let three = [&IN_MEMBER[..], &["replicaSetController.replicas=3"]].concat();
    assert_same(
        &chart(host, &three),
        &self::overlay(host, "replica-set-controller-three"),
    );
    // On a host it comes in addition.
    let mut both = chart(host, &["replicaSetController.enabled=true"]);
    both.retain(|name, _| overlay.contains_key(name));
    assert_same(&both, &overlay);
    let pod = &overlay["Deployment/fedrs-replica-set-controller"]["spec"]["template"]["spec"];
    let image = &pod["containers"][0]["image"];
    assert_eq!(*image, format!("fedrs:{}", env!("CARGO_PKG_VERSION")));
}

/// The value that adds discovery to a release.
pub(crate) const DISCOVERY: &str = "discovery.enabled=true";

pub(crate) fn discovery_is_its_overlay(host: &Host) {
    let overlay = overlay(host, "discovery");
    let mut both = chart(host, &[DISCOVERY]);
    both.retain(|name, _| overlay.contains_key(name));
    assert_same(&both, &overlay);
    let arguments = |values: &[&str]| {
        let chart = chart(host, &[&[DISCOVERY], values].concat());
        let pod = &chart["Deployment/fedrs-discovery"]["spec"]["template"]["spec"];
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        let arguments = arguments
            .iter()
            .map(|argument| argument.as_str().unwrap().to_owned());
        (arguments.collect::<Vec<_>>(), chart)
    };
    let (given, chart) = arguments(&[
        "discovery.dns.enabled=true",
        "discovery.membersSecret=members",
    ]);
    for argument in [
        "--dns=0.0.0.0:9453",
        "--anonymous-dns",
        "--members=/etc/fedrs/members",
    ] {
        assert!(
            given.iter().any(|given| given == argument),
            "{argument}: {given:?}"
        );
    }
    assert_eq!(
        chart["Service/fedrs-discovery"]["spec"]["ports"][2]["port"],
        53
    );
    // What is not asked for needs no permissions.
    let (given, chart) = arguments(&[
        "discovery.writeStatus=false",
        "discovery.authorization=None",
    ]);
    assert!(
        !given.iter().any(|given| given == "--write-status"),
        "{given:?}"
    );
    assert!(!chart.contains_key("ClusterRole/fedrs-discovery-authorizer"));
    let rules = chart["ClusterRole/fedrs-discovery"]["rules"]
        .as_array()
        .unwrap();
    for rule in rules {
        assert_eq!(rule["verbs"], json!(["list", "watch"]));
    }
}

pub(crate) fn a_service_monitor_is_the_component(host: &Host) {
    let directory = repository().join("deploy/kustomize/components/servicemonitor");
    let text = std::fs::read_to_string(directory.join("service-monitor.yaml")).unwrap();
    let component = comparable(read(&text));
    let mut chart = chart(host, &["serviceMonitor.enabled=true"]);
    chart.retain(|name, _| component.contains_key(name));
    assert_same(&chart, &component);
    // The monitor selects the Service by labels, and its port by name.
    let service = &overlay(host, "one")["Service/fedrs-controller-metrics"];
    let monitor = &component["ServiceMonitor/fedrs-controller"];
    let wanted = monitor["spec"]["selector"]["matchLabels"]
        .as_object()
        .unwrap();
    for (label, value) in wanted {
        assert_eq!(&service["metadata"]["labels"][label], value);
    }
    assert_eq!(
        monitor["spec"]["endpoints"][0]["port"],
        service["spec"]["ports"][0]["name"]
    );
}

pub(crate) fn invalid_values_are_rejected_by_name(host: &Host) {
    for (value, named) in [
        ("replica=3", "replica"),
        ("replicas=three", "replicas"),
        ("replicaSetController.replicas=-1", "replicas"),
        ("replicaSetController.enable=true", "enable"),
        ("discovery.authorization=Everybody", "authorization"),
        ("discovery.dns.port=53", "port"),
        ("image.digest=sha256:12", "digest"),
        ("federation=Blue", "federation"),
        ("config.federation=blue", "config"),
        ("networkPolicy.egressPorts={0}", "egressPorts"),
        ("crds.install=maybe", "install"),
        ("resources.limit.memory=1Gi", "limit"),
    ] {
        let output = host.helm(&["template", "fedrs", CHART, "--set", value]);
        assert!(!output.succeeded, "{value} was accepted");
        assert!(output.errors.contains(named), "{value}: {}", output.errors);
    }
}

pub(crate) fn every_value_takes_effect(host: &Host) {
    let takes_effect = |others: &[&str], without: &str, value: &str| {
        let rendered = template(host, &[others, &[value]].concat());
        assert_ne!(rendered, without, "{value}");
        read(&rendered);
    };
    let plain = template(host, &[]);
    for value in [
        "replicas=2",
        "image.repository=registry.example/fedrs",
        "image.tag=1.2.3",
        "image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "image.pullPolicy=Always",
        "imagePullSecrets[0].name=pull",
        "federation=blue",
        "config.workers=8",
        "logLevel=debug",
        "crds.install=false",
        "userRoles.create=false",
        "resources.limits.memory=1Gi",
        "listenAddress=[::]",
        "networkPolicy.enabled=false",
        "networkPolicy.metricsFrom[0].ipBlock.cidr=10.0.0.0/8",
        "networkPolicy.egressPorts={8443}",
        "serviceMonitor.enabled=true",
        "labels.team=blue",
        "annotations.note=text",
        "podLabels.team=blue",
        "podAnnotations.note=text",
        "priorityClassName=system-cluster-critical",
        "nodeSelector.pool=system",
        "tolerations[0].operator=Exists",
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=pool",
    ] {
        takes_effect(&[], &plain, value);
    }
    let in_member = template(host, &IN_MEMBER);
    assert_ne!(in_member, plain);
    for value in [
        "replicaSetController.replicas=2",
        "replicaSetController.config.workers=8",
        "networkPolicy.enabled=false",
        "networkPolicy.egressPorts={8443}",
        "replicaSetController.resources.limits.memory=1Gi",
        "image.tag=1.2.3",
        "image.pullPolicy=Always",
        "imagePullSecrets[0].name=pull",
        "logLevel=debug",
        "crds.install=false",
        "listenAddress=[::]",
        "labels.team=blue",
        "annotations.note=text",
        "podLabels.team=blue",
        "podAnnotations.note=text",
        "priorityClassName=system-cluster-critical",
        "nodeSelector.pool=system",
        "tolerations[0].operator=Exists",
    ] {
        takes_effect(&IN_MEMBER, &in_member, value);
    }
    let with_discovery = template(host, &[DISCOVERY]);
    for value in [
        "discovery.replicas=3",
        "discovery.membersSecret=members",
        "discovery.tlsSecret=tls",
        "discovery.authorization=None",
        "discovery.writeStatus=false",
        "discovery.dns.enabled=true",
        "discovery.snapshots.sizeLimit=2Gi",
        "discovery.resources.limits.memory=1Gi",
        "federation=blue",
    ] {
        takes_effect(&[DISCOVERY], &with_discovery, value);
    }
    let dns = [DISCOVERY, "discovery.dns.enabled=true"];
    takes_effect(
        &dns,
        &template(host, &dns),
        "discovery.dns.domain=example.org",
    );
    let three = [&IN_MEMBER[..], &["replicaSetController.replicas=3"]].concat();
    for replicas in [&["replicas=3"][..], &three] {
        let plain = template(host, replicas);
        for value in [
            "podDisruptionBudget.enabled=false",
            "podDisruptionBudget.maxUnavailable=2",
        ] {
            takes_effect(replicas, &plain, value);
        }
    }
}

pub(crate) fn another_federation_shares_no_name(host: &Host) {
    let per_host = ["crds.install=false", "userRoles.create=false"];
    let blue = chart(host, &[&["federation=blue"], &per_host[..]].concat());
    let plain = chart(host, &[]);
    for (name, object) in &blue {
        assert!(!plain.contains_key(name), "{name}");
        assert!(name.contains("fedrs-controller-blue"), "{name}");
        let subjects = object["subjects"].as_array();
        for subject in subjects.into_iter().flatten() {
            assert_eq!(subject["name"], "fedrs-controller-blue");
        }
    }
    let config = &blue["ConfigMap/fedrs-controller-blue-config"];
    assert_eq!(config["data"]["controller.yaml"]["federation"], "blue");
    let selector = &blue["Deployment/fedrs-controller-blue"]["spec"]["selector"];
    assert_ne!(
        *selector,
        plain["Deployment/fedrs-controller"]["spec"]["selector"]
    );
}
