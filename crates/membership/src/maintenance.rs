//! Starts and ends planned work on nodes of members, and reads how far it is: Maintenances (M9, M15).

use std::collections::BTreeMap;

use fedrs_api::{Maintenance, MaintenanceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::{Api, ResourceExt, api::PostParams};
use serde_json::json;

use jiff::Timestamp;

use crate::{
    Error,
    cluster_client::ClusterClient,
    object::{FIELD_MANAGER, ObjectRef, Write, WriteMode, none_if_not_found},
};

/// Which nodes are worked on, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The clusters, by name; all, if there are none.
    pub clusters: Vec<String>,
    /// The labels of the nodes; all nodes of the clusters, if there are none.
    pub labels: BTreeMap<String, String>,
    /// When it begins; `None` for at once.
    pub start_time: Option<Timestamp>,
    /// For how many seconds the machines are away, if that is known.
    pub duration_seconds: Option<i64>,
    /// When pods leave whatever holds them up; `None` for what the controllers of the clusters say.
    pub deadline: Option<Timestamp>,
    /// Why, for people.
    pub reason: String,
    /// The federation; empty for the one without a name.
    pub federation: String,
}

impl Work {
    fn into_spec(self) -> MaintenanceSpec {
        MaintenanceSpec {
            clusters: (!self.clusters.is_empty()).then_some(self.clusters),
            node_selector: LabelSelector {
                match_labels: (!self.labels.is_empty()).then_some(self.labels),
                match_expressions: None,
            },
            start_time: self.start_time.map(Time),
            duration_seconds: self.duration_seconds,
            deadline: self.deadline.map(Time),
            reason: self.reason,
            ended: false,
            federation: self.federation,
        }
    }
}

/// Creates the Maintenance `name`.
pub async fn start(host: &ClusterClient, name: &str, work: Work) -> Result<Maintenance, Error> {
    let maintenance = Maintenance::new(name, work.into_spec());
    let all: Api<Maintenance> = Api::all(host.client());
    let parameters = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let created = all.create(&parameters, &maintenance);
    let created = host.call(format!("create maintenance/{name}"), created);
    Ok(created.await?)
}

/// Ends the Maintenance `name`: the controller removes its marks. Returns whether it had not ended before.
pub async fn end(host: &ClusterClient, name: &str) -> Result<bool, Error> {
    let before = get(host, name).await?;
    if before.spec.ended {
        return Ok(false);
    }
    let object = ObjectRef::cluster_scoped::<Maintenance>(name);
    let patch = json!({ "metadata": { "uid": before.uid() }, "spec": { "ended": true } });
    host.write(&object, &Write::Patch(patch), WriteMode::Persist)
        .await?;
    Ok(true)
}

/// The Maintenance `name`.
pub async fn get(host: &ClusterClient, name: &str) -> Result<Maintenance, Error> {
    let all: Api<Maintenance> = Api::all(host.client());
    let operation = format!("get maintenance/{name}");
    let found = host.call(operation, all.get_opt(name)).await?;
    found.ok_or_else(|| Error::MaintenanceNotFound(name.to_owned()))
}

/// All Maintenances, by name.
pub async fn list(host: &ClusterClient) -> Result<Vec<Maintenance>, Error> {
    let listed = none_if_not_found(host.list::<Maintenance>("").await)?;
    let mut all = listed.ok_or(Error::CrdsMissing)?;
    all.sort_by_key(ResourceExt::name_any);
    Ok(all)
}
