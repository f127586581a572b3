//! The token of a ServiceAccount in a member: whether the stored one is valid, and a new one.

use std::time::Duration;

use federation_controller::members::token_request;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequestStatus};
use kube::{Api, api::PostParams};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    progress::TokenProblem,
    stored_kubeconfig::StoredKubeconfig,
};

/// Checks whether the member accepts the stored token; `None` if so. Uses the user's connection: the controller's connection
/// may not work from here.
pub(super) async fn check(
    member: &ClusterClient,
    membership: &Membership,
    account: &str,
    stored: &StoredKubeconfig,
) -> Result<Option<TokenProblem>, RequestError> {
    let mut config = member.config().clone();
    config.auth_info = stored.user.clone();
    let client = ClusterClient::new(member.cluster_type, config)?;
    let reviews: Api<SelfSubjectReview> = Api::all(client.client());
    let (parameters, review) = (PostParams::default(), SelfSubjectReview::default());
    let request = reviews.create(&parameters, &review);
    let response = client.call("review the stored token", request).await;
    let review = match response {
        Err(error) if error.code() == Some(401) => return Ok(Some(TokenProblem::Rejected)),
        review => review?,
    };
    let user = review.status.and_then(|status| status.user_info);
    let name = user.and_then(|user| user.username).unwrap_or_default();
    let expected = format!("system:serviceaccount:{}:{account}", membership.namespace);
    Ok((name != expected).then_some(TokenProblem::OtherAccount))
}

/// Requests a token for the ServiceAccount that is valid for about `duration`: an API server may shorten it.
pub(super) async fn request(
    member: &ClusterClient,
    membership: &Membership,
    account: &str,
    duration: Duration,
) -> Result<TokenRequestStatus, RequestError> {
    let (path, request) = token_request(&membership.namespace, account, duration.as_secs());
    let operation = format!("request a token for serviceaccount/{account}");
    // Not a typed request: the client would log a response that it can't decode.
    let response = member
        .send(&operation, "POST", &path, Some(&request))
        .await?;
    let status: Option<TokenRequestStatus> =
        serde_json::from_value(response["status"].clone()).unwrap_or_default();
    status.ok_or_else(|| member.invalid_response(&operation, "the response contains no token"))
}
