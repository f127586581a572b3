//! Calls of clients that may not ask for everything.

use std::time::Duration;

use discovery_proto::{problem::Reason, watch_response::Event};
use tokio::time::timeout;
use tonic::{Code, metadata::MetadataMap};

use super::*;
use crate::access::mock_host::{Host, with_token};

fn calls(host: &Arc<Host>) -> Calls {
    Calls::new(host.service(), CancellationToken::new())
}

fn request<T>(token: &str, message: T) -> Request<T> {
    let metadata = MetadataMap::from_headers(with_token(token));
    Request::from_parts(metadata, tonic::Extensions::default(), message)
}

fn id(name: &str) -> proto::SetId {
    proto::SetId {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

fn watch() -> proto::WatchRequest {
    let watched = |name| proto::WatchedSet {
        set: Some(id(name)),
        known_version: 0,
    };
    proto::WatchRequest {
        sets: ["web", "api"].map(watched).into(),
    }
}

/// The name of the set, and the reason of a problem.
async fn next(responses: &mut Responses<proto::WatchResponse>) -> (String, Option<Reason>) {
    let response = timeout(Duration::from_secs(24 * 3600), responses.next()).await;
    let response = response.expect("a response").expect("it lasts").unwrap();
    let reason = match response.event.unwrap() {
        Event::Problem(problem) => Some(problem.reason()),
        Event::Endpoints(_) | Event::Changes(_) => None,
    };
    (response.set.unwrap().name, reason)
}

#[tokio::test]
async fn resolve_says_as_kubectl_does_what_a_user_may_not_get() {
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    let calls = calls(&host);
    let ask = async |token: &str, name: &str| {
        let message = proto::ResolveRequest {
            set: Some(id(name)),
            known_version: 0,
        };
        let resolved = calls.resolve(request(token, message)).await;
        resolved.map_err(|status| (status.code(), status.message().to_owned()))
    };
    let found = ask("TOKEN-a", "web").await.unwrap();
    assert_eq!(found.into_inner().endpoints.len(), 1);
    let text = "endpointsets.fedrs.dev \"api\" is forbidden: User \"a\" cannot get resource \"endpointsets\" in API group \"fedrs.dev\" in the namespace \"shop\"";
    let error = ask("TOKEN-a", "api").await.unwrap_err();
    assert_eq!(error, (Code::PermissionDenied, text.to_owned()));
    let (code, _) = ask("other", "web").await.unwrap_err();
    assert_eq!(code, Code::Unauthenticated);
    host.set_away(true);
    let (code, _) = ask("TOKEN-b", "web").await.unwrap_err();
    assert_eq!(code, Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn watch_has_a_problem_for_a_set_while_the_user_may_not_get_it() {
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    let calls = calls(&host);
    let responses = calls.watch(request("TOKEN-a", watch())).await;
    let mut responses = responses.unwrap().into_inner();
    let mut first = [next(&mut responses).await, next(&mut responses).await];
    first.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        first,
        [
            ("api".to_owned(), Some(Reason::Forbidden)),
            ("web".to_owned(), None)
        ]
    );
    host.allow("a", "api");
    assert_eq!(next(&mut responses).await, ("api".to_owned(), None));
    host.deny_all();
    let revoked = tokio::time::Instant::now();
    for _ in 0..2 {
        let (_, reason) = next(&mut responses).await;
        assert_eq!(reason, Some(Reason::Forbidden));
    }
    assert!(
        revoked.elapsed() <= Duration::from_secs(330),
        "{:?}",
        revoked.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_says_again_who_it_is_after_an_hour_unless_the_host_is_away() {
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    host.allow("a", "api");
    let calls = calls(&host);
    for is_away in [false, true] {
        let begun = tokio::time::Instant::now();
        let responses = calls.watch(request("TOKEN-a", watch())).await;
        let mut responses = responses.unwrap().into_inner();
        for _ in 0..2 {
            next(&mut responses).await;
        }
        host.set_away(is_away);
        let end = timeout(Duration::from_secs(2 * 3600), responses.next()).await;
        if is_away {
            end.expect_err("it lasts on");
        } else {
            let status = end.unwrap().unwrap().unwrap_err();
            assert_eq!(status.code(), Code::Unavailable);
            assert!((1_800..=3_600).contains(&begun.elapsed().as_secs()));
            assert!(responses.next().await.is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_for_users_who_may_list_all_sets_as_long_as_they_may() {
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    host.allow_all("b");
    let calls = calls(&host);
    let ask = async |token| {
        calls
            .replicate(request(token, proto::ReplicateRequest {}))
            .await
    };
    let status = ask("TOKEN-a").await.err().unwrap();
    let text = "endpointsets.fedrs.dev is forbidden: User \"a\" cannot list resource \"endpointsets\" in API group \"fedrs.dev\" at the cluster scope";
    assert_eq!(
        (status.code(), status.message()),
        (Code::PermissionDenied, text)
    );
    let status = ask("other").await.err().unwrap();
    assert_eq!(status.code(), Code::Unauthenticated);
    let mut responses = ask("TOKEN-b").await.unwrap().into_inner();
    let mut names = Vec::new();
    loop {
        let response = responses.next().await.unwrap().unwrap();
        let host = response.host.unwrap_or_default();
        names.extend(host.sets.into_iter().map(|set| set.id.unwrap().name));
        if response.complete {
            break;
        }
    }
    assert_eq!(names, ["api", "web"]);
    host.deny_all();
    let revoked = tokio::time::Instant::now();
    let status = loop {
        match responses.next().await.unwrap() {
            Ok(response) => assert_eq!(response, proto::ReplicateResponse::default()),
            Err(status) => break status,
        }
    };
    assert_eq!(
        (status.code(), status.message()),
        (
            Code::PermissionDenied,
            text.replace("\"a\"", "\"b\"").as_str()
        )
    );
    assert!(
        revoked.elapsed() <= Duration::from_secs(330),
        "{:?}",
        revoked.elapsed()
    );
}
