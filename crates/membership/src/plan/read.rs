//! What a plan is made from: reads sets, members and the labels of namespaces from the host.

use std::collections::{BTreeMap, BTreeSet};

use federation_controller::forecast::{Question, WhatIf};
use fedrs_api::{
    FederatedReplicaSetStatus, FieldError, MemberCluster, ObjectKey, SetKind, closest_name,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use serde::Serialize;

use super::request::{PlanRequest, Sets};
use crate::{
    Error, ValidSet,
    cluster_client::ClusterClient,
    federated_set::{self, SetObject, unreadable},
    member_cluster::selects_namespaces,
};

/// A set that the controller leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedSet {
    /// The kind of the set.
    pub kind: SetKind,
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A set to plan: one of the host, or of a manifest.
pub(super) struct PlannedSet {
    pub(super) set: ValidSet,
    pub(super) status: FederatedReplicaSetStatus,
    /// Whether the status is that of the present spec.
    pub(super) observed: bool,
    /// Whether the template is another one than the members have.
    new_template: bool,
}

/// What a plan is made from.
pub(super) struct Read {
    pub(super) members: Vec<MemberCluster>,
    pub(super) planned: Vec<PlannedSet>,
    pub(super) skipped: Vec<SkippedSet>,
    /// The labels of namespaces by name, if they are needed and can be read.
    labels: BTreeMap<String, BTreeMap<String, String>>,
}

impl Read {
    pub(super) async fn of_host(
        host: &ClusterClient,
        request: &PlanRequest,
    ) -> Result<Self, Error> {
        let members = host.list::<MemberCluster>("").await;
        let members = members
            .map_err(|error| unreadable(error, || "list memberclusters.fedrs.dev".to_owned()))?;
        check_names(&request.what_if, &members)?;
        let (mut planned, skipped) = sets_to_plan(host, &request.sets).await?;
        if let Some(replicas) = request.replicas {
            let sets = planned.iter_mut();
            sets.for_each(|set| set.set.frs.replicas = replicas);
        }
        let labels = namespace_labels(host, &planned, &members).await?;
        Ok(Self {
            members,
            planned,
            skipped,
            labels,
        })
    }

    /// What the controller would be asked about `set`.
    pub(super) fn question<'a>(
        &'a self,
        set: &'a PlannedSet,
        request: &'a PlanRequest,
        now: Timestamp,
    ) -> Question<'a> {
        let frs = &set.set.frs;
        Question {
            frs,
            status: &set.status,
            new_template: set.new_template,
            members: &self.members,
            namespace_labels: self.labels.get(&*frs.key.namespace),
            what_if: &request.what_if,
            settings: &request.settings,
            now,
        }
    }
}

/// The sets to plan, and those that the controller leaves as they are. A single one must not be among these.
async fn sets_to_plan(
    host: &ClusterClient,
    sets: &Sets,
) -> Result<(Vec<PlannedSet>, Vec<SkippedSet>), Error> {
    let found = match sets {
        Sets::One(name) => {
            let object = federated_set::find(host, name).await?;
            let set = object.key();
            let planned = PlannedSet::of_host(object).map_err(|reason| Error::SetNotPlanned {
                set,
                reason: reason.to_string(),
            })?;
            return Ok((vec![planned], Vec::new()));
        }
        Sets::Manifest(set) => {
            let live = get(host, &set.frs.key).await?;
            let planned = PlannedSet::of_manifest(set, live)?;
            return Ok((vec![planned], Vec::new()));
        }
        Sets::Namespace(namespace) => list(host, Some(namespace)).await?,
        Sets::All => list(host, None).await?,
    };
    let (mut planned, mut skipped) = (Vec::new(), Vec::new());
    for object in found {
        let key = object.key();
        match PlannedSet::of_host(object) {
            Ok(set) => planned.push(set),
            Err(reason) => skipped.push(SkippedSet {
                kind: key.kind,
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                reason: reason.to_string(),
            }),
        }
    }
    Ok((planned, skipped))
}

/// Why the controller leaves a set as it is.
#[derive(Debug, thiserror::Error)]
enum NotPlanned {
    #[error("it is being deleted")]
    Deleted,
    #[error(transparent)]
    Unreadable(Error),
    #[error("{}", list_errors(.0))]
    Invalid(Vec<FieldError>),
}

