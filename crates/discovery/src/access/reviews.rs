//! What is asked of the host: who has a token, and who may get a set.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use controller_base::calls;
use jiff::Timestamp;
use kube::Client;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    cache::{Answer, Cache, HostAway, Lifetime},
    metrics::AccessMetrics,
    refusal::Refusal,
    token::{Token, TokenDigest},
};
use crate::{set::SetKey, user::User};

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// How long a review may take, with the wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Reviews at the same time.
const AT_ONCE: usize = 32;
/// Tokens that are remembered, by their digests.
const TOKENS: usize = 20_000;
/// Answers about users and sets that are remembered.
const RIGHTS: usize = 100_000;
/// For how long what was allowed stays allowed while the host is away.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Asks the host, and remembers its answers.
pub(super) struct Reviews {
    host: Client,
    audience: String,
    tokens: Cache<TokenDigest, Option<Identity>>,
    rights: Cache<Question, Right>,
    turns: Semaphore,
    is_away: AtomicBool,
    metrics: AccessMetrics,
}

impl fmt::Debug for Reviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Reviews");
        text.field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

/// The user of a token.
#[derive(Clone, Debug)]
struct Identity {
    user: Arc<User>,
    expires: Option<Timestamp>,
}

/// Whether a user may get a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    user: Arc<User>,
    /// None: whether it may list those of all namespaces.
    set: Option<SetKey>,
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Allowed,
    Denied,
}

/// A review, as far as it is read.
#[derive(Deserialize)]
struct Review<S> {
    status: S,
}

#[derive(Deserialize)]
struct TokenStatus {
    #[serde(default)]
    authenticated: bool,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    user: UserInfo,
}

#[derive(Default, Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct AccessStatus {
    #[serde(default)]
    allowed: bool,
    #[serde(default)]
    denied: bool,
}

/// As the API server remembers what its own webhook says of tokens; refusals for a short time, as a token may become valid.
impl Answer for Option<Identity> {
    fn lifetime(&self) -> Lifetime {
        match self {
            Some(_) => Lifetime {
                fresh: Duration::from_secs(60),
                stale: STALE,
            },
            None => Lifetime {
                fresh: Duration::from_secs(10),
                stale: Duration::ZERO,
            },
        }
    }
}

/// As the API server remembers what its own webhook allows.
impl Answer for Right {
    fn lifetime(&self) -> Lifetime {
        match self {
            Self::Allowed => Lifetime {
                fresh: Duration::from_secs(5 * 60),
                stale: STALE,
            },
            Self::Denied => Lifetime {
                fresh: Duration::from_secs(30),
                stale: Duration::ZERO,
            },
        }
    }
}

impl Reviews {
    pub(super) fn new(host: Client, audience: String, metrics: AccessMetrics) -> Self {
        Self {
            host,
            audience,
            tokens: Cache::new(TOKENS),
            rights: Cache::new(RIGHTS),
            turns: Semaphore::new(AT_ONCE),
            is_away: AtomicBool::new(false),
            metrics,
        }
    }

    /// Whether the last review failed.
    pub(super) fn is_host_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// The user of a token.
    ///
    /// # Errors
    /// If it is nobody's, or the host can't be asked.
    pub(super) async fn user_of(&self, token: &Token<'_>) -> Result<Arc<User>, Refusal> {
        let ask = async || self.review_token(token).await;
        let identity = self.tokens.answer(&token.digest(), ask).await;
        let identity = identity.inspect_err(|_| self.metrics.count_denied("host_away"))?;
        let valid = identity.filter(|identity| {
            let mut end = identity.expires.iter();
            end.all(|end| *end > Timestamp::now())
        });
        if valid.is_none() {
            self.metrics.count_denied("unauthenticated");
        }
        valid
            .map(|identity| identity.user)
            .ok_or(Refusal::NotAuthenticated)
    }

    /// Whether the user may get the set.
    ///
    /// # Errors
    /// If the host can't be asked.
    pub(super) async fn may_get(&self, user: &Arc<User>, set: &SetKey) -> Result<bool, HostAway> {
        self.may(user, Some(set)).await
    }

    /// Whether the user may list the sets of all namespaces.
    ///
    /// # Errors
    /// If the host can't be asked.
    pub(super) async fn may_list(&self, user: &Arc<User>) -> Result<bool, HostAway> {
        self.may(user, None).await
    }

    async fn may(&self, user: &Arc<User>, set: Option<&SetKey>) -> Result<bool, HostAway> {
        let question = Question {
            user: Arc::clone(user),
            set: set.cloned(),
        };
        let ask = async || self.review_access(&question).await;
        let answer = self.rights.answer(&question, ask).await;
        match answer {
            Ok(Right::Allowed) => {}
            Ok(Right::Denied) => self.metrics.count_denied("forbidden"),
            Err(HostAway) => self.metrics.count_denied("host_away"),
        }
        answer.map(|right| right == Right::Allowed)
    }

    async fn review_token(&self, token: &Token<'_>) -> Result<Option<Identity>, HostAway> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token.as_str(), "audiences": [self.audience] },
        });
        let status: TokenStatus = self.ask("TokenReview", TOKEN_REVIEWS, &review).await?;
        // An API server that does not know audiences names none: the token may be meant for another service.
        let is_valid = status.authenticated && status.audiences.contains(&self.audience);
        let is_valid = is_valid && !status.user.username.is_empty();
        let UserInfo {
            username,
            uid,
            groups,
            extra,
        } = status.user;
        let user = User {
            name: username,
            uid,
            groups,
            extra,
        };
        Ok(is_valid.then(|| Identity {
            user: Arc::new(user),
            expires: token.expires(),
        }))
    }

    async fn review_access(&self, question: &Question) -> Result<Right, HostAway> {
        let Question { user, set } = question;
        let verb = if set.is_some() { "get" } else { "list" };
        // Without names, the host is asked for all.
        let namespace = set.as_ref().map_or("", |set| &*set.namespace);
        let name = set.as_ref().map_or("", |set| &*set.name);
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
                "resourceAttributes": {
                    "verb": verb, "group": "fedrs.dev", "version": "v1alpha1", "resource": "endpointsets",
                    "namespace": namespace, "name": name,
                },
            },
        });
        let ask = self.ask("SubjectAccessReview", ACCESS_REVIEWS, &review);
        let status: AccessStatus = ask.await?;
        let is_allowed = status.allowed && !status.denied;
        Ok(if is_allowed {
            Right::Allowed
        } else {
            Right::Denied
        })
    }

    /// Asks the host. The log says why it can't be asked, once until it can.
    async fn ask<S: DeserializeOwned>(
        &self,
        kind: &'static str,
        path: &str,
        review: &(impl Serialize + Sync),
    ) -> Result<S, HostAway> {
        let call = async {
            let _turn = self.turns.acquire().await.expect("it is never closed");
            calls::post::<Review<S>>(&self.host, path, review).await
        };
        match calls::within(TIMEOUT, call).await {
            Ok(review) => {
                self.metrics.count_review(kind, "answered");
                if self.is_away.swap(false, Ordering::Relaxed) {
                    tracing::info!("the host answers reviews again");
                }
                Ok(review.status)
            }
            Err(error) => {
                self.metrics.count_review(kind, "failed");
                if !self.is_away.swap(true, Ordering::Relaxed) {
                    tracing::warn!(kind, %error, "the host answers no reviews: what it has allowed before stays allowed. If it forbids them, see `fedrs rbac discovery-authorizer`");
                }
                Err(HostAway)
            }
        }
    }
}
