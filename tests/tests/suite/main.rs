//! Scenarios for every kind of clusters: `FEDRS_CLUSTERS=sim|served|local|kubeconfigs:DIR cargo test --test suite`.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod availability;
mod contract;
mod controller;
mod deployments;
mod discovery;
mod discovery_service;
mod document;
mod dry_run;
mod external_changes;
mod kstatus;
mod kubectl;
mod leader;
mod limited_rollouts;
mod local_confirmations;
mod local_migrations;
mod local_replica_sets;
mod local_sets;
mod local_updates;
mod maintenance;
mod member_set;
mod members;
mod native_migrations;
mod placement;
mod replica_sets;
mod rollouts;

use std::process::ExitCode;

use fedrs_api::LocalKind;
use fedrs_tests::{
    scenario,
    scenario::Scenario,
    test_environment::{Capability, TestEnvironmentSpec},
};

fn main() -> ExitCode {
    let mut scenarios = document::scenarios();
    scenarios.extend(others());
    scenarios.extend(members());
    let with_deployments: Vec<_> = (scenarios.iter())
        .filter(|scenario| is_for_both(&scenario.name))
        .map(|scenario| {
            let mut scenario = scenario.clone().with_deployments();
            let mut same = SAME_FOR_DEPLOYMENTS.iter();
            let is_same = same.any(|name| scenario.name.contains(name)) && !runs_all();
            // What a layout is does not depend on the clusters, either.
            if is_same || scenario.name.contains("::document::") {
                scenario.requires.push(Capability::Embedded);
            }
            scenario
        })
        .collect();
    let with_local_replica_sets: Vec<_> = (scenarios.iter())
        .filter(|scenario| is_for_both(&scenario.name))
        .map(of_local_replica_sets)
        .collect();
    scenarios.extend(with_deployments);
    scenarios.extend(with_local_replica_sets);
    scenarios.extend(rollouts());
    scenarios.extend(replica_sets::scenarios());
    scenarios.extend(local_updates::scenarios());
    scenarios.extend(local_confirmations::scenarios());
    scenarios.extend(local_migrations::scenarios());
    scenarios.extend(native_migrations::scenarios());
    scenarios.extend(maintenance::scenarios());
    scenarios.extend(availability::scenarios());
    fedrs_tests::scenario::main(scenarios, true)
}

/// What runs with LocalReplicaSets on every kind of clusters: where these, their controller and its permissions matter.
/// [`SUITE`] asks for more.
const OF_LOCAL_REPLICA_SETS: [&str; 13] = [
    "local_sets::",
    "discovery::d2_no_request_fails_while_local_replica_sets_roll",
    "contract::f5_deleting_leaves_the_local_sets_running",
    "contract::f5_the_deletion_policy_decides_whatever_the_cascade",
    "controller::a_restart_writes_nothing",
    "external_changes::f29_drift_is_repaired",
    "external_changes::f31_a_deleted_local_set_is_recreated",
    "members::f33_an_unreachable_member_is_lost_and_returns",
    "rollouts::l6_l14_a_template_is_rolled_out_within_one_budget",
    "rollouts::l10_an_edit_and_an_undo_in_the_middle_replace_what_is_rolled_out",
    "rollouts::l10_a_bad_version_is_undone_if_asked_for",
    "rollouts::l14_a_controller_killed_during_a_rollout_continues",
    "rollouts::l14_a_member_lost_during_a_rollout_is_updated_when_it_returns",
];

/// What real clusters show with ReplicaSets, and does not depend on the kind. [`SUITE`] asks for it with Deployments, too.
const SAME_FOR_DEPLOYMENTS: [&str; 9] = [
    "::contract::thirty_sets_at_once",
    "::discovery::d2_endpoints_in_",
    "::members::a_token_",
    "::members::f34_",
    "::members::f36_",
    "::members::f39_",
    "::members::pods_of_a_failed_node_",
    "::members::s1_",
    "::placement::",
];

/// The environment variable that makes real clusters run all scenarios with each kind if it is `all`.
const SUITE: &str = "FEDRS_SUITE";

fn runs_all() -> bool {
    std::env::var(SUITE).is_ok_and(|suite| suite == "all")
}

fn of_local_replica_sets(scenario: &Scenario) -> Scenario {
    let is_everywhere = (OF_LOCAL_REPLICA_SETS.iter()).any(|name| scenario.name.starts_with(name));
    let mut scenario = scenario.clone().with_local_replica_sets();
    if !is_everywhere && !runs_all() {
        scenario.requires.push(Capability::Embedded);
    }
    scenario
}

/// Whether a scenario holds for both kinds of sets. Others are about one kind, about texts of it, or about no set.
fn is_for_both(name: &str) -> bool {
    let about_one = [
        "deployments::",
        "kubectl::",
        "kstatus::",
        "leader::",
        "local_replica_sets::",
        "discovery_service::",
    ];
    let is_about_one = about_one.iter().any(|topic| name.starts_with(topic));
    !is_about_one && !name.ends_with("a_local_set_that_a_deployment_owns_is_not_changed")
}

