pub(crate) mod object;
pub(crate) mod pod;
pub(crate) mod selector;
pub(crate) mod taints;
pub(crate) mod replicaset {
    pub(crate) mod plan;
    pub(crate) mod ranking;
    pub(crate) mod status;
}
pub(crate) mod scheduler {
    pub(crate) mod amounts;
    pub(crate) mod filters;
    pub(crate) mod nodes;
    pub(crate) mod place;
    pub(crate) mod topology;
}
