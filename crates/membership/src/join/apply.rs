//! Applies the steps of a join in order: the member first, then the token, then the host.

use std::{collections::BTreeMap, time::Duration};

use kube::config::Cluster;
use serde_json::Value;

use super::{
    error::JoinError,
    plan::{self, ExistingObjects, Step},
    token,
};
use crate::{
    cluster_client::{ClusterClient, Side},
    membership::Membership,
    object::{NAMESPACE, SECRET, Write, WriteMode},
    progress::{ApplyResult, NewToken, Progress, Reporter, TokenProblem},
    stored_kubeconfig::{self, StoredKubeconfig},
};

/// The inputs of a join.
pub(super) struct Join<'a> {
    pub(super) host: &'a ClusterClient,
    pub(super) member: &'a ClusterClient,
    pub(super) membership: Membership,
    /// The user's labels for the MemberCluster.
    pub(super) labels: BTreeMap<String, String>,
    /// How the controller connects to the member.
    pub(super) connection: Cluster,
    pub(super) token_duration: Duration,
    pub(super) mode: WriteMode,
}

/// The kubeconfig for the Secret.
enum Credentials {
    /// The one in the Secret.
    Unchanged,
    /// The stored token with another connection.
    Reconnected(String),
    /// A new token; `None` in a dry run.
    New(String, Option<NewToken>),
}

impl Join<'_> {
    /// All steps, as far as they are known before the first write.
    pub(super) fn steps(&self, existing: &ExistingObjects) -> Vec<Step> {
        let mut steps = plan::member_steps(&self.membership, existing, None);
        let host = plan::host_steps(&self.membership, &self.labels, existing, None);
        steps.extend(host);
        steps
    }

    /// Applies all steps and reports each.
    pub(super) async fn apply(
        &self,
        existing: &ExistingObjects,
        reporter: &mut dyn Reporter,
    ) -> Result<(), JoinError> {
        let mut role = None;
        let mut first = plan::member_steps(&self.membership, existing, None);
        first.truncate(plan::OWNER + 1);
        for step in &first {
            role = self.apply_step(step, existing, None, reporter).await?;
        }
        // The other objects refer to the uid of the ClusterRole, which is known once that exists.
        let owner = role
            .as_ref()
            .and_then(|role| role["metadata"]["uid"].as_str());
        let steps = plan::member_steps(&self.membership, existing, owner);
        for step in &steps[first.len()..] {
            self.apply_step(step, existing, None, reporter).await?;
        }
        let (kubeconfig, token) = match self.credentials(existing).await? {
            Credentials::Unchanged => (None, None),
            Credentials::Reconnected(kubeconfig) => (Some(kubeconfig), None),
            Credentials::New(kubeconfig, token) => (Some(kubeconfig), token),
        };
        if kubeconfig.is_some() {
            for warning in stored_kubeconfig::warnings(&self.connection) {
                reporter.warn(warning);
            }
        }
        let kubeconfig = kubeconfig.as_deref();
        for step in plan::host_steps(&self.membership, &self.labels, existing, kubeconfig) {
            let token = token.as_ref().filter(|_| step.object.kind == SECRET);
            self.apply_step(&step, existing, token, reporter).await?;
        }
        Ok(())
    }

    /// Applies one step. Returns the object if it was written.
    async fn apply_step(
        &self,
        step: &Step,
        existing: &ExistingObjects,
        token: Option<&NewToken>,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<Value>, JoinError> {
        let (cluster, namespace) = match step.side {
            Side::Host => (self.host, &existing.host_namespace),
            Side::Member => (self.member, &existing.member_namespace),
        };
        // A dry run does not create the namespace, so the API server can't validate objects inside.
        let can_write = step.object.namespace.is_none() || namespace.is_some();
        let mut result = match step.write {
            Write::None => ApplyResult::Unchanged,
            Write::Create(_) => ApplyResult::Created,
            Write::Patch(_) => ApplyResult::Configured,
        };
        let mut written = None;
        if self.mode == WriteMode::Persist || can_write {
            let response = cluster.write(&step.object, &step.write, self.mode).await;
            written = match response {
                // A controller that has just started creates the namespace as well.
                Err(error) if error.code() == Some(409) && step.object.kind == NAMESPACE => {
                    result = ApplyResult::Unchanged;
                    None
                }
                response => response?,
            };
        }
        reporter.progress(Progress::Applied {
            side: step.side,
            object: step.object.clone(),
            result,
            mode: self.mode,
            token: token.cloned(),
        });
        Ok(written)
    }

    /// Decides which kubeconfig the Secret holds: the stored token stays while the member accepts it.
    async fn credentials(&self, existing: &ExistingObjects) -> Result<Credentials, JoinError> {
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
        let problem = token::check(self.member, &self.membership, &stored).await?;
        if problem.is_some() {
            return self.new_token(problem).await;
        }
        if stored.connects_as(&self.connection) {
            return Ok(Credentials::Unchanged);
        }
        let connection = self.connection.clone();
        let stored = StoredKubeconfig {
            connection,
            ..stored
        };
        Ok(Credentials::Reconnected(self.to_yaml(&stored)?))
    }

    /// Requests a new token, which replaces one with the problem `replaces`. A dry run requests none.
    async fn new_token(&self, replaces: Option<TokenProblem>) -> Result<Credentials, JoinError> {
        let (text, token) = match self.mode {
            WriteMode::DryRun => (String::new(), None),
            WriteMode::Persist => {
                let token = token::request(self.member, &self.membership, self.token_duration);
                let token = token.await?;
                let new = NewToken {
                    account: self.membership.account(),
                    expires: token.expires,
                    replaces,
                };
                (token.text, Some(new))
            }
        };
        let stored = StoredKubeconfig::with_token(self.connection.clone(), text);
        Ok(Credentials::New(self.to_yaml(&stored)?, token))
    }

    fn to_yaml(&self, stored: &StoredKubeconfig) -> Result<String, JoinError> {
        let yaml = stored.to_yaml(&self.membership.name, &self.membership.account());
        yaml.map_err(|error| JoinError::StoredKubeconfig(error.to_string()))
    }
}
