//! The revisions of a set (L2): each template is kept as a ControllerRevision, which says later how its pods get to another one, and
//! to which template a user can return.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use controller_base::{
    calls::CallError,
    history::{History, Owner, Wanted},
};
use fedrs_api::{PodTemplate, labels, revision_name, template_hash};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    entry::{Entry, ValidSet},
    memory::{Kept, Memory},
};

/// The time between two attempts to keep a revision.
const RETRY_PERIOD: Duration = Duration::from_secs(30);

/// The revisions of the sets of a cluster.
pub(crate) struct Revisions<'a> {
    pub(crate) client: &'a Client,
    pub(crate) call_timeout: Duration,
}

impl Revisions<'_> {
    /// Keeps the current template, unless this process has. `in_use` has the hashes of the templates that pods have. What fails is
    /// tried again after a while: pods don't wait for it.
    pub(crate) async fn keep(
        &self,
        entry: &Entry,
        valid: &ValidSet,
        in_use: &BTreeSet<u32>,
        memory: &mut Memory,
    ) -> Result<(), CallError> {
        let kept = Kept {
            hash: valid.template.hash,
            change_cause: entry.change_cause.clone(),
            in_use: in_use.clone(),
        };
        if memory.kept.as_ref() == Some(&kept) {
            memory.keep_at = None;
            return Ok(());
        }
        if memory.keep_at.is_some_and(|at| at > Instant::now()) {
            return Ok(());
        }
        let set = &valid.set;
        let in_use = in_use.iter().map(|hash| revision_name(&set.name, *hash));
        let wanted = Wanted {
            owner: owner(valid),
            data: &data(valid),
            name: &revision_name(&set.name, valid.template.hash),
            change_cause: entry.change_cause.as_deref(),
            in_use: &in_use.collect(),
            limit: set.revision_history_limit,
        };
        let result = self.history().ensure(&wanted).await;
        match result {
            Ok(()) => {
                let template = Arc::clone(&valid.template.template);
                memory.templates.insert(valid.template.hash, Some(template));
                (memory.kept, memory.keep_at) = (Some(kept), None);
            }
            Err(_) => memory.keep_at = Some(Instant::now() + RETRY_PERIOD),
        }
        result
    }

    /// The template with this hash; `None` if no revision of the set has it.
    pub(crate) async fn template(
        &self,
        valid: &ValidSet,
        hash: u32,
        memory: &mut Memory,
    ) -> Result<Option<Arc<PodTemplate>>, CallError> {
        if let Some(known) = memory.templates.get(&hash) {
            return Ok(known.clone());
        }
        let set = &valid.set;
        let name = revision_name(&set.name, hash);
        let template = match self.history().get(&set.namespace, &name).await {
            // The one that the revision is named after.
            Ok(stored) => {
                let is_ours = stored.revision.foreign_owner(&set.uid).is_none();
                let template = is_ours.then(|| complete_template(&stored.data)).flatten();
                template.filter(|template| template_hash(template) == hash)
            }
            Err(error) if error.code() == Some(404) => None,
            Err(error) => return Err(error),
        };
        let template = template.map(Arc::new);
        memory.templates.insert(hash, template.clone());
        Ok(template)
    }

    fn history(&self) -> History<'_> {
        History {
            client: self.client,
            call_timeout: self.call_timeout,
        }
    }
}

fn owner(valid: &ValidSet) -> Owner<'_> {
    Owner {
        kind: "LocalReplicaSet",
        namespace: &valid.set.namespace,
        name: &valid.set.name,
        uid: &valid.set.uid,
        label: labels::LOCAL_REPLICA_SET,
    }
}

/// The path in the data of a revision to the template that pods got: with what the controller has added.
const COMPLETE: &str = "podTemplate";

/// The data of the current revision: the fields of the set that pods depend on, at their paths, and the template that pods get.
fn data(valid: &ValidSet) -> Value {
    let set = &valid.set;
    let constraints = set.antiaffinity.iter();
    let constraints = constraints
        .map(|constraint| json!({ "key": constraint.key, "maxPods": constraint.max_pods }));
    json!({
        "spec": {
            "template": { "metadata": set.template.metadata, "spec": set.template.spec },
            "accountId": set.account_id,
            "constraints": { "antiaffinity": constraints.collect::<Value>() },
        },
        COMPLETE: *valid.template.template,
    })
}

/// The template that pods got, if the data of the revision can be read.
pub(crate) fn complete_template(data: &Value) -> Option<PodTemplate> {
    PodTemplate::deserialize(data.get(COMPLETE)?).ok()
}
