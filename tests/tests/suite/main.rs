//! What must hold on every kind of clusters: `FEDRS_CLUSTERS=sim|local|kubeconfigs:DIR cargo test --test suite`.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod contract;
mod controller;
mod document;
mod hands;
mod leader;
mod members;

use std::process::ExitCode;

use fedrs_tests::{scenario, scenario::Scenario, stage::StageSpec};

fn main() -> ExitCode {
    let mut scenarios = document::scenarios();
    scenarios.extend(others());
    fedrs_tests::scenario::main(scenarios)
}

/// The third member is not of the folder.
fn a_and_b() -> StageSpec {
    StageSpec {
        members: vec!["a", "b"],
        ..StageSpec::default()
    }
}

fn others() -> Vec<Scenario> {
    vec![
        scenario!(contract::f1_the_status_tells_what_runs_where),
        scenario!(contract::f1_scale_by_the_subresource),
        scenario!(contract::f2_preferences_may_be_an_annotation),
        scenario!(contract::f3_a_cluster_without_an_entry_gets_nothing),
        scenario!(contract::f4_invalid_preferences_change_nothing),
        scenario!(contract::f5_deleting_leaves_the_local_sets_running),
        scenario!(contract::f5_the_deletion_policy_decides_whatever_the_cascade),
        scenario!(contract::f6_lists_and_status_show_the_members),
        scenario!(contract::f26_a_missing_namespace_is_made),
        scenario!(contract::thirty_sets_at_once),
        scenario!(contract::an_autoscaler_scales_the_set, Autoscaler),
        scenario!(controller::killed_in_the_middle_of_moves_it_goes_on),
        scenario!(controller::a_restart_writes_nothing),
        scenario!(hands::f28_a_refused_creation_goes_elsewhere_and_comes_back),
        scenario!(hands::f29_drift_is_repaired),
        scenario!(hands::f29_f30_a_foreign_set_is_overwritten_and_its_pods_are_adopted),
        scenario!(hands::f29_a_set_that_a_deployment_owns_is_left_alone),
        scenario!(hands::f31_a_deleted_set_is_made_again),
        scenario!(hands::f32_a_quota_moves_what_could_not_be_created),
        scenario!(hands::another_writer_of_replicas_is_outlasted),
        scenario!(leader::one_that_is_killed_is_succeeded, Process),
        scenario!(
            leader::one_that_was_stopped_writes_nothing_that_lasts,
            Process,
            Audit
        ),
        scenario!(members::f36_a_member_is_added_and_removed),
        scenario!(members::f33_a_member_goes_dark_and_returns, CutOff),
        scenario!(
            members::f33_a_member_that_hangs_is_lost_and_returns,
            Restarts
        ),
        scenario!(members::f39_a_slow_link_that_breaks_changes_nothing, CutOff),
        scenario!(members::f34_full_nodes_keep_a_couple_waiting, Nodes),
        scenario!(
            members::f39_a_member_that_forgot_its_history_changes_nothing,
            Restarts
        ),
        Scenario {
            spec: a_and_b(),
            ..scenario!(members::one_is_joined_and_leaves_by_command, Process)
        },
        Scenario {
            spec: a_and_b(),
            ..scenario!(members::a_token_is_renewed_before_it_ends, Process, Audit)
        },
        scenario!(members::a_lost_node_is_replaced_by_its_own_cluster, Nodes),
    ]
}
