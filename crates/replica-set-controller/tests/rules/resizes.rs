//! L12: CPU and memory of running pods, through their subresource `resize`.

use fedrs_api::{LocalRecord, PodTemplate, ResourceUpdates};
use replica_set_controller::{
    Change, Container, ContainerResize, Gate, Group, InPlace, InPlaceRecord, Patch, Pod, PodWait,
    Resize, ResizeStatus, ResizeWait, Resources, Wait,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::*;

fn template(container: &Value, more: &Value) -> PodTemplate {
    let mut container = container.clone();
    container["name"] = "web".into();
    let mut spec = json!({ "containers": [container], "initContainers": [] });
    for (name, value) in more.as_object().expect("it is an object") {
        spec[name] = value.clone();
    }
    let template = json!({ "metadata": {}, "spec": spec });
    serde_json::from_value(template).expect("the shape is right")
}

/// How a container gets from some resources to others, with these other fields.
fn between(resources: [Value; 2], container: &Value, spec: &Value) -> Change {
    let [from, to] = resources.map(|resources| {
        let mut container = container.clone();
        container["resources"] = resources;
        template(&container, spec)
    });
    Change::between(&from, &to, ResourceUpdates::Resize)
}

fn cpu(request: &str) -> Value {
    json!({ "requests": { "cpu": request } })
}

fn guaranteed(cpu: &str, memory: &str) -> Value {
    let amounts = json!({ "cpu": cpu, "memory": memory });
    json!({ "requests": amounts, "limits": amounts })
}

#[rstest]
#[case::request([cpu("1"), cpu("2")], json!({"requests": {"cpu": "2"}}))]
#[case::a_number([json!({"requests": {"cpu": 1}}), json!({"requests": {"cpu": 2}})], json!({"requests": {"cpu": "2"}}))]
#[case::added([cpu("1"), json!({"requests": {"cpu": "1", "memory": "1Gi"}})], json!({"requests": {"cpu": "1", "memory": "1Gi"}}))]
#[case::guaranteed([guaranteed("1", "1Gi"), guaranteed("2", "1Gi")], guaranteed("2", "1Gi"))]
#[case::a_limit_is_the_request(
    [json!({"limits": {"cpu": "1", "memory": "1Gi"}}), json!({"limits": {"cpu": "1", "memory": "2Gi"}})],
    guaranteed("1", "2Gi")
)]
#[case::others_stay(
    [json!({"requests": {"cpu": "1", "disk": "1"}}), json!({"requests": {"cpu": "2", "disk": "1"}})],
    cpu("2")
)]
fn l12_cpu_and_memory_are_resized_if_the_set_asks_for_it(
    #[case] resources: [Value; 2],
    #[case] expected: Value,
) {
    let change = between(resources.clone(), &json!({}), &json!({}));
    let Change::InPlace(patch) = &change else {
        panic!("{change:?}")
    };
    let resize = &patch.resizes["web"];
    let texts = |amounts: &Value| serde_json::from_value(amounts.clone()).unwrap_or_default();
    let expected = ContainerResize {
        requests: texts(&expected["requests"]),
        limits: texts(&expected["limits"]),
        ..ContainerResize::default()
    };
    assert_eq!(*resize, expected);
    let [from, to] =
        resources.map(|resources| template(&json!({ "resources": resources }), &json!({})));
    let recreated = Change::Recreate(vec!["spec.containers[web].resources".to_owned()]);
    assert_eq!(
        Change::between(&from, &to, ResourceUpdates::Recreate),
        recreated
    );
}

#[rstest]
#[case::quality_of_service([cpu("1"), guaranteed("1", "1Gi")], json!({}))]
#[case::best_effort([json!(null), cpu("1")], json!({}))]
#[case::removed([json!({"requests": {"cpu": "1", "memory": "1"}}), cpu("1")], json!({}))]
#[case::a_limit_that_is_removed(
    [json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}), cpu("1")], json!({})
)]
#[case::disk([cpu("1"), json!({"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}})], json!({}))]
#[case::devices([cpu("1"), json!({"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]})], json!({}))]
#[case::no_quantity([cpu("1"), cpu("much")], json!({}))]
#[case::of_the_pod([cpu("1"), cpu("2")], json!({"resources": {"requests": {"cpu": "4"}}}))]
fn l12_what_the_api_server_does_not_resize_is_recreated(
    #[case] resources: [Value; 2],
    #[case] spec: Value,
) {
    let fields = vec!["spec.containers[web].resources".to_owned()];
    assert_eq!(
        between(resources, &json!({}), &spec),
        Change::Recreate(fields)
    );
}

#[test]
fn l12_sidecars_are_resized_and_init_containers_recreate() {
    let spec = |restarts: &Value, request: &str| {
        let init = json!({ "name": "init", "restartPolicy": restarts, "resources": cpu(request) });
        template(
            &json!({ "resources": cpu("1") }),
            &json!({ "initContainers": [init] }),
        )
    };
    let between = |restarts: Value| {
        let (from, to) = (spec(&restarts, "1"), spec(&restarts, "2"));
        Change::between(&from, &to, ResourceUpdates::Resize)
    };
    let fields = vec!["spec.initContainers[init].resources".to_owned()];
    assert_eq!(between(Value::Null), Change::Recreate(fields));
    let Change::InPlace(patch) = between(json!("Always")) else {
        panic!("a sidecar is resized")
    };
    assert!(patch.resizes["init"].is_sidecar);
}

