//! Bearer tokens: admitted by the owner of the cluster, or requested for a service account.

use serde_json::Value;

use super::state::{Api, State};
use crate::authentication::{self, User};
use crate::status::Status;

impl Api {
    /// Accepts this bearer token as the user's, as `--token-auth-file` does. A token that is admitted again belongs to
    /// the later user.
    pub fn admit_token(&self, token: &str, user: User) {
        self.with_state(|state| state.credentials.admit(token, user));
    }

    /// Rejects an admitted token with 401 from now on.
    pub fn dismiss_token(&self, token: &str) {
        self.with_state(|state| state.credentials.dismiss(token));
    }

    /// The user of a token; `None` if it is not valid, or no longer.
    pub(crate) fn user_of(&self, token: &str) -> Option<User> {
        let now = self.clock().now();
        self.with_state(|state: &mut State| {
            let admitted = state.credentials.admitted_user(token).cloned();
            admitted.or_else(|| {
                let claims = state.credentials.verify(token)?;
                authentication::user_of(&state.store, &claims, now)
            })
        })
    }

    /// Answers a `TokenRequest` for a `ServiceAccount`.
    ///
    /// # Errors
    /// 404 if the account, or the object to bind to, does not exist; 409 if one of them has another uid; 422 for less
    /// than ten minutes or more than 2^32 seconds.
    pub(crate) fn request_token(
        &self,
        namespace: &str,
        name: &str,
        request: Value,
    ) -> Result<Value, Status> {
        let now = self.clock().now();
        self.with_state(|state| {
            let signing = (&state.credentials, &mut state.identities);
            authentication::issue(&state.store, signing, now, (namespace, name), request)
        })
    }
}
