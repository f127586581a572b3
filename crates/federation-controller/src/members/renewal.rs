//! Renews the token of a kubeconfig in a Secret before it expires, if the Secret has the annotation for it: the controller's own,
//! and that of discovery, which writes nothing.
//!
//! ```text
//! due --TokenRequest of its ServiceAccount--> member --new token--> Secret on the host --watch--> a new client
//! ```
//!
//! No error, event or log shows a token.

use std::{sync::Arc, time::Duration};

use controller_base::{
    calls::{self, CallError},
    clock::Clock,
    event::{Event, EventType},
    event_recorder::{EventRecorder, InvolvedObject},
};
use fedrs_api::{MemberEventReason, names};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    kubeconfig::Kubeconfig,
    registry::Registry,
    secret::{kubeconfig_of, put_kubeconfig},
    token::{self, Account, Claims, renewal_due, token_request},
};
use crate::messages;

/// How often the time is checked: a clock may be set, and a machine may be suspended.
const CHECK_PERIOD: Duration = Duration::from_secs(30);
/// The first pause after a failure; doubled with each.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause after failures.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// API servers reject shorter lifetimes, in seconds.
const MIN_LIFETIME: i64 = 600;

/// Tokens have one or two kilobytes; servers reject headers of more than this.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// A member's response to a TokenRequest.
#[derive(Deserialize)]
struct TokenResponse {
    status: TokenStatus,
}

#[derive(Deserialize)]
struct TokenStatus {
    token: String,
}

/// Whose token is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The controller.
    Controller,
    /// `fedrs discovery`.
    Discovery,
}

impl Holder {
    /// Whether `account` may be the holder's. Whoever writes a Secret of discovery must not get the controller's token by naming
    /// its account: discovery can read this Secret, and not the controller's.
    fn may_have(self, account: &Account) -> bool {
        self == Self::Controller || account.name.starts_with(names::DISCOVERY)
    }
}

/// Renews one token once.
pub(super) struct Renewal {
    pub(super) holder: Holder,
    /// The controller's client.
    pub(super) member: Client,
    pub(super) host: Client,
    /// The Secret's namespace and name.
    pub(super) namespace: String,
    pub(super) secret: String,
    /// The kubeconfig's text.
    pub(super) text: String,
    pub(super) cluster: String,
    pub(super) registry: Arc<Registry>,
    pub(super) recorder: EventRecorder,
    pub(super) clock: Clock,
    pub(super) call_timeout: Duration,
    /// Cancelled when the Secret changes, or the term ends: no renewal starts any more. One in progress is completed, because
    /// its own write changes the Secret.
    pub(super) cancel: CancellationToken,
}

/// Why a token was not renewed.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error("the member issued no token: {0}")]
    Request(CallError),
    #[error("the member's response has no token that expires later")]
    Answer,
    #[error("failed to write the new token: {0}")]
    Write(CallError),
    #[error("the Secret has changed")]
    Changed,
    #[error("failed to put the token into the kubeconfig")]
    Text,
}

impl Renewal {
    /// Waits until the renewal is due, and renews the token. Ends when that is done: the watch of the Secret shows the new one.
    pub(super) async fn run(self) {
        let Some((claims, account)) = self.renewable() else {
            let message = messages::token_not_renewable(&self.place());
            let event = Event::warning(MemberEventReason::TokenNotRenewable, message.clone());
            return self.record(Some(&message), event);
        };
        let mut pause = Duration::ZERO;
        loop {
            let wait = async {
                sleep(pause).await;
                while !renewal_due(&claims, self.clock.machine()) {
                    sleep(CHECK_PERIOD.min(self.left(&claims))).await;
                }
            };
            if self.cancel.run_until_cancelled(wait).await.is_none() {
                return;
            }
            match self.renew(&claims, &account).await {
                Ok(until) => {
                    let message = messages::token_renewed(&self.place(), until);
                    return self.record(
                        None,
                        Event::normal(MemberEventReason::TokenRenewed, message),
                    );
                }
                // The watch shows the change, which starts another renewal.
                Err(_) if self.cancel.is_cancelled() => return,
                Err(RenewalError::Changed) => {}
                Err(error) => {
                    let message = messages::token_renewal_failed(
                        &self.place(),
                        claims.expires,
                        &error.to_string(),
                    );
                    let event =
                        Event::warning(MemberEventReason::TokenRenewalFailed, message.clone());
                    self.record(Some(&message), event);
                }
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, MAX_PAUSE);
        }
    }

