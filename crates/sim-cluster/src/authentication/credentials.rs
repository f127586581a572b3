//! The bearer tokens that a cluster accepts: admitted ones, and those it signed itself.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};

use super::token::{Claims, SigningKey};
use super::user::User;

/// A SHA-256 of a token. Tokens are not kept, and the time of a lookup does not depend on how close a guess is.
type Digest = Vec<u8>;

/// The admitted tokens and the key that signs tokens of service accounts.
#[derive(Debug)]
pub(crate) struct Credentials {
    admitted: BTreeMap<Digest, User>,
    key: SigningKey,
}

impl Credentials {
    /// A new key and no admitted token.
    pub(crate) fn new() -> Self {
        Self {
            admitted: BTreeMap::new(),
            key: SigningKey::generate(),
        }
    }

    /// Accepts a token as this user's. A token that is admitted again belongs to the later user.
    pub(crate) fn admit(&mut self, token: &str, user: User) {
        self.admitted.insert(digest_of(token), user);
    }

    /// Rejects an admitted token from now on.
    pub(crate) fn dismiss(&mut self, token: &str) {
        self.admitted.remove(&digest_of(token));
    }

    /// The user of an admitted token.
    pub(crate) fn admitted_user(&self, token: &str) -> Option<&User> {
        self.admitted.get(&digest_of(token))
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Claims) -> String {
        self.key.sign(claims)
    }

    /// The claims of a token that this cluster signed; `None` for any other.
    pub(crate) fn verify(&self, token: &str) -> Option<Claims> {
        self.key.verify(token)
    }
}

fn digest_of(token: &str) -> Digest {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}