impl PlannedSet {
    /// The set as the host has it.
    fn of_host(object: SetObject) -> Result<Self, NotPlanned> {
        let set = object.read().map_err(NotPlanned::Unreadable)?;
        if set.metadata.deletion_timestamp.is_some() {
            return Err(NotPlanned::Deleted);
        }
        let valid = set.valid.map_err(NotPlanned::Invalid)?;
        let status = set.status;
        Ok(Self {
            observed: status.observed_generation == set.metadata.generation
                && status.observed_preferences_hash == valid.frs.preferences_hash,
            new_template: false,
            status,
            set: valid,
        })
    }

    /// The set of a manifest, which replaces `live`.
    fn of_manifest(set: &ValidSet, live: Option<SetObject>) -> Result<Self, Error> {
        let live = live.and_then(|live| Self::of_host(live).ok());
        let Some(live) = live else {
            return Ok(Self {
                set: set.clone(),
                status: FederatedReplicaSetStatus::default(),
                observed: true,
                new_template: true,
            });
        };
        let (new, old) = (&set.frs, &live.set.frs);
        for (field, is_same) in [
            ("spec.selector", new.selector == old.selector),
            ("spec.federation", new.federation == old.federation),
        ] {
            if !is_same {
                let kind = new.key.kind;
                return Err(Error::Immutable { field, kind });
            }
        }
        Ok(Self {
            new_template: new.labels != old.labels
                || new.min_ready_seconds != old.min_ready_seconds
                || new.template != old.template,
            set: set.clone(),
            ..live
        })
    }
}

/// The labels of the namespaces of `planned`, if members select namespaces by labels and the user may read them.
async fn namespace_labels(
    host: &ClusterClient,
    planned: &[PlannedSet],
    members: &[MemberCluster],
) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
    let names: BTreeSet<_> = planned
        .iter()
        .map(|set| &*set.set.frs.key.namespace)
        .collect();
    let namespaces = match (members.iter().any(selects_namespaces), names.first()) {
        (true, Some(name)) if names.len() == 1 => {
            let namespaces: Api<Namespace> = Api::all(host.client());
            let operation = format!("get namespace {name}");
            let found = host.call(operation, namespaces.get_opt(name)).await;
            found.map(|found| found.into_iter().collect())
        }
        (true, Some(_)) => host.list::<Namespace>("").await,
        _ => Ok(Vec::new()),
    };
    match namespaces {
        Err(error) if error.code() == Some(403) => Ok(BTreeMap::new()),
        namespaces => Ok(namespaces?
            .into_iter()
            .map(|namespace| {
                let name = namespace.name_any();
                (name, namespace.metadata.labels.unwrap_or_default())
            })
            .collect()),
    }
}

fn list_errors(errors: &[FieldError]) -> String {
    let errors = errors.iter().map(ToString::to_string);
    errors.collect::<Vec<_>>().join("; ")
}

/// Fails if `what_if` has a name that no member has.
fn check_names(what_if: &WhatIf, members: &[MemberCluster]) -> Result<(), Error> {
    let names: Vec<_> = members.iter().map(ResourceExt::name_any).collect();
    let named = [&what_if.lost, &what_if.cordoned, &what_if.drained];
    match named
        .into_iter()
        .flatten()
        .find(|name| !names.contains(name))
    {
        None => Ok(()),
        Some(name) => Err(Error::UnknownMember {
            name: name.clone(),
            closest: closest_name(name, names.iter().map(String::as_str)).map(str::to_owned),
        }),
    }
}

/// The set of this kind and name, if there is one.
async fn get(host: &ClusterClient, key: &ObjectKey) -> Result<Option<SetObject>, Error> {
    let ObjectKey {
        namespace,
        name,
        kind,
    } = key;
    let found = federated_set::get(host, *kind, namespace, name).await;
    found.map_err(|error| {
        unreadable(error, || {
            let plural = federated_set::plural(*kind);
            format!("get {plural}.fedrs.dev in the namespace {namespace}")
        })
    })
}

/// All sets of both kinds, by key. The CRD of one kind may not be installed.
async fn list(host: &ClusterClient, namespace: Option<&str>) -> Result<Vec<SetObject>, Error> {
    let mut all = Vec::new();
    let mut missing = 0;
    for kind in SetKind::ALL {
        match federated_set::list_kind(host, kind, namespace).await {
            Err(error) if error.code() == Some(404) => missing += 1,
            found => all.extend(found.map_err(|error| {
                unreadable(error, || {
                    let plural = federated_set::plural(kind);
                    let place = namespace.map_or("all namespaces".to_owned(), |name| {
                        format!("the namespace {name}")
                    });
                    format!("list {plural}.fedrs.dev in {place}")
                })
            })?),
        }
    }
    if missing == SetKind::ALL.len() {
        return Err(Error::CrdsMissing);
    }
    all.sort_by_key(SetObject::key);
    Ok(all)
}
