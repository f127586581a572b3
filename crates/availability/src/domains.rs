//! What would happen if a node, a rack, a zone or a cluster failed while nothing else does (A2). Pure.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{DOMAINS_SHOWN_MAX, DomainPods, DomainStatus, DomainType};

/// Where nodes and pods are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cluster: String,
    /// The node; empty for a pod that has none.
    pub(crate) node: String,
    /// The label of racks.
    pub(crate) rack: Option<String>,
    /// The label of zones.
    pub(crate) zone: Option<String>,
}

impl Place {
    /// The domain of this type that it is in, if that is known. Zones may have nodes of several clusters; racks of one name are different
    /// ones in different zones.
    fn domain(&self, type_: DomainType) -> Option<String> {
        let Self {
            cluster,
            node,
            rack,
            zone,
        } = self;
        match type_ {
            DomainType::Cluster => Some(cluster.clone()),
            DomainType::Node => (!node.is_empty()).then(|| format!("{cluster}/{node}")),
            DomainType::Zone => zone.clone(),
            DomainType::Rack => {
                let within = zone.as_ref().unwrap_or(cluster);
                rack.as_ref().map(|rack| format!("{within}/{rack}"))
            }
        }
    }
}

/// What would happen, for each type. `nodes` are all nodes of the clusters, `pods` those of the set.
pub(crate) fn domains(nodes: &[Place], pods: &[Place], budget: u64) -> Vec<DomainStatus> {
    let of_type = |type_: &DomainType| of_type(*type_, nodes, pods, budget);
    DomainType::ALL.iter().map(of_type).collect()
}

fn of_type(type_: DomainType, nodes: &[Place], pods: &[Place], budget: u64) -> DomainStatus {
    let exist: BTreeSet<_> = (nodes.iter().chain(pods))
        .filter_map(|place| place.domain(type_))
        .collect();
    let mut used = BTreeMap::<String, u64>::new();
    let mut unlabeled = 0;
    // A pod without a node fails with none.
    for pod in pods.iter().filter(|pod| !pod.node.is_empty()) {
        match pod.domain(type_) {
            Some(domain) => *used.entry(domain).or_default() += 1,
            None => unlabeled += 1,
        }
    }
    let mut breaking: Vec<_> = used
        .into_iter()
        .filter(|(_, pods)| *pods > budget)
        .collect();
    breaking.sort_by(|(a_name, a), (b_name, b)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
    let needed = u64::try_from(pods.len()).unwrap_or(u64::MAX);
    DomainStatus {
        type_,
        domains: number(exist.len()),
        unlabeled_pods: number(unlabeled),
        breaking_total: number(breaking.len()),
        breaking: (breaking.into_iter().take(DOMAINS_SHOWN_MAX))
            .map(|(name, pods)| DomainPods {
                name,
                pods: number(pods),
            })
            .collect(),
        needed: number(needed.div_ceil(budget.max(1))),
    }
}

/// A number in a status.
pub(crate) fn number(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// `cluster/node/rack/zone`; a missing label is `-`.
    fn places(text: &[&str]) -> Vec<Place> {
        let place = |text: &&str| {
            let parts: Vec<_> = text.split('/').collect();
            let label = |index: usize| (parts[index] != "-").then(|| parts[index].to_owned());
            Place {
                cluster: parts[0].to_owned(),
                node: parts[1].to_owned(),
                rack: label(2),
                zone: label(3),
            }
        };
        text.iter().map(place).collect()
    }

    /// Of each type: domains that exist, that are needed, pods of unknown domains, and which domains break the set.
    #[rstest]
    #[case::spread_over_all(
        &["eu/n1/r1/a", "eu/n2/r2/b", "us/n1/r1/c"], 1,
        ["Node 3 3 0:", "Rack 3 3 0:", "Zone 3 3 0:", "Cluster 2 3 0: eu=2"]
    )]
    #[case::on_one_node(
        &["eu/n1/r1/a", "eu/n1/r1/a", "us/n1/r1/c"], 1,
        ["Node 2 3 0: eu/n1=2", "Rack 2 3 0: a/r1=2", "Zone 2 3 0: a=2", "Cluster 2 3 0: eu=2"]
    )]
    #[case::a_zone_of_two_clusters(
        &["eu/n1/r1/a", "us/n1/r2/a", "us/n2/r3/b"], 1,
        ["Node 3 3 0:", "Rack 3 3 0:", "Zone 2 3 0: a=2", "Cluster 2 3 0: us=2"]
    )]
    #[case::a_larger_budget(
        &["eu/n1/r1/a", "eu/n1/r1/a", "us/n1/r1/c"], 2,
        ["Node 2 2 0:", "Rack 2 2 0:", "Zone 2 2 0:", "Cluster 2 2 0:"]
    )]
    #[case::no_labels(
        &["eu/n1/r1/-", "eu/n2/-/-", "eu//-/-"], 1,
        ["Node 2 3 0:", "Rack 1 3 1:", "Zone 0 3 2:", "Cluster 1 3 0: eu=2"]
    )]
    fn a2_a_domain_with_more_pods_than_the_budget_breaks_the_set(
        #[case] pods: &[&str],
        #[case] budget: u64,
        #[case] expected: [&str; 4],
    ) {
        let shown = domains(&[], &places(pods), budget).into_iter().map(|of| {
            let breaking = of.breaking.iter();
            let breaking = breaking.map(|domain| format!(" {}={}", domain.name, domain.pods));
            let breaking: String = breaking.collect();
            let DomainStatus {
                type_,
                domains,
                needed,
                unlabeled_pods,
                ..
            } = of;
            format!("{type_} {domains} {needed} {unlabeled_pods}:{breaking}")
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a2_nodes_without_pods_are_domains_too() {
        let nodes = places(&["eu/n1/r1/a", "eu/n2/r2/b", "eu/n3/r3/c"]);
        let pods = places(&["eu/n1/r1/a"; 3]);
        let zones = &domains(&nodes, &pods, 1)[2];
        assert_eq!(
            (zones.type_, zones.domains, zones.needed),
            (DomainType::Zone, 3, 3)
        );
    }

    #[test]
    fn a2_only_the_domains_with_the_most_pods_are_shown() {
        let names: Vec<_> = (0..30).map(|node| format!("eu/n{node:02}/-/-")).collect();
        let twice = names.iter().chain(&names).map(String::as_str);
        let mut pods = places(&twice.collect::<Vec<_>>());
        pods.extend(places(&["eu/n29/-/-"]));
        let nodes = &domains(&[], &pods, 1)[0];
        assert_eq!(
            (nodes.breaking_total, nodes.breaking.len()),
            (30, DOMAINS_SHOWN_MAX)
        );
        assert_eq!(
            (&*nodes.breaking[0].name, nodes.breaking[0].pods),
            ("eu/n29", 3)
        );
        assert_eq!(nodes.breaking[1].name, "eu/n00");
    }
}
