//! Bearer tokens: never kept, shown or logged.

use std::fmt;

use axum::http::HeaderValue;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The longest token, in bytes.
const MOST_BYTES: usize = 8 << 10;

/// A token of one request.
pub(super) struct Token<'a>(&'a str);

/// A token, as far as it is remembered.
pub(super) type TokenDigest = [u8; 32];

impl<'a> Token<'a> {
    /// The token in a header `Bearer TOKEN`; none if there is none, or it is too long.
    pub(super) fn of(header: &'a HeaderValue) -> Option<Self> {
        let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
        let token = token.trim();
        let is_token =
            scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MOST_BYTES;
        is_token.then_some(Self(token))
    }

    pub(super) fn digest(&self) -> TokenDigest {
        Sha256::digest(self.0).into()
    }

    /// For the host alone.
    pub(super) fn as_str(&self) -> &str {
        self.0
    }

    /// The end of the token, as it says itself: to be trusted only once the host has accepted the token. `None` if it is no JSON Web
    /// Token, or has no end.
    pub(super) fn expires(&self) -> Option<Timestamp> {
        #[derive(Deserialize)]
        struct Claims {
            exp: i64,
        }
        let claims = self.0.split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: Claims = serde_json::from_slice(&claims).ok()?;
        Timestamp::from_second(claims.exp).ok()
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::token("Bearer abc", Some("abc"))]
    #[case::any_case("bearer  abc ", Some("abc"))]
    #[case::another_scheme("Basic abc", None)]
    #[case::nothing("Bearer ", None)]
    #[case::no_scheme("abc", None)]
    fn the_token_of_a_header(#[case] header: &str, #[case] token: Option<&str>) {
        let header = HeaderValue::from_str(header).unwrap();
        let found = Token::of(&header);
        assert_eq!(found.as_ref().map(Token::as_str), token);
        assert!(!format!("{found:?}").contains("abc"));
    }

    #[test]
    fn a_token_is_not_too_long() {
        let header = HeaderValue::from_str(&format!("Bearer {}", "a".repeat(MOST_BYTES + 1)));
        assert!(Token::of(&header.unwrap()).is_none());
    }

    #[rstest]
    #[case::with_an_end(r#"{"exp":1800000000}"#, Some(1_800_000_000))]
    #[case::without(r#"{"iss":"a"}"#, None)]
    #[case::a_date(r#"{"exp":"2027"}"#, None)]
    #[case::no_json("exp", None)]
    fn the_end_of_a_token(#[case] claims: &str, #[case] end: Option<i64>) {
        let token = format!("e30.{}.e30", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(Token(&token).expires().map(Timestamp::as_second), end);
        assert_eq!(Token(claims).expires(), None);
    }
}
