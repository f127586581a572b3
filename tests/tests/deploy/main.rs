//! The manifests for a host: rendered by kustomize and by helm, compared, and applied to a real API server.
//!
//! Only with `FEDRS_CLUSTERS=local`, because the tests use the pinned kubectl and helm. Otherwise each test is skipped by name.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod apply;
mod host;
mod objects;
mod policies;
mod release;
mod render;

use std::process::ExitCode;

use fedrs_tests::test_environment::ClusterKind;
use libtest_mimic::{Arguments, Trial};

use self::host::Host;

/// A test.
type Test = fn(&Host);

const TESTS: [(&str, Test); 20] = [
    (
        "kustomize::one_replica_has_no_disruption_budget_and_three_have",
        render::one_replica_has_no_disruption_budget_and_three_have,
    ),
    (
        "helm::the_chart_has_the_version_of_the_program",
        render::the_chart_has_the_version_of_the_program,
    ),
    ("helm::lint_finds_nothing", render::lint_finds_nothing),
    (
        "helm::the_defaults_are_the_overlay_one",
        render::the_defaults_are_the_overlay_one,
    ),
    (
        "helm::discovery_is_its_overlay",
        render::discovery_is_its_overlay,
    ),
    (
        "helm::three_replicas_are_the_overlay_three",
        render::three_replicas_are_the_overlay_three,
    ),
    (
        "helm::the_controller_of_a_member_is_its_overlay",
        render::the_controller_of_a_member_is_its_overlay,
    ),
    (
        "helm::a_service_monitor_is_the_component",
        render::a_service_monitor_is_the_component,
    ),
    (
        "helm::invalid_values_are_rejected_by_name",
        render::invalid_values_are_rejected_by_name,
    ),
    (
        "helm::every_value_takes_effect",
        render::every_value_takes_effect,
    ),
    (
        "helm::another_federation_shares_no_name",
        render::another_federation_shares_no_name,
    ),
    (
        "apply::both_overlays_and_the_chart_are_accepted_without_a_warning",
        apply::both_overlays_and_the_chart_are_accepted_without_a_warning,
    ),
    (
        "apply::pods_are_admitted_where_pod_security_is_restricted",
        apply::pods_are_admitted_where_pod_security_is_restricted,
    ),
    (
        "apply::the_job_that_approves_by_metrics_is_admitted",
        apply::the_job_that_approves_by_metrics_is_admitted,
    ),
    (
        "apply::the_deployment_gets_its_pods",
        apply::the_deployment_gets_its_pods,
    ),
    (
        "policies::s1_users_get_their_rights_with_the_roles_of_the_cluster",
        policies::s1_users_get_their_rights_with_the_roles_of_the_cluster,
    ),
    (
        "policies::s1_users_create_sets_where_they_may_create_replica_sets",
        policies::s1_users_create_sets_where_they_may_create_replica_sets,
    ),
    (
        "policies::s7_the_account_in_a_member_changes_its_own_labels_of_pods_only",
        policies::s7_the_account_in_a_member_changes_its_own_labels_of_pods_only,
    ),
    (
        "policies::m11_users_confirm_as_themselves_and_only_with_the_right_to",
        policies::m11_users_confirm_as_themselves_and_only_with_the_right_to,
    ),
    (
        "release::install_upgrade_and_uninstall_keep_the_crds",
        release::install_upgrade_and_uninstall_keep_the_crds,
    ),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The tests share one host.
    arguments.test_threads = Some(1);
    let is_local = matches!(ClusterKind::from_env(), Ok(ClusterKind::Local));
    let host: Option<&'static Host> = if is_local && !arguments.list {
        match Host::start() {
            Ok(host) => Some(Box::leak(Box::new(host))),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        None
    };
    let trials = TESTS.map(|(name, test)| {
        if !is_local {
            eprintln!("skipped: {name} needs FEDRS_CLUSTERS=local");
        }
        let trial = Trial::test(name, move || {
            test(host.ok_or("needs FEDRS_CLUSTERS=local")?);
            Ok(())
        });
        trial.with_ignored_flag(!is_local)
    });
    let code = libtest_mimic::run(&arguments, trials.into()).exit_code();
    if let Some(host) = host {
        host.end();
    }
    code
}
