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

/// Has the controller read, write, and release in all members during an attack of `c`; then `c` is honest again.
async fn survives(attack: Attack) {
    let panicked = panics();
    let (federation, switch) = federation().await;
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
        Attack::EndlessBody | Attack::HugeObject | Attack::PagesWithoutEnd
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
    ($($name:ident: $attack:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let _alone = ALONE.lock().await;
            survives(Attack::$attack).await;
        }
    )*};
}

attacks! {
    s5_an_endless_body: EndlessBody,
    s5_slow_bytes: SlowBytes,
    s6_a_huge_error: HugeError,
    s5_an_endless_error: EndlessError,
    s5_a_redirect: Redirect,
    s2_a_wrong_kind: WrongKind,
    s5_deep_json: DeepJson,
    s5_pages_without_end: PagesWithoutEnd,
    s5_fabricated_objects_without_end: FabricatedObjectsWithoutEnd,
    s5_a_flood_of_events: WatchFlood,
    s5_an_object_before_its_type: ObjectBeforeType,
    s5_a_huge_object: HugeObject,
    s5_long_texts: LongTexts,
    s5_unknown_keys: UnknownKeys,
    s5_a_wide_template: WideTemplate,
    s2_labels_as_text: LabelsAsText,
    s2_largest_numbers: LargestNumbers,
    s2_gigantic_numbers: GiganticNumbers,
    s6_escape_sequences: Escapes,
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
