//! The token of the controller's account in a member: is the stored one good, and a new one.

use std::time::Duration;

use anyhow::Context;
use federation_controller::members::token_request;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequestStatus};
use kube::{Api, api::PostParams};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    member_kubeconfig::Stored,
    membership::Membership,
};

/// Whether a stored token can go on being used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It can.
    Good,
    /// It can't, and why.
    Bad(&'static str),
}

/// A token that was just made.
pub(super) struct Token {
    /// Secret.
    pub(super) text: String,
    /// When it ends.
    pub(super) expires: Timestamp,
}

/// Asks the member who the holder of the stored token is, on the way by which the user reaches it: the controller's way
/// need not be open from here.
pub(super) async fn judge(
    member: &ClusterClient,
    membership: &Membership,
    stored: &Stored,
) -> anyhow::Result<Verdict> {
    let mut config = member.config.clone();
    config.auth_info = stored.user.clone();
    let holder = ClusterClient::new(member.side, config)?;
    let reviews: Api<SelfSubjectReview> = Api::all(holder.client());
    let (parameters, review) = (PostParams::default(), SelfSubjectReview::default());
    let call = reviews.create(&parameters, &review);
    let answer = holder.call("use the stored token", call).await;
    Ok(verdict(answer, membership)?)
}

fn verdict(
    answer: Result<SelfSubjectReview, RequestError>,
    membership: &Membership,
) -> Result<Verdict, RequestError> {
    match answer {
        Err(failure) if failure.code() == Some(401) => {
            Ok(Verdict::Bad("the old one had expired or was revoked"))
        }
        Err(failure) => Err(failure),
        Ok(review) => {
            let user = review.status.and_then(|it| it.user_info);
            let name = user.and_then(|it| it.username).unwrap_or_default();
            let ours = format!(
                "system:serviceaccount:{}:{}",
                membership.namespace,
                membership.account()
            );
            Ok(if name == ours {
                Verdict::Good
            } else {
                Verdict::Bad("the old one was of another account")
            })
        }
    }
}

/// Has the member make a token for the account, good for about `duration`: an API server may give less.
pub(super) async fn request(
    member: &ClusterClient,
    membership: &Membership,
    duration: Duration,
) -> anyhow::Result<Token> {
    let (namespace, account) = (&membership.namespace, membership.account());
    let (path, request) = token_request(namespace, &account, duration.as_secs());
    let doing = format!("request a token for serviceaccount/{account}");
    // Not by a typed call: the client would log an answer that it can't read.
    let answer = member.send(doing, "POST", &path, Some(&request)).await?;
    let status: Option<TokenRequestStatus> =
        serde_json::from_value(answer["status"].clone()).unwrap_or_default();
    let status = status.context("member: its answer holds no token")?;
    Ok(Token {
        text: status.token,
        expires: status.expiration_timestamp.0,
    })
}