/// The third member has no file in the directory.
fn a_and_b() -> TestEnvironmentSpec {
    TestEnvironmentSpec {
        members: vec!["a", "b"],
        ..TestEnvironmentSpec::default()
    }
}

/// The others have no files in the directory.
fn only_a() -> TestEnvironmentSpec {
    TestEnvironmentSpec {
        members: vec!["a"],
        ..TestEnvironmentSpec::default()
    }
}

fn others() -> Vec<Scenario> {
    vec![
        scenario!(discovery::d2_no_request_fails_while_replicas_move),
        scenario!(contract::f1_f6_the_status_reports_the_replicas_of_each_cluster),
        scenario!(contract::f1_scale_by_the_subresource),
        scenario!(contract::f2_preferences_may_be_an_annotation),
        scenario!(contract::f4_the_api_server_rejects_a_change_of_the_federation),
        scenario!(contract::f3_a_cluster_without_an_entry_gets_nothing),
        scenario!(contract::f4_invalid_preferences_change_nothing),
        scenario!(contract::f5_deleting_leaves_the_local_sets_running),
        scenario!(contract::f5_the_deletion_policy_decides_whatever_the_cascade),
        scenario!(contract::f6_lists_and_status_show_the_members),
        scenario!(contract::f26_a_missing_namespace_is_created),
        scenario!(contract::thirty_sets_at_once),
        scenario!(contract::an_autoscaler_scales_the_set, Autoscaler),
        scenario!(controller::f20_a_controller_killed_during_a_move_continues),
        scenario!(controller::a_restart_writes_nothing),
        scenario!(deployments::l6_a_deployment_has_the_defaults_of_kubernetes),
        scenario!(deployments::l6_l14_l15_the_api_server_rejects_bad_input_with_its_field),
        scenario!(deployments::l6_the_largest_steps_are_checked),
        scenario!(deployments::l6_a_deployment_is_scaled_and_keeps_what_is_immutable),
        scenario!(external_changes::f28_rejected_replicas_run_elsewhere_and_return),
        scenario!(external_changes::f29_drift_is_repaired),
        scenario!(external_changes::f29_f30_an_existing_set_is_adopted_with_its_pods),
        scenario!(external_changes::f29_a_local_set_that_a_deployment_owns_is_not_changed),
        scenario!(external_changes::f31_a_deleted_local_set_is_recreated),
        scenario!(external_changes::f32_replicas_over_a_quota_run_elsewhere),
        scenario!(external_changes::f29_another_writer_of_replicas_is_overwritten),
        scenario!(local_replica_sets::l1_a_local_set_has_the_defaults_of_the_document),
        scenario!(local_replica_sets::l1_l14_l15_the_api_server_rejects_bad_local_sets),
        scenario!(
            kstatus::a_set_is_current_only_while_it_is_as_asked_for,
            Kstatus
        ),
        scenario!(
            kstatus::f4_an_invalid_set_fails_until_it_is_repaired,
            Kstatus
        ),
        scenario!(
            kstatus::a_member_is_current_while_it_is_ready,
            Kstatus,
            NetworkFaults
        ),
        scenario!(kubectl::f6_a_set_from_its_creation_to_its_deletion, Kubectl),
        scenario!(kubectl::f2_kubectl_explains_the_placement, Kubectl),
        scenario!(
            kubectl::f6_describe_says_why_replicas_are_where_they_are,
            Kubectl
        ),
        scenario!(
            kubectl::f3_f4_kubectl_shows_mistakes_in_the_placement,
            Kubectl
        ),
        scenario!(
            controller::a_killed_controller_does_not_wait_for_its_own_lease,
            ControllerProcess
        ),
        scenario!(leader::a_killed_leader_is_replaced, ControllerProcess),
        scenario!(
            leader::a_suspended_leader_writes_nothing_after_it_resumes,
            ControllerProcess,
            AuditLog
        ),
        scenario!(placement::f3_f20_a_misspelt_cluster_stops_no_service),
        scenario!(placement::f20_a_repaired_name_moves_replicas_without_a_dip),
        scenario!(placement::f3_an_explicit_maximum_removes_replicas_there_alone),
    ]
}

