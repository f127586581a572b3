//! Plans with the state of the host.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use federation_controller::forecast::WhatIf;
use fedrs_api::ObjectKey;
use jiff::Timestamp;
use membership::{
    ValidSet,
    plan::{PlanRequest, Sets, plan},
};

use super::live_table;
use crate::{config_file, host::HostArgs, output::Format, set_name};

/// What is planned, and what changes.
#[derive(Args)]
pub(super) struct LiveArgs {
    /// Namespace of the sets. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Plan the sets of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Members that are unreachable for longer than their grace period
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    lose: Vec<String>,
    /// Members that get no new replicas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    cordon: Vec<String>,
    /// Members that all replicas leave
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    drain: Vec<String>,
    /// Replicas of the set, in place of its spec.replicas
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    set_replicas: Option<u32>,
    /// Configuration file of the controller, which has its surge and timeouts. By default the default configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl LiveArgs {
    /// Whether any of the options is given.
    pub(super) fn is_used(&self) -> bool {
        let names = [&self.lose, &self.cordon, &self.drain];
        names.iter().any(|names| !names.is_empty())
            || self.all_namespaces
            || self.namespace.is_some()
            || self.set_replicas.is_some()
            || self.config.is_some()
    }

    fn request(self, sets: Sets) -> anyhow::Result<PlanRequest> {
        Ok(PlanRequest {
            sets,
            replicas: self.set_replicas,
            what_if: WhatIf {
                lost: self.lose.into_iter().collect(),
                cordoned: self.cordon.into_iter().collect(),
                drained: self.drain.into_iter().collect(),
            },
            settings: config_file::read(self.config.as_deref())?,
        })
    }
}

/// Plans a set of the host, or several, as text.
pub(super) async fn plan_sets(
    set: Option<&str>,
    args: LiveArgs,
    host: HostArgs,
    format: Option<Format>,
) -> anyhow::Result<String> {
    if set.is_none() && args.set_replicas.is_some() {
        bail!("--set-replicas needs the name of one set");
    }
    let host = host.client().await?;
    let sets = match set {
        Some(set) => {
            let set = set_name::parse(set, args.namespace.as_deref())?;
            Sets::One(set.on(&host))
        }
        None if args.all_namespaces => Sets::All,
        None => {
            let namespace = args.namespace.clone();
            Sets::Namespace(namespace.unwrap_or_else(|| host.namespace().to_owned()))
        }
    };
    let request = args.request(sets)?;
    let plan = plan(&host, &request, Timestamp::now()).await?;
    Ok(live_table::format(&plan, &request, format))
}

/// Plans the set of a manifest, as text.
pub(super) async fn plan_manifest(
    set: ValidSet,
    args: LiveArgs,
    host: HostArgs,
    format: Option<Format>,
) -> anyhow::Result<String> {
    let host = host.client().await?;
    let set = placed(set, args.namespace.as_deref(), host.namespace())?;
    let request = args.request(Sets::Manifest(Box::new(set)))?;
    let plan = plan(&host, &request, Timestamp::now()).await?;
    Ok(live_table::format(&plan, &request, format))
}

/// The set of a manifest in its namespace: its own, that of the option, or the `default`.
pub(crate) fn placed(
    mut set: ValidSet,
    option: Option<&str>,
    default: &str,
) -> anyhow::Result<ValidSet> {
    let own = &*set.frs.key.namespace;
    let namespace = match option {
        Some(option) if !own.is_empty() && own != option => {
            bail!("conflicting namespaces {own:?} and {option:?}")
        }
        Some(option) => option,
        None if own.is_empty() => default,
        None => own,
    };
    let ObjectKey { name, kind, .. } = set.frs.key.clone();
    set.frs.key = ObjectKey::of_kind(kind, namespace, name);
    Ok(set)
}
