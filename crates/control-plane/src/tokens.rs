//! Tokens of ServiceAccounts that an API server would not issue, such as expired ones, signed with its key.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::{Error, Result};

/// Issuer and audience of the tokens of all clusters.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// A ServiceAccount in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: the API server rejects tokens of an earlier account with the same name.
    pub uid: String,
}

/// The time during which a token is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub issued: i64,
    /// The second at which it expires.
    pub expires: i64,
}

/// A token of `account`, signed with `key` (PEM).
pub(crate) fn token(key: &str, account: &ServiceAccount, validity: Validity) -> Result<String> {
    let key = KeyPair::from_pem(key)?.serialize_der();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key);
    let refused = |_| Error::Certificates(rcgen::Error::RemoteKeyError);
    let key = key.map_err(|_| Error::Certificates(rcgen::Error::CouldNotParseKeyPair))?;
    let header = part(&json!({ "alg": "ES256" }));
    let signed = format!("{header}.{}", part(&claims(account, validity)));
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature.map_err(refused)?);
    Ok(format!("{signed}.{signature}"))
}

fn claims(account: &ServiceAccount, validity: Validity) -> Value {
    let ServiceAccount {
        namespace,
        name,
        uid,
    } = account;
    json!({
        "iss": ISSUER,
        "aud": [ISSUER],
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "iat": validity.issued,
        "nbf": validity.issued,
        "exp": validity.expires,
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": uid },
        },
    })
}

fn part(claims: &Value) -> String {
    URL_SAFE_NO_PAD.encode(claims.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_three_parts_and_its_claims() {
        let key = KeyPair::generate().unwrap().serialize_pem();
        let account = ServiceAccount {
            namespace: "n".to_owned(),
            name: "s".to_owned(),
            uid: "1".to_owned(),
        };
        let validity = Validity {
            issued: 1000,
            expires: 2000,
        };
        let token = token(&key, &account, validity).unwrap();
        let parts: Vec<_> = token.split('.').collect();
        let read: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
        assert_eq!(read["sub"], "system:serviceaccount:n:s");
        assert_eq!((&read["iat"], &read["exp"]), (&json!(1000), &json!(2000)));
        // P-256: two numbers of 32 bytes.
        assert_eq!(URL_SAFE_NO_PAD.decode(parts[2]).unwrap().len(), 64);
    }
}
