//! Services of several real control planes under the Multi-Cluster Services API: `FEDRS_CLUSTERS=local cargo test --test mcs`.
//!
//! Kubernetes' own controllers make the EndpointSlices of the exported Services, and delete what owners leave. Without real control
//! planes the test is skipped by name.

#[path = "../../../crates/mcs-controller/tests/embedded/crds.rs"]
mod crds;
mod federation;

use std::process::ExitCode;

use fedrs_tests::test_environment::ClusterKind;
use libtest_mimic::{Arguments, Trial};
use serde_json::json;
use tokio::runtime::Runtime;

use self::federation::Federation;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_local = matches!(ClusterKind::from_env(), Ok(ClusterKind::Local));
    let name = "services_of_real_control_planes_are_exported_imported_and_unexported";
    if !is_local {
        eprintln!("skipped: {name} needs FEDRS_CLUSTERS=local");
    }
    let test = || {
        let runtime = Runtime::new().expect("a runtime can be started");
        runtime.block_on(exported_imported_and_unexported());
        Ok(())
    };
    let trial = Trial::test(name, test).with_ignored_flag(!is_local);
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

async fn exported_imported_and_unexported() {
    let federation = Federation::start().await;
    federation.deploy("a", 2).await;
    federation.deploy("b", 1).await;
    federation.export("a").await;
    for name in ["a", "b"] {
        federation.until_imports(name, &["a"]).await;
    }
    federation.export("b").await;
    for name in ["a", "b"] {
        federation.until_imports(name, &["a", "b"]).await;
        federation.until_condition(name, "Valid", "Valid").await;
        federation.until_condition(name, "Ready", "Exported").await;
        federation
            .until_condition(name, "Conflict", "NoConflicts")
            .await;
        let import = federation.import(name).await.expect("it is imported");
        let spec = &import["spec"];
        assert_eq!(spec["type"], "ClusterSetIP");
        assert_eq!(spec["internalTrafficPolicy"], "Cluster");
        assert_eq!(
            spec["ports"],
            json!([{ "name": "http", "port": 80, "protocol": "TCP" }])
        );
    }
    // Endpoints follow the pods.
    federation.scale("b", 3).await;
    federation.until_imports("a", &["a", "b"]).await;
    // Nothing is written when nothing changes, also not by the next leader.
    let before = federation.versions("a").await;
    let federation = federation.restart_controller().await;
    assert_eq!(federation.versions("a").await, before);
    for name in ["a", "b"] {
        federation.unexport(name).await;
    }
    for name in ["a", "b"] {
        federation.until_imports(name, &[]).await;
        federation.until_no_import(name).await;
    }
}
