//! Explains AvailabilitySets: which failures would break them, and which layout would bear them (A1, A2).

use fedrs_api::{AvailabilitySet, AvailabilitySetStatus, DomainStatus, DomainType, pluralize};
use kube::Api;

use crate::{Error, cluster_client::ClusterClient};

/// The domains of a sentence that are named.
const NAMED_MAX: usize = 4;

/// The AvailabilitySet `name` in `namespace`.
pub async fn get(
    host: &ClusterClient,
    namespace: &str,
    name: &str,
) -> Result<AvailabilitySet, Error> {
    let all: Api<AvailabilitySet> = Api::namespaced(host.client(), namespace);
    let operation = format!("get availabilityset/{name}");
    let found = host.call(operation, all.get_opt(name)).await?;
    found.ok_or_else(|| Error::AvailabilitySetNotFound(format!("{namespace}/{name}")))
}

/// For each type of domain whose failure would break the set, or of which too little is known: a sentence, with the layout that would bear
/// it (A2).
#[must_use]
pub fn advice(status: &AvailabilitySetStatus) -> Vec<String> {
    let domains = status.domains.iter();
    domains.flat_map(|domain| of_type(status, domain)).collect()
}

fn of_type(status: &AvailabilitySetStatus, domain: &DomainStatus) -> Vec<String> {
    let type_ = domain.type_.as_str().to_lowercase();
    let mut sentences = Vec::new();
    if domain.breaking_total > 0 {
        sentences.push(breaking(status, domain, &type_));
    }
    if domain.unlabeled_pods > 0 && domain.type_ != DomainType::Cluster {
        let pods = pluralize(domain.unlabeled_pods, "pod");
        sentences.push(format!(
            "It is not known in which {type_} {pods} run: the nodes have no label for it."
        ));
    }
    sentences
}

fn breaking(status: &AvailabilitySetStatus, domain: &DomainStatus, type_: &str) -> String {
    let named = domain.breaking.iter().take(NAMED_MAX);
    let named = named.map(|of| format!("{} ({})", of.name, pluralize(of.pods, "pod")));
    let named = named.collect::<Vec<_>>().join(", ");
    let total = usize::try_from(domain.breaking_total).unwrap_or_default();
    let more = match total.saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" or {more} more"),
    };
    let (budget, exist) = (status.budget.max(1), domain.domains);
    let needed = pluralize(domain.needed, type_);
    let bears = format!(
        "With at most {} per {type_}, in {needed}, it would not",
        pluralize(budget, "pod")
    );
    let there = if exist >= domain.needed {
        format!("there are {exist}.")
    } else {
        let would_do = status.pods.saturating_add(exist - 1) / exist.max(1);
        format!("but there are {exist}, for which a budget of {would_do} would do.")
    };
    format!("The loss of a {type_} breaks it: {named}{more}. {bears}; {there}")
}

#[cfg(test)]
mod tests {
    use fedrs_api::DomainPods;
    use rstest::rstest;

    use super::*;

    fn domain(type_: DomainType, domains: i32, breaking: &[(&str, i32)]) -> DomainStatus {
        let pods = |(name, pods): &(&str, i32)| DomainPods {
            name: (*name).to_owned(),
            pods: *pods,
        };
        DomainStatus {
            type_,
            domains,
            unlabeled_pods: 0,
            breaking: breaking.iter().map(pods).collect(),
            breaking_total: breaking.len().try_into().unwrap(),
            needed: 6,
        }
    }

    #[rstest]
    #[case::bears_it(domain(DomainType::Node, 6, &[]), &[])]
    #[case::can_be_spread(
        domain(DomainType::Node, 9, &[("eu/n1", 2)]),
        &["The loss of a node breaks it: eu/n1 (2 pods). With at most 1 pod per node, in 6 nodes, it would not; there are 9."]
    )]
    #[case::too_few(
        domain(DomainType::Zone, 2, &[("a", 3), ("b", 3)]),
        &["The loss of a zone breaks it: a (3 pods), b (3 pods). With at most 1 pod per zone, in 6 zones, it would not; \
           but there are 2, for which a budget of 3 would do."]
    )]
    #[case::many(
        domain(DomainType::Rack, 9, &[("1", 2), ("2", 2), ("3", 2), ("4", 2), ("5", 2)]),
        &["The loss of a rack breaks it: 1 (2 pods), 2 (2 pods), 3 (2 pods), 4 (2 pods) or 1 more. \
           With at most 1 pod per rack, in 6 racks, it would not; there are 9."]
    )]
    #[case::unlabeled(
        DomainStatus { unlabeled_pods: 2, ..domain(DomainType::Rack, 0, &[]) },
        &["It is not known in which rack 2 pods run: the nodes have no label for it."]
    )]
    fn a2_the_layout_that_would_bear_a_failure(
        #[case] domain: DomainStatus,
        #[case] expected: &[&str],
    ) {
        let status = AvailabilitySetStatus {
            pods: 6,
            budget: 1,
            domains: vec![domain],
            ..AvailabilitySetStatus::default()
        };
        assert_eq!(advice(&status), expected);
    }
}