/// Memory restarts the container, CPU does not.
#[rstest]
#[case::cpu(guaranteed("2", "1Gi"), false)]
#[case::memory(guaranteed("1", "2Gi"), true)]
fn l12_the_policy_of_a_container_says_whether_it_restarts(
    #[case] resources: Value,
    #[case] restarts: bool,
) {
    let policy = json!([
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ]);
    let container = json!({ "resizePolicy": policy });
    let change = between([guaranteed("1", "1Gi"), resources], &container, &json!({}));
    let Change::InPlace(patch) = change else {
        panic!("{change:?}")
    };
    assert_eq!(patch.resizes["web"].restarts, restarts);
    assert_eq!(patch.restarts().count(), usize::from(restarts));
}

fn resources(value: Value) -> Resources {
    serde_json::from_value(value).expect("the shape is right")
}

/// A pod that was patched from one CPU to two: what it requests and has, and its conditions.
#[rstest]
#[case::not_sent("1", Some("1"), [None, None], Resize::Due { since: now() })]
#[case::sent("2", Some("1"), [None, None], waiting(ResizeWait::Kubelet))]
#[case::in_other_words("2000m", Some("2e0"), [None, None], Resize::Settled)]
#[case::deferred("2", Some("1"), [Some("Deferred"), None], waiting(ResizeWait::Room))]
#[case::infeasible("2", Some("1"), [Some("Infeasible"), None], Resize::Infeasible)]
#[case::in_progress("2", Some("2"), [None, Some("")], waiting(ResizeWait::Kubelet))]
#[case::fails("2", Some("1"), [None, Some("Error")], waiting(ResizeWait::Retry))]
#[case::a_kubelet_that_says_nothing("2", None, [None, None], waiting(ResizeWait::Kubelet))]
fn l12_a_resize_is_complete_when_the_kubelet_says_so(
    #[case] wanted: &str,
    #[case] has: Option<&str>,
    #[case] conditions: [Option<&str>; 2],
    #[case] expected: Resize,
) {
    let containers = [Container {
        name: "web",
        id: Some("1"),
        wanted: Some(resources(cpu(wanted))),
        resources: has.map(|has| resources(cpu(has))),
    }];
    let status = ResizeStatus {
        containers: &containers,
        generation: None,
        is_observed: true,
        pending: conditions[0],
        in_progress: conditions[1],
    };
    assert_eq!(record(false).resize(&status), expected);
    let unobserved = ResizeStatus {
        is_observed: false,
        ..status
    };
    let expected = match expected {
        Resize::Due { .. } => expected,
        _ => waiting(ResizeWait::Kubelet),
    };
    assert_eq!(record(false).resize(&unobserved), expected);
}

fn waiting(wait: ResizeWait) -> Resize {
    Resize::Pending { since: now(), wait }
}

/// The record of a pod of generation 4 that gets two CPUs.
fn record(restarts: bool) -> InPlaceRecord {
    InPlaceRecord::new(&patch(restarts), (&[], Some(4)), now())
}

fn patch(restarts: bool) -> Patch {
    let resize = ContainerResize {
        requests: [("cpu".to_owned(), "2".to_owned())].into(),
        restarts,
        ..ContainerResize::default()
    };
    Patch {
        resizes: [("web".to_owned(), resize)].into(),
        ..Patch::default()
    }
}

/// C4: a pod whose resources somebody else has changed after the controller is left alone.
#[rstest]
#[case::not_sent(Some(4), Resize::Due { since: now() })]
#[case::changed(Some(5), Resize::Settled)]
#[case::unknown(None, Resize::Due { since: now() })]
fn c4_l12_what_others_resize_stays(#[case] generation: Option<i64>, #[case] expected: Resize) {
    let containers = [Container {
        name: "web",
        id: Some("1"),
        wanted: Some(resources(cpu("1"))),
        resources: Some(resources(cpu("1"))),
    }];
    let status = ResizeStatus {
        containers: &containers,
        generation,
        is_observed: true,
        ..ResizeStatus::default()
    };
    assert_eq!(record(false).resize(&status), expected);
}

/// The image is a change of the spec as well: it is the next generation that is resized.
#[test]
fn c4_l12_the_generation_counts_the_patch() {
    let patch = Patch {
        images: [("web".to_owned(), "web:2".to_owned())].into(),
        ..patch(false)
    };
    let record = InPlaceRecord::new(&patch, (&[], Some(4)), now());
    assert_eq!(record.generation, Some(5));
}