/// Scenarios of FederatedDeployments.
fn rollouts() -> Vec<Scenario> {
    let scenarios = vec![
        scenario!(rollouts::l6_l14_a_template_is_rolled_out_within_one_budget),
        scenario!(limited_rollouts::a1_the_rollout_of_a_deployment_keeps_to_an_availability_set),
        scenario!(
            limited_rollouts::a1_the_rollout_of_a_deployment_replaces_broken_pods_beyond_the_budget
        ),
        scenario!(rollouts::l10_an_edit_and_an_undo_in_the_middle_replace_what_is_rolled_out),
        scenario!(rollouts::l6_a_set_is_scaled_during_a_rollout),
        scenario!(rollouts::l8_a_paused_rollout_scales_and_goes_on_later),
        scenario!(rollouts::l8_a_pause_stops_members_that_roll),
        scenario!(rollouts::l8_stopped_stops_members_that_roll),
        scenario!(rollouts::l10_a_bad_version_stops_by_itself_and_never_locks),
        scenario!(rollouts::l10_a_bad_version_is_undone_if_asked_for),
        scenario!(rollouts::l14_steps_have_an_order_and_wait_for_approval),
        scenario!(rollouts::l14_a_controller_killed_during_a_rollout_continues),
        scenario!(
            rollouts::l14_a_member_lost_during_a_rollout_is_updated_when_it_returns,
            NetworkFaults
        ),
        scenario!(
            rollouts::f34_capacity_is_lost_and_found_during_a_rollout,
            NodeFaults
        ),
        scenario!(rollouts::l14_replicas_without_a_cluster_use_the_budget),
        scenario!(rollouts::f29_f30_existing_deployments_are_taken_over_without_a_restart),
        scenario!(rollouts::f29_f30_a_federated_replica_set_is_handed_over_without_a_restart),
        scenario!(rollouts::f29_what_others_do_to_a_deployment_is_undone),
        scenario!(discovery::d2_endpoints_follow_a_rollout_and_a_scale_down),
        scenario!(rollouts::l14_recreate_updates_one_cluster_at_a_time),
        scenario!(rollouts::l15_the_speed_limits_how_many_pods_start_in_a_time),
    ];
    let mut of_local_sets = vec![
        scenario!(local_sets::l12_an_image_is_updated_in_place_in_all_members),
        scenario!(discovery::d2_no_request_fails_while_local_replica_sets_roll),
        scenario!(local_sets::l5_a_replica_is_created_first_if_none_may_be_unavailable),
        scenario!(local_sets::l20_evictions_in_all_members_share_the_budget),
        scenario!(local_sets::m1_a_migration_policy_reaches_all_members_without_a_rollout),
        scenario!(local_sets::m1_f29_an_adopted_local_set_has_the_policy_of_the_set),
        scenario!(
            local_sets::l20_kubectl_drains_nodes_during_a_rollout,
            Kubectl
        ),
        scenario!(
            local_sets::f33_a_member_without_the_crd_has_other_sets,
            Embedded
        ),
        scenario!(
            local_sets::f33_replicas_leave_a_member_whose_crd_is_deleted_until_it_returns,
            Embedded
        ),
        scenario!(
            local_sets::f29_what_others_change_in_a_local_set_is_undone,
            Embedded
        ),
    ];
    // The others are about Deployments.
    let is_about_deployments = |scenario: &&Scenario| {
        let topics = [
            "_existing_deployments_",
            "_handed_over_",
            "_recreate_",
            "_a_deployment_",
            "f34_capacity_",
        ];
        topics.iter().any(|topic| scenario.name.contains(topic))
    };
    of_local_sets.extend(
        scenarios
            .iter()
            .filter(|scenario| !is_about_deployments(scenario))
            .cloned(),
    );
    let of_local_sets: Vec<_> = of_local_sets.iter().map(of_local_replica_sets).collect();
    let with_kind = scenarios.into_iter().map(|mut scenario| {
        scenario.spec.local = LocalKind::Deployment;
        scenario
    });
    with_kind.chain(of_local_sets).collect()
}

fn members() -> Vec<Scenario> {
    vec![
        scenario!(members::f36_a_member_is_added_and_removed),
        Scenario {
            spec: only_a(),
            ..scenario!(
                discovery_service::d3_clients_get_what_they_may_while_replicas_and_members_are_away,
                AuditLog,
                ApiServerFaults
            )
        },
        scenario!(
            members::f33_an_unreachable_member_is_lost_and_returns,
            NetworkFaults
        ),
        scenario!(
            discovery::d2_endpoints_in_lost_clusters_serve_only_if_no_others_do,
            NetworkFaults
        ),
        scenario!(
            members::f33_a_hanging_member_is_lost_and_returns,
            ApiServerFaults
        ),
        scenario!(
            members::f39_a_slow_link_that_breaks_changes_nothing,
            NetworkFaults
        ),
        scenario!(members::f34_full_nodes_keep_two_capacity_probes, NodeFaults),
        scenario!(
            members::f39_a_member_with_compacted_history_changes_nothing,
            ApiServerFaults
        ),
        Scenario {
            spec: a_and_b(),
            ..scenario!(
                members::f36_fedrs_join_adds_a_member_and_fedrs_unjoin_removes_it,
                ControllerProcess
            )
        },
        Scenario {
            spec: a_and_b(),
            ..scenario!(
                members::s1_a_member_joins_for_some_namespaces_and_for_others,
                ControllerProcess
            )
        },
        Scenario {
            spec: a_and_b(),
            ..scenario!(
                members::a_token_is_renewed_before_it_expires,
                ControllerProcess,
                AuditLog
            )
        },
        scenario!(
            members::pods_of_a_failed_node_are_replaced_in_their_cluster,
            NodeFaults
        ),
    ]
}
