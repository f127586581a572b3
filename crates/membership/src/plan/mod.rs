//! Plan: what the controller would do with the replicas of FederatedReplicaSets. Reads the host, and changes nothing.
//!
//! ```text
//! FederatedReplicaSets, MemberClusters --> federation_controller::forecast --> SetPlan for each set --> Plan
//! ```

mod set_plan;
mod summary;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};

use federation_controller::{
    config::Config,
    forecast::{End, Question, WhatIf, forecast},
};
use fedrs_api::{
    FederatedReplicaSet, FederatedReplicaSetStatus, FieldError, MemberCluster, ValidFrs,
    closest_name,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde::Serialize;

pub use self::{
    set_plan::{ClusterPlan, Move, SetPlan},
    summary::Summary,
};
use crate::{
    Error,
    cluster_client::{ClusterClient, RequestError},
    member_cluster::selects_namespaces,
};

/// Objects of one page of a list.
const PAGE_SIZE: u32 = 500;

/// Which sets are planned, and what changes about them and the members.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// Which sets.
    pub sets: Sets,
    /// Other replicas of the set than `spec.replicas`.
    pub replicas: Option<u32>,
    /// What changes about the members.
    pub what_if: WhatIf,
    /// The controller's configuration.
    pub settings: Config,
}

impl PlanRequest {
    /// Whether nothing is known of the controller's configuration.
    #[must_use]
    pub fn has_default_settings(&self) -> bool {
        self.settings == Config::default()
    }
}

