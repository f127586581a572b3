//! Each text that people see, once: the messages of a member's health.

use std::{io, time::Duration};

use cluster_informer::probe::{ProbeFailure, ProbeRejection};
use http::StatusCode;
use kube::client::AuthError;

#[test]
fn messages() {
    let refused = io::Error::other("connection refused");
    let header = http::HeaderValue::from_str("a\nb").expect_err("not a header");
    let no_credentials = kube::Error::Auth(AuthError::InvalidBearerToken(header));
    let texts = [
        ProbeFailure::Connection(kube::Error::Service(refused.into())).to_string(),
        ProbeFailure::NotReady(StatusCode::SERVICE_UNAVAILABLE).to_string(),
        ProbeFailure::Timeout(Duration::from_secs(5)).to_string(),
        ProbeRejection::Unauthenticated(StatusCode::UNAUTHORIZED).to_string(),
        ProbeRejection::Forbidden(StatusCode::FORBIDDEN).to_string(),
        ProbeRejection::NoCredentials(no_credentials).to_string(),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
