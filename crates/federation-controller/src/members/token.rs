//! Bearer tokens of ServiceAccounts: how to request one, and its claims, which are read and not verified: the member does that.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest age of a token, in seconds.
const DAY: i64 = 24 * 3600;

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claims {
    /// When it expires.
    pub(super) expires: Timestamp,
    /// When it was issued.
    pub(super) issued: Option<Timestamp>,
    /// Its ServiceAccount, if it has one.
    pub(super) account: Option<Account>,
}

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The path and the body of the request for a token of the ServiceAccount `namespace/name`, valid for `seconds`: an API
/// server may shorten that.
#[must_use]
pub fn token_request(namespace: &str, name: &str, seconds: u64) -> (String, Value) {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": { "expirationSeconds": seconds },
    });
    (path, body)
}

/// Reads `token`; `None` if it is not a JSON web token, or has no expiry time.
pub(super) fn claims(token: &str) -> Option<Claims> {
    #[derive(Deserialize)]
    struct Payload {
        exp: f64,
        iat: Option<f64>,
        sub: Option<String>,
    }
    let mut parts = token.split('.');
    let (_header, payload, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let payload: Payload = serde_json::from_slice(&payload).ok()?;
    Some(Claims {
        expires: time(payload.exp)?,
        issued: payload.iat.and_then(time),
        account: payload.sub.as_deref().and_then(account),
    })
}

/// A `NumericDate`: seconds, which may have fractions.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a value out of range saturates, and jiff rejects it"
)]
fn time(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_second(seconds as i64).ok()
}

fn account(subject: &str) -> Option<Account> {
    let (namespace, name) = subject
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    Some(Account {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

impl Claims {
    /// Its lifetime in seconds, if the issue time is known.
    pub(super) fn lifetime(&self) -> Option<i64> {
        let seconds = self.expires.as_second() - self.issued?.as_second();
        (seconds > 0).then_some(seconds)
    }

    /// When to renew it: after a day, so that most of its lifetime is left if the controller or the member fails then. If the
    /// lifetime is short, after four fifths of it, or an hour before its end if that is earlier, but never in its first half.
    pub(super) fn renew_at(&self) -> Option<Timestamp> {
        let lifetime = self.lifetime()?;
        let age = (lifetime / 5 * 4)
            .min(lifetime - 3600)
            .max(lifetime / 2)
            .min(DAY);
        Timestamp::from_second(self.issued?.as_second().checked_add(age)?).ok()
    }
}

/// Whether a token with `claims` should be renewed at `now`.
pub(super) fn renewal_due(claims: &Claims, now: Timestamp) -> bool {
    claims.renew_at().is_some_and(|time| time <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(payload: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn claims_are_read_without_the_signature() {
        let read = claims(&token(
            r#"{"exp":2000,"iat":1000.5,"sub":"system:serviceaccount:fedrs-system:fedrs","aud":["x"]}"#,
        ));
        let account = Some(Account {
            namespace: "fedrs-system".into(),
            name: "fedrs".into(),
        });
        let expected = Claims {
            expires: at(2000),
            issued: Some(at(1000)),
            account,
        };
        assert_eq!(read, Some(expected));
        let person = claims(&token(r#"{"exp":2000,"sub":"jane"}"#)).unwrap();
        assert_eq!((person.account.clone(), person.renew_at()), (None, None));
        for no_token in [
            "",
            "opaque",
            "a.b",
            "a.b.c",
            "a.b.c.d",
            &token("{}"),
            &token(r#"{"exp":"soon"}"#),
            &token(r#"{"exp":1e300}"#),
        ] {
            assert_eq!(claims(no_token), None, "{no_token}");
        }
    }

    #[test]
    fn a_token_is_renewed_well_before_its_end_and_not_all_the_time() {
        const HOUR: i64 = 3600;
        for (lifetime, due) in [
            (365 * DAY, DAY),
            (7 * DAY, DAY),
            (2 * DAY, DAY),
            (DAY, DAY / 5 * 4),
            (5 * HOUR, 4 * HOUR),
            (4 * HOUR, 3 * HOUR),
            (2 * HOUR, HOUR),
            (HOUR, HOUR / 2),
            (600, 300),
        ] {
            let claims = Claims {
                expires: at(1_000_000 + lifetime),
                issued: Some(at(1_000_000)),
                account: None,
            };
            assert!(!renewal_due(&claims, at(1_000_000 + due - 1)), "{lifetime}");
            assert!(renewal_due(&claims, at(1_000_000 + due)), "{lifetime}");
        }
        let week = Claims {
            expires: at(7 * DAY),
            issued: Some(at(0)),
            account: None,
        };
        let left = week.expires.duration_since(week.renew_at().unwrap());
        assert_eq!(left.as_hours(), 6 * 24, "without a controller or a member");
        let backwards = Claims {
            expires: at(1000),
            issued: Some(at(2000)),
            account: None,
        };
        assert!(!renewal_due(&backwards, at(3000)));
    }
}