/// Which sets are planned.
#[derive(Clone, Debug)]
pub enum Sets {
    /// One of the host.
    One {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All of a namespace.
    Namespace(String),
    /// All.
    All,
    /// A new one, or a changed one of the host.
    Manifest(Box<ValidFrs>),
}

/// What the controller would do with sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The sums over all sets.
    pub summary: Summary,
    /// The sets, by namespace and name.
    pub sets: Vec<SetPlan>,
    /// Sets that the controller leaves as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedSet>,
    /// What the user should know about the members.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A set that the controller leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedSet {
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A set to plan: one of the host, or of a manifest.
struct PlannedSet {
    frs: ValidFrs,
    status: FederatedReplicaSetStatus,
    /// Whether the status is that of the present spec.
    observed: bool,
    /// Whether the template is another one than the members have.
    new_template: bool,
}

/// Plans as `request` says, at `now`. Reads FederatedReplicaSets and MemberClusters, and where members select namespaces by
/// labels, those of the namespaces if the user may.
pub async fn plan(
    host: &ClusterClient,
    request: &PlanRequest,
    now: Timestamp,
) -> Result<Plan, Error> {
    let members = host.list::<MemberCluster>("").await;
    let members = read(members, || "list memberclusters.fedrs.dev".to_owned())?;
    check_names(&request.what_if, &members)?;
    let (planned, skipped) = sets_to_plan(host, &request.sets).await?;
    let labels = namespace_labels(host, &planned, &members).await?;
    let mut warnings = warnings::of_members(&members, &request.what_if);
    let mut is_disconnected = false;
    let plan_of = |mut set: PlannedSet| {
        if let Some(replicas) = request.replicas {
            set.frs.replicas = replicas;
        }
        let question = Question {
            frs: &set.frs,
            status: &set.status,
            new_template: set.new_template,
            members: &members,
            namespace_labels: labels.get(&*set.frs.key.namespace),
            what_if: &request.what_if,
            settings: &request.settings,
            now,
        };
        let forecast = forecast(&question);
        is_disconnected |= forecast.end == End::Disconnected;
        SetPlan::new(&question, &forecast, set.observed)
    };
    let sets: Vec<_> = planned.into_iter().map(plan_of).collect();
    warnings.extend(is_disconnected.then(warnings::disconnected));
    Ok(Plan {
        summary: Summary::of(&sets),
        sets,
        skipped,
        warnings,
    })
}

/// The sets to plan, and those that the controller leaves as they are. A single one must not be among these.
async fn sets_to_plan(
    host: &ClusterClient,
    sets: &Sets,
) -> Result<(Vec<PlannedSet>, Vec<SkippedSet>), Error> {
    let found = match sets {
        Sets::One { namespace, name } => {
            let object = get(host, namespace, name).await?;
            let object = object.ok_or_else(|| Error::SetNotFound {
                namespace: namespace.clone(),
                name: name.clone(),
            })?;
            let set = PlannedSet::of_host(&object).map_err(|reason| Error::SetNotPlanned {
                namespace: namespace.clone(),
                name: name.clone(),
                reason: reason.to_string(),
            })?;
            return Ok((vec![set], Vec::new()));
        }
        Sets::Manifest(frs) => {
            let live = get(host, &frs.key.namespace, &frs.key.name).await?;
            let set = PlannedSet::of_manifest(frs, live.as_ref())?;
            return Ok((vec![set], Vec::new()));
        }
        Sets::Namespace(namespace) => list(host, Some(namespace)).await?,
        Sets::All => list(host, None).await?,
    };
    let (mut planned, mut skipped) = (Vec::new(), Vec::new());
    for object in found {
        match PlannedSet::of_host(&object) {
            Ok(set) => planned.push(set),
            Err(reason) => skipped.push(SkippedSet {
                namespace: object.namespace().unwrap_or_default(),
                name: object.name_any(),
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
    #[error("this version of fedrs can't read it: {0}")]
    Unreadable(String),
    #[error("{}", list_errors(.0))]
    Invalid(Vec<FieldError>),
}

impl PlannedSet {
    /// The set as the host has it.
    fn of_host(set: &DynamicObject) -> Result<Self, NotPlanned> {
        if set.metadata.deletion_timestamp.is_some() {
            return Err(NotPlanned::Deleted);
        }
        let set: FederatedReplicaSet =
            (set.clone().try_parse()).map_err(|error| NotPlanned::Unreadable(error.to_string()))?;
        let frs = ValidFrs::check(&set).map_err(NotPlanned::Invalid)?;
        let status = set.status.unwrap_or_default();
        Ok(Self {
            observed: status.observed_generation == set.metadata.generation
                && status.observed_preferences_hash == frs.preferences_hash,
            new_template: false,
            status,
            frs,
        })
    }

    /// The set of a manifest, which replaces `live`.
    fn of_manifest(frs: &ValidFrs, live: Option<&DynamicObject>) -> Result<Self, Error> {
        let live = live.and_then(|live| Self::of_host(live).ok());
        let Some(live) = live else {
            return Ok(Self {
                frs: frs.clone(),
                status: FederatedReplicaSetStatus::default(),
                observed: true,
                new_template: true,
            });
        };
        for (field, is_same) in [
            ("spec.selector", frs.selector == live.frs.selector),
            ("spec.federation", frs.federation == live.frs.federation),
        ] {
            if !is_same {
                return Err(Error::Immutable { field });
            }
        }
        let written = |frs: &ValidFrs| {
            (
                frs.labels.clone(),
                frs.min_ready_seconds,
                frs.template.clone(),
            )
        };
        Ok(Self {
            new_template: written(frs) != written(&live.frs),
            frs: frs.clone(),
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
    let names: BTreeSet<_> = planned.iter().map(|set| &*set.frs.key.namespace).collect();
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

/// FederatedReplicaSets, not decoded: one that this version of fedrs can't read must not hide the others.
fn sets_of(host: &ClusterClient, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<FederatedReplicaSet>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(host.client(), namespace, &resource),
        None => Api::all_with(host.client(), &resource),
    }
}

async fn get(
    host: &ClusterClient,
    namespace: &str,
    name: &str,
) -> Result<Option<DynamicObject>, Error> {
    let operation = format!("get federatedreplicaset {namespace}/{name}");
    let sets = sets_of(host, Some(namespace));
    let found = host.call(operation, sets.get_opt(name)).await;
    read(found, || {
        format!("get federatedreplicasets.fedrs.dev in the namespace {namespace}")
    })
}

async fn list(host: &ClusterClient, namespace: Option<&str>) -> Result<Vec<DynamicObject>, Error> {
    let sets = sets_of(host, namespace);
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let operation = "list federatedreplicasets";
        let list = host.call(operation, sets.list(&page)).await;
        let list = read(list, || match namespace {
            Some(name) => format!("list federatedreplicasets.fedrs.dev in the namespace {name}"),
            None => "list federatedreplicasets.fedrs.dev in all namespaces".to_owned(),
        })?;
        found.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// The response to a request, which requires the permission to `need`.
fn read<T>(answer: Result<T, RequestError>, need: impl Fn() -> String) -> Result<T, Error> {
    answer.map_err(|error| match error.code() {
        Some(404) => Error::CrdsMissing,
        Some(403) => Error::MayNotRead {
            error,
            need: need(),
        },
        _ => Error::Request(error),
    })
}
