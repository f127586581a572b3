//! Creates a local workload, and its namespace.

use controller_base::calls::{self, CallError};
use fedrs_api::{LocalKind, RejectionKind};
use serde::{Serialize, de::IgnoredAny};
use serde_json::json;

use super::{Executor, LocalWorkload, failed_write};
use crate::{check::Outcome, manifest::Source, messages};

impl LocalWorkload<'_> {
    /// Creates the workload. Every error counts as a rejection (F28).
    pub(super) async fn create(self, source: &Source<'_>, replicas: u32) -> Outcome {
        if self.key.kind == LocalKind::Deployment {
            let taken_over = Box::pin(self.take_over(source, replicas)).await;
            if let Some(outcome) = taken_over {
                return outcome;
            }
        }
        let object = self.desired(source, replicas);
        let error = match self.post(&object).await {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        let retried = match error.code() {
            Some(404) => match self.create_namespace().await {
                Ok(()) => self.post(&object).await,
                Err(error) => Err(error),
            },
            Some(409) => return Box::pin(self.adopt(source, replicas)).await,
            _ => Err(error),
        };
        retried.unwrap_or_else(|error| failed_creation(&error))
    }

    pub(super) async fn post(self, object: &impl Serialize) -> Result<Outcome, CallError> {
        self.write("create", calls::POST, &self.collection(), object)
            .await
    }

    async fn create_namespace(self) -> Result<(), CallError> {
        let name = &*self.key.namespace;
        let Executor {
            namespaces,
            host_namespaces,
            ..
        } = self.executor;
        if !namespaces.create {
            return Err(CallError::NotSent(messages::namespace_not_created(name)));
        }
        // Without them the member might run what the host's pod security rejects.
        let mut labels = host_namespaces
            .labels(name)
            .map_err(|why| CallError::NotSent(messages::namespace_labels_unknown(name, &why)))?;
        labels.retain(|key, _| namespaces.copies(key));
        let metadata = json!({ "name": name, "labels": labels });
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
        let call = calls::post(&self.member.client, "/api/v1/namespaces", &namespace);
        match self.call("create namespace", call).await {
            Err(error) if error.code() != Some(409) => Err(error),
            Ok(IgnoredAny) | Err(_) => Ok(()),
        }
    }
}

/// The outcome of a failed creation (F28).
pub(super) fn failed_creation(error: &CallError) -> Outcome {
    match error.code() {
        // The member rejects the credentials and not the set: the probe will show that as well.
        Some(401) => failed_write(error),
        // A 403 may be about the namespace, or the credentials.
        Some(400 | 413 | 422) => Outcome::TemplateRejected {
            message: error.to_string(),
            creates: true,
        },
        _ => Outcome::Rejected {
            kind: RejectionKind::Rejected,
            message: error.to_string(),
        },
    }
}