    fn renewable(&self) -> Option<(Claims, Account)> {
        let kubeconfig = Kubeconfig::read(&self.text).ok()?;
        let claims = token::claims(kubeconfig.token()?)?;
        claims.renew_at()?;
        let account = claims.account.clone()?;
        self.holder.may_have(&account).then_some((claims, account))
    }

    fn left(&self, claims: &Claims) -> Duration {
        let at = claims.renew_at().unwrap_or(claims.expires);
        let left = at.duration_since(self.clock.machine());
        Duration::try_from(left).unwrap_or_default() + Duration::from_millis(1)
    }

    fn place(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.secret)
    }

    async fn renew(&self, claims: &Claims, account: &Account) -> Result<Timestamp, RenewalError> {
        let token = self.request(claims, account).await?;
        let until = token::claims(&token)
            .filter(|new| new.expires > claims.expires)
            .ok_or(RenewalError::Answer)?
            .expires;
        let text = with_token(&self.text, &token).ok_or(RenewalError::Text)?;
        self.write(&text).await?;
        Ok(until)
    }

    /// Requests a token of the same account, with the same lifetime, from the member.
    async fn request(&self, claims: &Claims, account: &Account) -> Result<String, RenewalError> {
        let lifetime = claims.lifetime().unwrap_or(MIN_LIFETIME).max(MIN_LIFETIME);
        let (path, body) =
            token_request(&account.namespace, &account.name, lifetime.unsigned_abs());
        let call = calls::post::<TokenResponse>(&self.member, &path, &body);
        let response = self.call(call).await.map_err(RenewalError::Request)?;
        let token = response.status.token;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(RenewalError::Answer);
        }
        Ok(token)
    }

    /// Writes the kubeconfig, unless the Secret is not as it was.
    async fn write(&self, text: &str) -> Result<(), RenewalError> {
        let path = format!(
            "/api/v1/namespaces/{}/secrets/{}",
            self.namespace, self.secret
        );
        let mut secret = self
            .call(calls::get::<Value>(&self.host, &path))
            .await
            .map_err(RenewalError::Write)?;
        if kubeconfig_of(&secret).as_ref() != Ok(&self.text) {
            return Err(RenewalError::Changed);
        }
        put_kubeconfig(&mut secret, text);
        let written = self.call(calls::put(&self.host, &path, &secret)).await;
        written.map(drop).map_err(RenewalError::Write)
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        calls::within(self.call_timeout, call).await
    }

    /// Records `event`; the condition Ready shows `error`, if the token is the controller's.
    fn record(&self, error: Option<&str>, event: Event) {
        if event.type_ == EventType::Warning {
            tracing::warn!(cluster = %self.cluster, "{}", event.message);
        } else {
            tracing::info!(cluster = %self.cluster, "{}", event.message);
        }
        if self.holder == Holder::Controller {
            let error = error.map(str::to_owned);
            self.registry.put_renewal_error(&self.cluster, error);
        }
        if let Some(involved) = involved_object(&self.registry, &self.cluster) {
            self.recorder.record(&involved, event);
        }
    }
}

/// The object of events about the member `name`; `None` while it has no MemberCluster.
pub(super) fn involved_object(registry: &Registry, name: &str) -> Option<InvolvedObject> {
    Some(InvolvedObject {
        api_version: names::API_VERSION,
        kind: "MemberCluster",
        namespace: String::new(),
        name: name.to_owned(),
        uid: registry.get(name)?.object.uid?,
    })
}

/// `text` with `token` in place of the current user's token, and nothing else changed; `None` if that is not possible.
fn with_token(text: &str, token: &str) -> Option<String> {
    let old = Kubeconfig::read(text).ok()?;
    let new = text.replace(old.token()?, token);
    let read = Kubeconfig::read(&new).ok()?;
    (read.token() == Some(token)).then_some(new)
}

#[cfg(test)]
#[path = "renewal_tests.rs"]
mod tests;