#[rstest]
#[case::running(false, waiting(ResizeWait::Kubelet), InPlace::Settled)]
#[case::restarting(true, waiting(ResizeWait::Kubelet), InPlace::Restarting { since: now() })]
#[case::restarts_some_day(true, waiting(ResizeWait::Room), InPlace::Restarting { since: now() })]
#[case::restarted(true, Resize::Settled, InPlace::Settled)]
#[case::never_restarts(true, Resize::Infeasible, InPlace::Settled)]
fn l12_a_resize_that_restarts_is_waited_for(
    #[case] restarts: bool,
    #[case] resize: Resize,
    #[case] expected: InPlace,
) {
    assert_eq!(record(restarts).state(&[], true, resize), expected);
}

/// What a pod needs that has the label of the current template.
#[rstest]
#[case::not_sent(Gate::Open, InPlace::Settled, Resize::Due { since: at(-5) }, "Resize a")]
#[case::out_of_endpoints(Gate::Closed, InPlace::Restarting { since: at(-5) }, Resize::Due { since: at(-5) }, "Resize a")]
#[case::without_restart(Gate::Open, InPlace::Settled, waiting(ResizeWait::Kubelet), "wait")]
#[case::no_room(Gate::Open, InPlace::Settled, waiting(ResizeWait::Room), "wait")]
#[case::restarting(Gate::Closed, InPlace::Restarting { since: at(-5) }, waiting(ResizeWait::Room), "wait")]
#[case::images_restarted(
    Gate::Closed,
    InPlace::Settled,
    waiting(ResizeWait::Room),
    "OpenGate a"
)]
#[case::complete(Gate::Open, InPlace::Settled, Resize::Settled, "")]
fn l12_a_pod_is_resized_after_it_was_patched(
    #[case] gate: Gate,
    #[case] in_place: InPlace,
    #[case] resize: Resize,
    #[case] expected: &str,
) {
    let pods = [Pod {
        gate,
        in_place,
        resize,
        ..pod("a")
    }];
    let plan = plan(&set(1), &pods);
    if expected == "wait" {
        let is_resize = |wait: &Wait<'_>| {
            let reason = match resize {
                Resize::Pending { wait, .. } => PodWait::Resize(wait),
                _ => return false,
            };
            *wait == Wait::Pod { pod: "a", reason }
        };
        assert!(plan.waits.iter().any(is_resize), "{:?}", plan.waits);
    } else {
        let expected = (!expected.is_empty()).then(|| expected.to_owned());
        assert_eq!(actions(&plan), Vec::from_iter(expected));
    }
}

/// A pod that waits for room stays available, and uses the budget. It does not count as updated.
#[test]
fn l14_a_pod_that_is_resized_uses_the_budget() {
    let resizing = Pod {
        resize: waiting(ResizeWait::Room),
        ..pod("a")
    };
    let pods = [resizing, old("b"), old("c")];
    let plan = plan(&budget(3, 1), &pods);
    assert_eq!(plan.account.in_use, 1);
    assert_eq!(updates(&plan), [""; 0]);
    assert_eq!((plan.counts.available, plan.counts.updated), (3, 0));
}

/// A kubelet that does nothing fails after a while, and one that has no room does not.
#[rstest]
#[case::kubelet(ResizeWait::Kubelet, Group::Failed)]
#[case::retry(ResizeWait::Retry, Group::Failed)]
#[case::room(ResizeWait::Room, Group::InProgress)]
fn l16_a_resize_without_end_has_failed(#[case] wait: ResizeWait, #[case] expected: Group) {
    let since = at(-600);
    let pods = [Pod {
        resize: Resize::Pending { since, wait },
        ..pod("a")
    }];
    let plan = plan(&set(1), &pods);
    let groups = plan.counts.revisions[&Some(TARGET)];
    let found = [groups.in_progress, groups.failed];
    let expected = [expected == Group::InProgress, expected == Group::Failed];
    assert_eq!(found, expected.map(usize::from));
}

/// The pod is ready and recreated all the same, once that is recorded: within the budget, as any other update.
#[rstest]
#[case::infeasible(Pod { resize: Resize::Infeasible, ..pod("a") })]
#[case::rejected(Pod { resize: Resize::Due { since: at(-5) }, is_refused: true, ..pod("a") })]
fn l12_a_pod_that_can_not_be_resized_is_recreated(#[case] stuck: Pod<'static>) {
    let pods = [stuck, old("b")];
    let set = budget(2, 1);
    let first = plan(&set, &pods);
    assert_eq!(updates(&first), ["a"], "it uses the budget as it is");
    assert!(first.record.updates["a"].recreate.is_some());
    let second = plan_with(&set, &pods, &first.record);
    assert_eq!(actions(&second), ["Remove a"]);
    assert_eq!(updates(&second), ["a"]);
}

/// A pod whose kubelet reports no resources is recreated at once.
#[test]
fn l12_a_kubelet_that_can_not_resize_is_not_asked() {
    let changes = [(OLD, Change::InPlace(patch(false)))].into();
    let set = replica_set_controller::Set {
        changes: &changes,
        ..set(1)
    };
    for (is_resizable, is_recreated) in [(true, false), (false, true)] {
        let pods = [Pod {
            is_resizable,
            ..old("a")
        }];
        let record: LocalRecord = plan(&set, &pods).record;
        assert_eq!(record.updates["a"].recreate.is_some(), is_recreated);
    }
}
