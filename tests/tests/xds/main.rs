//! gRPC's own xDS client finds the pods of all members: `FEDRS_CLUSTERS=local cargo test --test xds`.
//!
//! The client is written in Go: its program is built with the real control planes. Without them the test is skipped by name.

mod client;
mod federation;

use std::{process::ExitCode, time::Duration};

use control_plane::Programs;
use fedrs_tests::test_environment::ClusterKind;
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;

use self::{
    client::{Called, Client},
    federation::{Federation, Server},
};

/// How long the client may take to find out what has changed.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_local = matches!(ClusterKind::from_env(), Ok(ClusterKind::Local));
    let name = "d1_grpc_balances_over_the_pods_of_all_members_also_while_the_service_is_away";
    if !is_local {
        eprintln!("skipped: {name} needs FEDRS_CLUSTERS=local");
    } else if !arguments.list {
        let built = Programs::pinned()
            .and_then(|programs| programs.build(|module| eprintln!("building {module} ...")));
        if let Err(error) = built {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    let test = || {
        let runtime = Runtime::new().expect("a runtime can be started");
        runtime.block_on(balances_over_the_pods_of_all_members());
        Ok(())
    };
    let trial = Trial::test(name, test).with_ignored_flag(!is_local);
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

async fn balances_over_the_pods_of_all_members() {
    let backends = [
        Server::start().await,
        Server::start().await,
        Server::start().await,
    ];
    let [a, b, c] = backends.each_ref().map(Server::address);
    let mut federation = Federation::start().await;
    federation.create_pod("eu", "a", &backends[0]).await;
    federation.create_pod("eu", "b", &backends[1]).await;
    federation.create_pod("us", "c", &backends[2]).await;
    let mut client = Client::start(federation.xds(), "xds:///web.default");

    client
        .call_until(PATIENCE, |called| called.servers() == [&*a, &b, &c].into())
        .await;
    let Called { servers, errors } = client.call().await;
    // Each pod gets as many calls, whatever its member: a third, by five standard deviations.
    let are_fair = servers.values().all(|calls| (140..=260).contains(calls));
    assert!(are_fair && errors.is_empty(), "{servers:?} {errors:?}");

    federation.delete_pod("eu", "a").await;
    client
        .call_until(PATIENCE, |called| called.servers() == [&*b, &c].into())
        .await;

    federation.stop_answers().await;
    let Called { servers, errors } = client.call().await;
    assert_eq!((servers.len(), errors), (2, vec![]));
}
