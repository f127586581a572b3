//! L12: updates in place, step by step, and recreation.

use replica_set_controller::{
    Container, Gate, InPlace, InPlaceRecord, Life, Patch, Pod, PodWait, Resize, Wait,
};
use rstest::rstest;

use crate::fixtures::*;

/// The next action of a pod whose update in place was recorded.
#[rstest]
#[case::in_endpoints(Gate::Open, ready(-1000), "CloseGate a")]
#[case::not_ready(Gate::Open, failed(), "CloseGate a")]
#[case::still_ready(Gate::Closed, ready(-1000), "wait")]
#[case::out_of_endpoints(Gate::Closed, starting(), "Patch a")]
#[case::never_in_endpoints(Gate::Unset, starting(), "Patch a")]
#[case::adopted(Gate::Absent, ready(-1000), "Patch a")]
fn l12_a_pod_leaves_endpoints_before_it_is_patched(
    #[case] gate: Gate,
    #[case] life: Life<'static>,
    #[case] expected: &str,
) {
    let pods = [Pod {
        gate,
        life,
        ..old("a")
    }];
    let plan = plan_with(&set(1), &pods, &updating("a"));
    if expected == "wait" {
        let reason = PodWait::OutOfEndpoints;
        assert_eq!(plan.waits, [Wait::Pod { pod: "a", reason }]);
    } else {
        assert_eq!(actions(&plan), [expected]);
    }
}

/// What a pod with the current template needs.
#[rstest]
#[case::new(Gate::Unset, InPlace::Settled, Some("OpenGate a"))]
#[case::restarted(Gate::Closed, InPlace::Settled, Some("OpenGate a"))]
#[case::restarting(Gate::Closed, InPlace::Restarting { since: at(-5) }, None)]
#[case::adopted(Gate::Absent, InPlace::Settled, None)]
#[case::complete(Gate::Open, InPlace::Settled, None)]
fn l12_a_pod_returns_to_endpoints_once_its_containers_are_new(
    #[case] gate: Gate,
    #[case] in_place: InPlace,
    #[case] expected: Option<&str>,
) {
    let pods = [Pod {
        gate,
        in_place,
        ..live("a", starting())
    }];
    let plan = plan(&set(1), &pods);
    assert_eq!(actions(&plan), Vec::from_iter(expected));
}

/// An update that is not wanted any more leaves no pod out of endpoints.
#[test]
fn l12_a_pod_returns_to_endpoints_when_the_template_is_set_back() {
    let pods = [Pod {
        gate: Gate::Closed,
        ..live("a", starting())
    }];
    let plan = plan_with(&set(1), &pods, &updating("a"));
    assert_eq!(actions(&plan), ["OpenGate a"]);
    assert_eq!(updates(&plan), [""; 0]);
}

#[test]
fn l12_what_can_not_be_patched_is_recreated() {
    let pods = [Pod {
        revision: Some(OTHER),
        ..pod("a")
    }];
    let first = plan(&set(1), &pods);
    assert_eq!(first.record, recreating("a"));
    let second = plan_with(&set(1), &pods, &first.record);
    assert_eq!(actions(&second), ["Remove a"]);
    let unknown = [Pod {
        revision: None,
        ..pod("a")
    }];
    let recreated = plan(&set(1), &unknown).record;
    assert!(recreated.updates["a"].recreate.is_some());
}

/// The template changed after the update was recorded: the place is recorded before the pod is removed.
#[test]
fn l12_a_place_is_recorded_before_its_pod_is_removed() {
    let pods = [Pod {
        revision: Some(OTHER),
        ..pod("a")
    }];
    let mut record = recreating("a");
    record
        .updates
        .values_mut()
        .for_each(|update| update.recreate = None);
    let plan = plan_with(&set(1), &pods, &record);
    assert_eq!(actions(&plan), [""; 0]);
    assert_eq!(plan.record, recreating("a"));
}

/// Whether the container `web`, whose id was `1`, has been restarted.
#[rstest]
#[case::same_id(Some("1"), true, false)]
#[case::new_id(Some("2"), true, true)]
#[case::pulling(None, true, false)]
#[case::crashed_before_the_patch(Some("2"), false, false)]
fn l12_a_restart_is_told_by_the_id_of_the_container(
    #[case] id: Option<&str>,
    #[case] is_observed: bool,
    #[case] is_restarted: bool,
) {
    let patch = Patch {
        images: [("web".to_owned(), "web:2".to_owned())].into(),
        ..Patch::default()
    };
    let container = |id| {
        [("web", id), ("log", Some("7"))].map(|(name, id)| Container {
            name,
            id,
            ..Container::default()
        })
    };
    let record = InPlaceRecord::new(&patch, (&container(Some("1")), None), now());
    let expected = if is_restarted {
        InPlace::Settled
    } else {
        InPlace::Restarting { since: now() }
    };
    assert_eq!(
        record.state(&container(id), is_observed, Resize::Settled),
        expected
    );
}

#[test]
fn l12_where_nothing_restarts_nothing_is_waited_for() {
    let record = InPlaceRecord::new(&Patch::default(), (&[], None), now());
    let state = record.state(&[], false, Resize::Settled);
    assert_eq!(state, InPlace::Settled);
}
