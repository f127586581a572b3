//! Who asks.
//!
//! ```text
//! Authorization: Bearer ... -> a token that was admitted -> its user
//!                           -> a `ServiceAccount`'s token: signature, times, audience, is the account still there?
//!                           -> 401
//! ```

mod accounts;
mod token;
mod user;

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};

use token::SigningKey;
pub use user::User;
pub(crate) use user::{ACCOUNT_PREFIX, MASTERS, account_name};

use crate::api::{Api, State};

/// A SHA-256 of a token. Tokens themselves are not kept, and looking one up takes no longer for a near miss.
type Digest = Vec<u8>;

/// What is known of those who may come in.
#[derive(Debug)]
pub(crate) struct Credentials {
    admitted: BTreeMap<Digest, User>,
    key: SigningKey,
}

impl Credentials {
    /// Nobody is admitted, and nobody has a token yet.
    pub(crate) fn new() -> Self {
        Self {
            admitted: BTreeMap::new(),
            key: SigningKey::generate(),
        }
    }
}

impl Api {
    /// Lets whoever shows this bearer token in as that user, as `--token-auth-file` does. A token admitted twice
    /// is the later user's.
    pub fn admit_token(&self, token: &str, user: User) {
        self.with_state(|state| state.credentials.admitted.insert(digest_of(token), user));
    }

    /// Takes an admitted token back: it answers 401 from now on.
    pub fn dismiss_token(&self, token: &str) {
        self.with_state(|state| state.credentials.admitted.remove(&digest_of(token)));
    }

    /// Whose token it is; `None` for one that is not, or no longer, valid.
    pub(crate) fn user_of(&self, token: &str) -> Option<User> {
        let now = self.clock().now();
        self.with_state(|state: &mut State| {
            let admitted = state.credentials.admitted.get(&digest_of(token)).cloned();
            admitted.or_else(|| {
                let claims = state.credentials.key.verify(token)?;
                accounts::user_of(&state.store, &claims, now)
            })
        })
    }
}

fn digest_of(token: &str) -> Digest {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}
