//! A member whose API server is hostile: the controller's memory stays bounded, nothing panics, and the other members get
//! their replicas.

use std::sync::{
    Once,
    atomic::{AtomicUsize, Ordering},
};

use fedrs_tests::{
    SimFederation, SimFederationSpec, frs,
    hostile::{Attack, Switch},
    minutes, seeds,
};
use peak_alloc::PeakAlloc;
use serde_json::json;
use tokio::sync::Mutex;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;
/// The heap is shared: only one test measures at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The heap that one hostile member may cost, in MiB, including the responses that the hostile server itself builds. The
/// memory limit of the Deployment is 256 MiB.
const BOUND: f32 = 64.0;

/// Seeds of random mutations.
const SEEDS: u64 = 20;

/// The number of panics of all threads so far. A panic in a task would end the controller.
fn panics() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            COUNT.fetch_add(1, Ordering::SeqCst);
            default(info);
        }));
    });
    COUNT.load(Ordering::SeqCst)
}

/// Three members with 12 replicas of `web`, of which `c` can be switched to an attack; and `local`, which runs in `a` and `b`.
async fn federation() -> (SimFederation, Switch) {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    let switch = Switch::default();
    let of_c = switch.clone();
    federation.intercept("c", move |honest| of_c.client(honest));
    federation.start_controller().await;
    federation.run(12).await;
    let clusters = json!({ "clusters": { "a": { "weight": 1 }, "b": { "weight": 1 } } });
    federation.create(&frs("local", 8, &clusters)).await;
    available(&federation, "local", 8).await;
    minutes(1).await;
    (federation, switch)
}

async fn available(federation: &SimFederation, name: &str, replicas: u64) {
    let what = format!("{replicas} replicas of {name} are available");
    federation
        .wait_until(&what, 60, async |federation| {
            federation.available(name) == replicas
        })
        .await;
}

/// How much the controller has to do with the hostile member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// One watch of all namespaces, three sets.
    Small,
    /// A watch for each of 50 namespaces, 19 sets.
    Large,
}

/// The sets of a large scale.
fn more() -> impl Iterator<Item = String> {
    (0..16).map(|number| format!("more-{number}"))
}

/// Has `c` watched by 50 namespaces, and creates more sets.
async fn enlarge(federation: &SimFederation) {
    let names = (0..49).map(|number| format!("team-{number}"));
    let names: Vec<_> = names.chain(["default".to_owned()]).collect();
    let namespaces = json!({ "spec": { "namespaces": { "names": names } } });
    federation.patch_member("c", &namespaces).await;
    for name in more() {
        let set = frs(&name, 3, &json!({ "clusters": { "*": { "weight": 1 } } }));
        federation.create(&set).await;
    }
    for name in more() {
        available(federation, &name, 3).await;
    }
}

/// Has the controller read, write, and release in all members during an attack of `c`; then `c` is honest again.
async fn survives(attack: Attack, scale: Scale) {
    let panicked = panics();
    let (federation, switch) = federation().await;
    if scale == Scale::Large {
        enlarge(&federation).await;
    }
    let web = frs("gone", 3, &json!({ "clusters": { "*": { "weight": 1 } } }));
    federation.create(&web).await;
    available(&federation, "gone", 3).await;
    let base = HEAP.current_usage_as_mb();
    HEAP.reset_peak_usage();

    switch.set_attack(Some(attack));
    let image = json!({ "spec": {
        "replicas": 15,
        "template": { "spec": { "containers": [{ "name": "c", "image": "web:2" }] } },
    } });
    federation.patch("web", &image).await;
    // A set that has to be overwritten has none of its pods labeled.
    if scale == Scale::Large && attack != Attack::LongLabels {
        for name in more() {
            federation.patch(&name, &image).await;
        }
    }
    federation
        .patch("local", &json!({ "spec": { "replicas": 12 } }))
        .await;
    federation.delete("gone").await;
    available(&federation, "local", 12).await;
    minutes(2).await;
    for name in ["a", "b"] {
        let ready = federation.member_condition(name, "Ready").await;
        assert!(
            ready.starts_with("True Healthy"),
            "{attack:?}: {name}: {ready}"
        );
    }
    let exceeds_a_limit = matches!(
        attack,
        Attack::EndlessBody | Attack::HugeObject | Attack::LargeSets | Attack::PagesWithoutEnd
    );
    if exceeds_a_limit {
        let synced = federation.member_condition("c", "Synced").await;
        assert!(synced.starts_with("False Degraded"), "{attack:?}: {synced}");
    }
    let sets = federation.sets("web");
    assert!(
        sets["a"].available >= 4 && sets["b"].available >= 4,
        "{attack:?}: {sets:?}"
    );
    let peak = HEAP.peak_usage_as_mb() - base;
    assert!(peak < BOUND, "{attack:?}: {peak} MiB");
    println!("{attack:?}: {peak} MiB");

    switch.set_attack(None);
    federation
        .wait_until("c is as it should be again", 900, async |federation| {
            federation.is_settled("web").await
                && federation.available("web") == 15
                && federation.frs("gone").await.is_null()
        })
        .await;
    assert_eq!(panics(), panicked, "{attack:?}: a task panicked");
}

