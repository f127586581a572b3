//! `ServiceAccount` tokens as JSON web tokens: their claims, signed with a key that only this cluster has.
//!
//! Pure: times are arguments. Signed with HMAC, not with a key pair: only the cluster verifies them.

use std::fmt;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::rand::SystemRandom;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The issuer of the tokens, and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const HEADER: &str = r#"{"alg":"HS256"}"#;
/// The leeway for differences between clocks, as in the API server.
pub(crate) const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// The claims of a token. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Bound,
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

/// The objects that a token is bound to: it is valid as long as they exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    pub(crate) serviceaccount: Reference,
}

/// An object by name and uid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Claims {
    /// Whether the token is valid now and this cluster is its audience.
    pub(crate) fn hold_at(&self, now: Timestamp) -> bool {
        let earliest = now.saturating_sub(LEEWAY).unwrap_or(Timestamp::MIN);
        let latest = now.saturating_add(LEEWAY).unwrap_or(Timestamp::MAX);
        self.iss == ISSUER
            && self.aud.iter().any(|audience| audience == ISSUER)
            && earliest.as_second() <= self.exp
            && self.nbf.max(self.iat) <= latest.as_second()
    }
}

/// The key that signs tokens. It does not depend on the cluster's seed: knowledge of the seed must not allow forgery.
pub(crate) struct SigningKey(hmac::Key);

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningKey")
    }
}

impl SigningKey {
    /// A new key.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub(crate) fn generate() -> Self {
        let key = hmac::Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self(key.expect("the system gives random numbers"))
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Claims) -> String {
        let claims = serde_json::to_vec(claims).expect("claims can be written as JSON");
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(HEADER),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let signature = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The claims of a token; `None` if it was not signed with this key.
    pub(crate) fn verify(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (_, claims) = signed.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.0, signed.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            aud: vec![ISSUER.to_owned()],
            exp: 4_000,
            iat: 400,
            iss: ISSUER.to_owned(),
            jti: "j".to_owned(),
            kubernetes: Bound {
                namespace: "a".to_owned(),
                node: None,
                pod: None,
                secret: None,
                serviceaccount: Reference {
                    name: "b".to_owned(),
                    uid: "u".to_owned(),
                },
            },
            nbf: 400,
            sub: "system:serviceaccount:a:b".to_owned(),
        }
    }

    #[test]
    fn only_tokens_signed_with_the_key_are_valid() {
        let (key, other) = (SigningKey::generate(), SigningKey::generate());
        let token = key.sign(&claims());
        assert_eq!(key.verify(&token), Some(claims()));
        assert_eq!(other.verify(&token), None);
        let (head, rest) = token.split_once('.').unwrap();
        let (_, signature) = rest.split_once('.').unwrap();
        let forged = serde_json::to_vec(&Claims {
            sub: "system:serviceaccount:kube-system:root".to_owned(),
            ..claims()
        });
        let forged = URL_SAFE_NO_PAD.encode(forged.unwrap());
        for bad in [
            format!("{head}.{forged}.{signature}"),
            format!("{head}.{forged}."),
            format!("{head}.{forged}"),
            String::new(),
        ] {
            assert_eq!(key.verify(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_token_has_its_time_and_its_audience() {
        let other_audience = Claims {
            aud: vec!["vault".to_owned()],
            ..claims()
        };
        let other_issuer = Claims {
            iss: "https://elsewhere".to_owned(),
            ..claims()
        };
        for (claims, second, held) in [
            (claims(), 339, false),
            (claims(), 340, true),
            (claims(), 4_060, true),
            (claims(), 4_061, false),
            (other_audience, 1_000, false),
            (other_issuer, 1_000, false),
        ] {
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(claims.hold_at(now), held, "{claims:?} at {second}");
        }
    }
}
