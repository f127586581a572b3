//! Applies the steps of a join in order: the member first, then the token, then the host.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::config::Cluster;
use serde_json::Value;

use super::{
    namespaces::JoinNamespaces,
    plan::{self, ExistingObjects, Step},
    token,
};
use crate::{
    Error,
    cluster_client::{Clusters, RequestError},
    kubeconfig::KubeconfigSource,
    membership::Membership,
    object::{Write, WriteMode},
    progress::{ApplyResult, NewToken, Progress, Reporter, TokenProblem},
    stored_kubeconfig::{self, StoredKubeconfig},
};

/// Which cluster becomes a member, and how.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// The member's name: a DNS label.
    pub name: String,
    /// Labels for the MemberCluster.
    pub labels: BTreeMap<String, String>,
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The namespace of the controller on the host, and of its ServiceAccount in the member.
    pub namespace: String,
    /// In which namespaces of the member the controller gets permissions.
    pub namespaces: JoinNamespaces,
    /// The requested lifetime of the token.
    pub token_duration: Duration,
    /// How long to wait until the controller uses the member.
    pub timeout: Duration,
    /// Whether writes are persisted.
    pub mode: WriteMode,
    /// The user's kubeconfig of the member.
    pub member: KubeconfigSource,
    /// The address at which the controller connects to the member; `None` for the one in the kubeconfig.
    pub member_server: Option<String>,
    /// The image of the controller of LocalReplicaSets that is installed in the member, if one is.
    pub replica_sets: Option<String>,
    /// Whether to store a kubeconfig that does not verify the member's certificate.
    pub allow_insecure: bool,
}

/// The inputs of a join.
pub(super) struct Join<'a> {
    pub(super) clusters: &'a Clusters<'a>,
    pub(super) request: &'a JoinRequest,
    pub(super) membership: Membership,
    /// How the controller connects to the member.
    pub(super) connection: Cluster,
}

/// The kubeconfig for the Secret, if it has to change, and the token in it, if that is new.
type Credentials = (Option<StoredKubeconfig>, Option<NewToken>);

impl Join<'_> {
    /// All steps, as far as they are known before the first write.
    pub(super) fn steps(&self, existing: &ExistingObjects) -> Vec<Step> {
        let mut steps = plan::member_steps(&self.membership, existing, None);
        steps.extend(self.replica_set_steps(existing, None));
        let host = plan::host_steps(&self.membership, &self.request.labels, existing, None);
        steps.extend(host);
        steps
    }

    fn replica_set_steps(&self, existing: &ExistingObjects, owner: Option<&str>) -> Vec<Step> {
        let image = self.request.replica_sets.as_deref();
        image.map_or_else(Vec::new, |image| {
            plan::replica_set_steps(&self.membership, existing, owner, image)
        })
    }

    /// Applies all steps and reports each.
    pub(super) async fn apply(
        &self,
        existing: &ExistingObjects,
        reporter: &mut dyn Reporter,
    ) -> Result<(), Error> {
        let mut role = None;
        let mut first = plan::member_steps(&self.membership, existing, None);
        first.truncate(plan::OWNER + 1);
        let mut now = first.clone();
        if plan::removes_permissions(&self.membership, existing) {
            // Not before the namespaces are empty.
            now.truncate(plan::OWNER);
        }
        for step in &now {
            role = self.apply_step(step, existing, None, reporter).await?;
        }
        // The other objects refer to the uid of the ClusterRole, which is known once that exists.
        let owner = role
            .as_ref()
            .and_then(|role| role["metadata"]["uid"].as_str());
        let steps = plan::member_steps(&self.membership, existing, owner);
        let replica_sets = self.replica_set_steps(existing, owner);
        for step in steps[first.len()..].iter().chain(&replica_sets) {
            self.apply_step(step, existing, None, reporter).await?;
        }
        let (stored, token) = self.credentials(existing).await?;
        let mut kubeconfig = None;
        if let Some(stored) = stored {
            kubeconfig = Some(stored.to_yaml(&self.membership.name, &self.membership.account())?);
            for warning in stored_kubeconfig::warnings(&self.connection) {
                reporter.warn(warning);
            }
        }
        let kubeconfig = kubeconfig.as_deref();
        for step in plan::host_steps(&self.membership, &self.request.labels, existing, kubeconfig) {
            let token = token.as_ref().filter(|_| step.object.is::<Secret>());
            self.apply_step(&step, existing, token, reporter).await?;
        }
        Ok(())
    }

    /// Applies one step. Returns the object if it was written.
    pub(super) async fn apply_step(
        &self,
        step: &Step,
        existing: &ExistingObjects,
        token: Option<&NewToken>,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<Value>, RequestError> {
        let cluster = self.clusters.client(step.cluster);
        // A dry run does not create the namespace, so the API server can't validate objects inside.
        let namespace = step.object.namespace.as_deref();
        let can_write = namespace.is_none_or(|name| existing.has_namespace(step.cluster, name));
        let mut result = match step.write {
            Write::None => ApplyResult::Unchanged,
            Write::Create(_) => ApplyResult::Created,
            Write::Patch(_) => ApplyResult::Configured,
        };
        let mut written = None;
        if self.request.mode == WriteMode::Persist || can_write {
            let response = cluster
                .write(&step.object, &step.write, self.request.mode)
                .await;
            written = match response {
                // A controller that has just started creates the namespace as well.
                Err(error) if error.code() == Some(409) && step.object.is::<Namespace>() => {
                    result = ApplyResult::Unchanged;
                    None
                }
                response => response?,
            };
        }
        reporter.progress(Progress::Applied {
            cluster: step.cluster,
            object: step.object.clone(),
            result,
            mode: self.request.mode,
            token: token.cloned(),
        });
        Ok(written)
    }

    /// Decides which kubeconfig the Secret holds: the stored token stays while the member accepts it.
    async fn credentials(&self, existing: &ExistingObjects) -> Result<Credentials, RequestError> {
        let Some(secret) = &existing.secret else {
            return self.new_token(None).await;
        };
        let Some(stored) = StoredKubeconfig::of_secret(secret) else {
            return self.new_token(Some(TokenProblem::Unreadable)).await;
        };
        // An API server accepts the token of a deleted account for some more seconds.
        if !existing.has_account() {
            return self.new_token(Some(TokenProblem::AccountDeleted)).await;
        }
        let problem = token::check(self.clusters.member, &self.membership, &stored).await?;
        if problem.is_some() {
            return self.new_token(problem).await;
        }
        if stored.connects_as(&self.connection) {
            return Ok((None, None));
        }
        let connection = self.connection.clone();
        let reconnected = StoredKubeconfig {
            connection,
            ..stored
        };
        Ok((Some(reconnected), None))
    }

    /// Requests a new token, which replaces one with the problem `replaces`. A dry run requests none.
    async fn new_token(&self, replaces: Option<TokenProblem>) -> Result<Credentials, RequestError> {
        let mut text = String::new();
        let mut new = None;
        if self.request.mode == WriteMode::Persist {
            let token = token::request(
                self.clusters.member,
                &self.membership,
                self.request.token_duration,
            )
            .await?;
            text = token.token;
            new = Some(NewToken {
                account: self.membership.account(),
                expires: token.expiration_timestamp.0,
                replaces,
            });
        }
        let stored = StoredKubeconfig::with_token(self.connection.clone(), text);
        Ok((Some(stored), new))
    }
}
