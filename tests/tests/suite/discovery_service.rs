//! The service of EndpointSets as a process, and its client: what both know while the other one, or members, are away (D3).

use std::{fs, path::Path};

use endpoint_resolver::{Endpoints, Reason, Resolved, Resolver};
use fedrs_tests::{
    even, frs,
    test_environment::{Audience, DiscoveryProcess, TestEnvironment},
};
use serde_json::json;
use tempfile::TempDir;

/// The members that join; discovery does not know the others.
const JOINED: [&str; 2] = ["b", "c"];

/// A client that asks these replicas with this token, and keeps its answers in the directory.
fn client(replicas: &[DiscoveryProcess], directory: &Path, token: &str) -> Resolver {
    let file = directory.join("token");
    fs::write(&file, token).unwrap();
    let mut builder = Resolver::builder();
    for replica in replicas {
        builder = builder.server(replica.server());
    }
    builder
        .token_file(file)
        .directory(directory.join("answers"))
        .build()
        .unwrap()
}

/// Whether changes of a member may be missing. Of `a`, which has not joined, nothing is known.
fn is_stale(resolved: &Resolved, member: &str) -> bool {
    let mut stale = resolved.stale_members.iter();
    stale.any(|stale| stale.cluster == member)
}

/// How long an answer may take: what a member that has hung for a while has, is known within 4 minutes.
const PATIENCE: u64 = 240;

async fn until(
    env: &TestEnvironment,
    endpoints: &Endpoints,
    what: &str,
    is: fn(&Resolved) -> bool,
) {
    env.wait_until(what, PATIENCE, async |_| {
        let resolved = endpoints.current();
        resolved.is_some_and(|resolved| is(&resolved))
    })
    .await;
}

pub(crate) async fn d3_clients_get_what_they_may_while_replicas_and_members_are_away(
    env: &mut TestEnvironment,
) {
    for member in JOINED {
        env.join_with(member, &["--with-discovery"]).await;
    }
    env.run(&frs("web", 9, &even(true))).await;
    env.wait_until("three in each member", 60, async |env| {
        env.sorted_layout("web").await == [3, 3, 3] && env.available("web").await == 9
    })
    .await;
    for set in ["web", "other"] {
        env.create_endpoint_set(set, "web").await;
    }
    let mut replicas = [env.start_discovery().await, env.start_discovery().await];
    let token = env.host_token("client", Audience::Discovery).await;
    env.allow_endpoint_set("client", "web").await;
    let directory = TempDir::new().unwrap();
    let name = |set: &str| format!("{}/{set}", env.namespace());

    let resolver = client(&replicas, directory.path(), &token);
    let web = resolver.endpoints(&name("web")).unwrap();
    until(env, &web, "those of b and c", |web| {
        web.is_live() && web.endpoints.len() == 6
    })
    .await;
    is_told_what_it_may_not_get(env, &resolver, &replicas).await;

    // One replica after the other is away: the client asks the other one.
    replicas[0].kill();
    env.patch("web", &json!({ "spec": { "replicas": 12 } }))
        .await;
    until(env, &web, "8 of 12", |web| {
        web.is_live() && web.endpoints.len() == 8
    })
    .await;
    replicas[0].start();
    replicas[1].kill();
    env.patch("web", &json!({ "spec": { "replicas": 9 } }))
        .await;
    until(env, &web, "6 of 9", |web| {
        web.is_live() && web.endpoints.len() == 6
    })
    .await;

    // None is left: what is known stays, also over a restart of the client.
    env.wait_until("all is done", 60, async |env| env.is_settled("web").await)
        .await;
    replicas[0].terminate().await;
    until(env, &web, "no replica", |web| {
        !web.is_live() && web.problem.is_some()
    })
    .await;
    assert_eq!(web.current().unwrap().endpoints.len(), 6);
    drop((web, resolver));
    let resolver = client(&replicas, directory.path(), &token);
    let web = resolver.endpoints(&name("web")).unwrap();
    let kept = web.current().expect("it is on the disk");
    assert_eq!((kept.endpoints.len(), kept.is_live()), (6, false));

    // A replica starts from its snapshots while a member is away: it says that changes there may be missing. The controller would
    // replace what runs there.
    env.kill_controller().await;
    env.hang("c", true).await;
    replicas[0].start();
    until(env, &web, "the snapshot", Resolved::is_live).await;
    let answered = web.current().unwrap();
    assert_eq!(answered.endpoints.len(), 6);
    assert!(is_stale(&answered, "c"), "{:?}", answered.stale_members);
    env.hang("c", false).await;
    until(env, &web, "c again", |web| {
        web.is_live() && web.endpoints.len() == 6 && !is_stale(web, "c")
    })
    .await;
    env.start_controller().await;
    for member in JOINED {
        env.unjoin(member).await;
    }
}

/// By the permissions on the host, as its API server reads them.
async fn is_told_what_it_may_not_get(
    env: &TestEnvironment,
    resolver: &Resolver,
    replicas: &[DiscoveryProcess],
) {
    let namespace = env.namespace();
    let other = resolver.endpoints(&format!("{namespace}/other")).unwrap();
    env.wait_until("it is forbidden", 30, async |_| {
        let problem = other.problem();
        problem.is_some_and(|problem| problem.reason == Reason::Forbidden)
    })
    .await;
    let expected = format!(
        "endpointsets.fedrs.dev \"other\" is forbidden: User \"system:serviceaccount:{namespace}:client\" cannot get resource \"endpointsets\" in API group \"fedrs.dev\" in the namespace \"{namespace}\""
    );
    assert_eq!(other.problem().unwrap().message, expected);
    assert!(other.current().is_none());

    let directory = TempDir::new().unwrap();
    let token = env.host_token("stranger", Audience::ApiServer).await;
    let stranger = client(replicas, directory.path(), &token);
    let web = stranger.endpoints(&format!("{namespace}/web")).unwrap();
    env.wait_until("it is nobody", 30, async |_| web.problem().is_some())
        .await;
    let problem = web.problem().unwrap();
    assert!(problem.message.contains("Unauthorized"), "{problem:?}");
    assert!(web.current().is_none());
}
