//! Tables of what pods have in common, in files and messages: labels, ports and nodes are there once, and a pod has their places.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use crate::{
    node::Node,
    pod::{Labels, Pod, PortNames, Shared},
};

/// Values in the order in which they are used first, each once: equal ones are interned, and have the same address.
pub(crate) struct Table<'a, T> {
    pub(crate) values: Vec<&'a T>,
    places: HashMap<*const T, usize>,
}

impl<T> Default for Table<'_, T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<'a, T> Table<'a, T> {
    /// The place of the value, from 0.
    pub(crate) fn place(&mut self, value: &'a Arc<T>) -> usize {
        *self.places.entry(Arc::as_ptr(value)).or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
}

/// The tables that pods are read with.
pub(crate) struct Tables {
    labels: Vec<Arc<Labels>>,
    ports: Vec<Arc<PortNames>>,
    nodes: Vec<Arc<Node>>,
}

/// A pod with the places of its labels, ports and node.
pub(crate) struct PodRow {
    pub(crate) name: Box<str>,
    pub(crate) labels: usize,
    pub(crate) ports: usize,
    pub(crate) node: Option<usize>,
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Ipv6Addr>,
    pub(crate) is_ready: bool,
    pub(crate) is_terminating: bool,
}

impl Tables {
    /// Tables with these values, which are interned in `shared`.
    pub(crate) fn of(
        shared: &mut Shared,
        labels: impl Iterator<Item = Labels>,
        ports: impl Iterator<Item = PortNames>,
        nodes: impl Iterator<Item = Node>,
    ) -> Self {
        Self {
            labels: labels.map(|labels| shared.labels.get(labels)).collect(),
            ports: ports.map(|ports| shared.ports.get(ports)).collect(),
            nodes: nodes.map(|node| shared.nodes.get(node)).collect(),
        }
    }

    /// The pod of a row; `None` if it has a place that is not in its table.
    pub(crate) fn pod(&self, row: PodRow, cluster: &Arc<str>) -> Option<Pod> {
        let node = match row.node {
            Some(node) => Some(Arc::clone(self.nodes.get(node)?)),
            None => None,
        };
        Some(Pod {
            name: row.name,
            cluster: Arc::clone(cluster),
            node,
            labels: Arc::clone(self.labels.get(row.labels)?),
            ports: Arc::clone(self.ports.get(row.ports)?),
            v4: row.v4,
            v6: row.v6.map(Box::new),
            is_ready: row.is_ready,
            is_terminating: row.is_terminating,
        })
    }
}
