//! The scheduler's view of the nodes: `node and pod changes -> allocatable and requested resources of each node`.
//!
//! Sums are updated with each pod that is added or removed, never counted again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::controllers::pod::Pod;
use crate::object::{list, map, text};

use super::amounts::Amounts;

/// One node and its pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeInfo {
    /// The node object; null for a node that pods name but that does not exist.
    pub(crate) object: Arc<Value>,
    pub(crate) allocatable: Amounts,
    /// The sum of its pods' requests.
    pub(crate) used: Amounts,
    /// Its pods by uid.
    pub(crate) pods: BTreeMap<String, (Arc<Value>, Amounts)>,
    /// The number of its pods by the uid of their controller.
    of_controller: BTreeMap<String, usize>,
    /// Its pods with required anti-affinity; most nodes have none.
    pub(crate) exclusive: BTreeMap<String, Arc<Value>>,
}

impl NodeInfo {
    /// A node without pods.
    #[cfg(test)]
    pub(crate) fn new(object: Arc<Value>) -> Self {
        let mut info = Self::default();
        info.set_object(object);
        info
    }

    /// Sets the node's new state.
    pub(crate) fn set_object(&mut self, object: Arc<Value>) {
        self.allocatable = Amounts::read(map(&object, "/status/allocatable"));
        self.object = object;
    }

    /// Whether the node exists.
    pub(crate) fn exists(&self) -> bool {
        !self.object.is_null()
    }

    /// Adds a pod, or sets its new state.
    pub(crate) fn add(&mut self, pod: Arc<Value>) {
        let view = Pod(&pod);
        self.remove(view.uid());
        let amounts = Amounts::of_pod(view);
        self.used.add(&amounts);
        if !view.controller_uid().is_empty() {
            *self
                .of_controller
                .entry(view.controller_uid().to_owned())
                .or_default() += 1;
        }
        if !anti_affinity(view).is_empty() {
            self.exclusive
                .insert(view.uid().to_owned(), Arc::clone(&pod));
        }
        let uid = view.uid().to_owned();
        self.pods.insert(uid, (pod, amounts));
    }

    /// Removes a pod, if it is here.
    pub(crate) fn remove(&mut self, uid: &str) {
        let Some((pod, amounts)) = self.pods.remove(uid) else {
            return;
        };
        self.used.subtract(&amounts);
        self.exclusive.remove(uid);
        let controller = Pod(&pod).controller_uid();
        if let Some(count) = self.of_controller.get_mut(controller) {
            *count -= 1;
            if *count == 0 {
                self.of_controller.remove(controller);
            }
        }
    }

    /// The number of this controller's pods.
    pub(crate) fn siblings(&self, controller: &str) -> usize {
        self.of_controller
            .get(controller)
            .copied()
            .unwrap_or_default()
    }

    /// The value of a label of the node: a topology domain.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        map(&self.object, "/metadata/labels")?.get(key)?.as_str()
    }

    /// The sum of the shares of `cpu` and `memory` that are requested, with `requests` added, in millionths. Pods without
    /// requests count as 100m and 200 MiB; otherwise all of them would go to one node.
    pub(crate) fn load_with(&self, requests: &Amounts) -> i64 {
        let share = |resource: &str, assumed: i64| {
            let capacity = self.allocatable.get(resource).max(1);
            let silent = i64::try_from(self.pods.len())
                .unwrap_or(i64::MAX)
                .saturating_mul(assumed);
            let used = self
                .used
                .get(resource)
                .max(silent)
                .saturating_add(requests.get(resource).max(assumed));
            i64::try_from(i128::from(used) * 1_000_000 / i128::from(capacity)).unwrap_or(i64::MAX)
        };
        share("cpu", 100).saturating_add(share("memory", 200 << 20))
    }
}

/// The required terms of a pod's anti-affinity.
pub(crate) fn anti_affinity(pod: Pod<'_>) -> &[Value] {
    list(
        pod.0,
        "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    )
}

/// The required terms of a pod's affinity.
pub(crate) fn affinity(pod: Pod<'_>) -> &[Value] {
    list(
        pod.0,
        "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    )
}

/// Whether the placement of the pod depends on that of other pods, so that a new pod can make it schedulable.
pub(crate) fn is_related(pod: Pod<'_>) -> bool {
    !affinity(pod).is_empty() || spread(pod).next().is_some()
}

/// A pod's hard spreading constraints.
pub(crate) fn spread(pod: Pod<'_>) -> impl Iterator<Item = &Value> {
    let constraints = list(pod.0, "/spec/topologySpreadConstraints");
    constraints
        .iter()
        .filter(|constraint| matches!(text(constraint, "/whenUnsatisfiable"), "" | "DoNotSchedule"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sums_follow_the_pods() {
        let mut node = NodeInfo::new(Arc::new(
            json!({"status": {"allocatable": {"cpu": "4", "pods": "9"}}}),
        ));
        let pod = |uid: &str, cpu: &str| {
            Arc::new(json!({
                "metadata": {"uid": uid, "ownerReferences": [{"uid": "rs", "controller": true}]},
                "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            }))
        };
        node.add(pod("a", "1"));
        node.add(pod("b", "1"));
        node.add(pod("b", "2"));
        assert_eq!(
            (
                node.used.get("cpu"),
                node.used.get("pods"),
                node.siblings("rs")
            ),
            (3000, 2, 2)
        );
        node.remove("a");
        node.remove("a");
        node.remove("b");
        assert_eq!(
            (
                node.used.get("cpu"),
                node.used.get("pods"),
                node.siblings("rs")
            ),
            (0, 0, 0)
        );
    }
}