macro_rules! attacks {
    ($($name:ident: $attack:ident $scale:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let _alone = ALONE.lock().await;
            survives(Attack::$attack, Scale::$scale).await;
        }
    )*};
}

attacks! {
    s5_an_endless_body: EndlessBody Small,
    s5_slow_bytes: SlowBytes Small,
    s6_a_huge_error: HugeError Small,
    s5_an_endless_error: EndlessError Small,
    s5_a_redirect: Redirect Small,
    s2_a_wrong_kind: WrongKind Small,
    s5_deep_json: DeepJson Small,
    s5_pages_without_end: PagesWithoutEnd Small,
    s5_fabricated_objects_without_end: FabricatedObjectsWithoutEnd Small,
    s5_a_flood_of_events: WatchFlood Small,
    s5_an_object_before_its_type: ObjectBeforeType Small,
    s5_a_huge_object: HugeObject Small,
    s5_long_texts: LongTexts Small,
    s5_unknown_keys: UnknownKeys Small,
    s5_a_wide_template: WideTemplate Small,
    s2_labels_as_text: LabelsAsText Small,
    s2_largest_numbers: LargestNumbers Small,
    s2_gigantic_numbers: GiganticNumbers Small,
    s6_escape_sequences: Escapes Small,
    s5_wide_pages: WidePages Small,
    s5_a_wide_selector: WideSelector Small,
    s5_large_sets: LargeSets Small,
    s5_unfinished_bodies_in_50_namespaces: UnfinishedBodies Large,
    s5_unfinished_events_in_50_namespaces: UnfinishedEvents Large,
    s5_long_versions_in_50_namespaces: LongVersions Large,
    s5_wide_selectors_of_19_sets: WideSelector Large,
    s5_long_labels_of_unlabeled_pods_of_19_sets: LongLabels Large,
}

/// Random responses to every request of the controller: `FEDRS_SEED=7` repeats one, `FEDRS_SEEDS=500` tries more.
#[tokio::test(start_paused = true)]
async fn s2_random_mutations_of_responses() {
    let _alone = ALONE.lock().await;
    let panicked = panics();
    let (federation, switch) = federation().await;
    for seed in seeds(SEEDS) {
        switch.set_attack(Some(Attack::Mutations(seed)));
        let replicas = 12 + seed % 7;
        federation
            .patch("web", &json!({ "spec": { "replicas": replicas } }))
            .await;
        federation
            .patch("local", &json!({ "spec": { "replicas": replicas } }))
            .await;
        minutes(2).await;
        available(&federation, "local", replicas).await;
        assert_eq!(panics(), panicked, "seed {seed}: a task panicked");
    }
    switch.set_attack(None);
    federation
        .wait_until("c is as it should be again", 1800, async |federation| {
            federation.is_settled("web").await
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s3_a_member_that_claims_billions_of_replicas_takes_none_from_others() {
    let _alone = ALONE.lock().await;
    let (mut federation, switch) = federation().await;
    switch.set_attack(Some(Attack::LargestNumbers));
    // It lists the claimed replicas.
    federation.stop_controller().await;
    federation.start_controller().await;
    minutes(1).await;
    federation
        .patch("web", &json!({ "spec": { "replicas": 18 } }))
        .await;
    federation
        .wait_until("a and b have their shares", 120, async |federation| {
            let sets = federation.sets("web");
            sets["a"].available == 6 && sets["b"].available == 6
        })
        .await;
    let status = &federation.frs("web").await["status"];
    assert_eq!(
        status["clusters"][2]["reason"], "ExcessReplicas",
        "{status}"
    );
    assert!(status["replicas"].as_u64() <= Some(18), "{status}");
}
