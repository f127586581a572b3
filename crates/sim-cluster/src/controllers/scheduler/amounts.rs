//! Amounts of resources that a pod requests or a node has: `spec -> Amounts`. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::controllers::pod::Pod;
use crate::object::{list, map, text};
use crate::quantity::Quantity;

/// Amounts by resource: thousandths of `cpu`, whole units of all others. An absent resource is zero.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Amounts(BTreeMap<String, i64>);

impl Amounts {
    /// Parses a resource list; a malformed quantity counts as zero.
    pub(crate) fn read(resources: Option<&Map<String, Value>>) -> Self {
        let mut amounts = Self::default();
        for (resource, quantity) in resources.into_iter().flatten() {
            amounts
                .0
                .insert(resource.clone(), amount(resource, quantity));
        }
        amounts
    }

    /// The requests of a pod: the sum of its containers or its largest init container, the overhead, and one of `pods`.
    pub(crate) fn of_pod(pod: Pod<'_>) -> Self {
        let requests = |container: &Value| Self::read(map(container, "/resources/requests"));
        let mut steady = Self::default();
        for container in pod.containers() {
            steady.add(&requests(container));
        }
        // Sidecars keep running; the other init containers run one at a time, beside the sidecars before them.
        let (mut sidecars, mut peak) = (Self::default(), Self::default());
        for container in list(pod.0, "/spec/initContainers") {
            let mut needed = requests(container);
            if text(container, "/restartPolicy") == "Always" {
                steady.add(&needed);
                sidecars.add(&needed);
                needed = sidecars.clone();
            } else {
                needed.add(&sidecars);
            }
            peak.raise_to(&needed);
        }
        steady.raise_to(&peak);
        // Requests at the level of the pod replace those of its containers.
        for (resource, total) in Self::read(map(pod.0, "/spec/resources/requests")).0 {
            steady.0.insert(resource, total);
        }
        steady.add(&Self::read(map(pod.0, "/spec/overhead")));
        steady.0.insert("pods".to_owned(), 1);
        steady
    }

    /// The amount of one resource.
    pub(crate) fn get(&self, resource: &str) -> i64 {
        self.0.get(resource).copied().unwrap_or_default()
    }

    /// Resources and their amounts, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0
            .iter()
            .map(|(resource, amount)| (resource.as_str(), *amount))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            let sum = self.get(resource).saturating_add(*amount);
            self.0.insert(resource.clone(), sum);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            let rest = self.get(resource).saturating_sub(*amount);
            self.0.insert(resource.clone(), rest);
        }
    }

    /// Whether `room` has all that is more than zero.
    pub(crate) fn fits(&self, room: &Self) -> bool {
        let mut needed = self.iter().filter(|(_, amount)| *amount > 0);
        needed.all(|(resource, amount)| amount <= room.get(resource))
    }

    fn raise_to(&mut self, other: &Self) {
        for (resource, amount) in &other.0 {
            let most = self.get(resource).max(*amount);
            self.0.insert(resource.clone(), most);
        }
    }
}

fn amount(resource: &str, quantity: &Value) -> i64 {
    let read = match quantity {
        Value::String(text) => text.parse::<Quantity>().ok(),
        number => number.as_i64().map(Quantity::units),
    };
    read.map_or(0, |quantity| {
        if resource == "cpu" {
            quantity.millis()
        } else {
            quantity.value()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn container(cpu: &str, policy: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu}}, "restartPolicy": policy})
    }

    #[rstest]
    #[case::sum(json!({"containers": [container("100m", ""), container("1", "")]}), 1100)]
    #[case::init_is_greater(json!({"containers": [container("1", "")], "initContainers": [container("3", ""), container("2", "")]}), 3000)]
    #[case::sidecar_stays(json!({"containers": [container("1", "")], "initContainers": [container("1", "Always")]}), 2000)]
    #[case::init_beside_sidecar(json!({"containers": [container("1", "")],
        "initContainers": [container("1", "Always"), container("3", "")]}), 4000)]
    #[case::of_the_pod(json!({"containers": [container("1", "")], "resources": {"requests": {"cpu": "5"}}}), 5000)]
    #[case::overhead(json!({"containers": [container("1", "")], "overhead": {"cpu": "250m"}}), 1250)]
    fn requests(#[case] spec: Value, #[case] millis: i64) {
        let amounts = Amounts::of_pod(Pod(&json!({"spec": spec})));
        assert_eq!((amounts.get("cpu"), amounts.get("pods")), (millis, 1));
    }

    #[test]
    fn a_removed_pod_is_subtracted() {
        let one = Amounts::read(
            json!({"cpu": "1", "memory": "1Gi", "example.com/disk": "2"}).as_object(),
        );
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!(
            (sum.get("memory"), sum.get("example.com/disk")),
            (2 << 30, 4)
        );
        sum.subtract(&one);
        assert_eq!(sum, one);
    }
}
