//! Every pattern of faults at every single write of a scenario (Sieve, OSDI 2022): a crash before or after it, a lost
//! response, late events, skipped events.
//!
//! ```text
//! run without faults --> n writes, end state, creations and deletions of each kind in each member
//! n x patterns       --> the same end state, no other creations and deletions, all invariants, and then no more writes
//! ```
//!
//! `FEDRS_PATTERNS=1` tries each pattern at each write; by default writes take turns with the patterns.

mod change_counter;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    time::Duration,
};

use serde_json::{Value, json};
use simulation::{
    CrashPoint, InvariantChecker, MEMBERS_PATH, SimFederation, SimFederationSpec, SimMemberSpec,
    even, frs,
};

use self::change_counter::{ChangeCounter, ChangeCounts};

/// Longer than each of the scenarios, in simulated seconds: what a member that returns waits for, and a lost response.
const TIMEOUT: u64 = 600;
/// Then nothing is written for this time.
const QUIET: Duration = Duration::from_secs(30);

/// What happens at the n-th write.
type Pattern = fn(u64) -> CrashPoint;

const PATTERNS: [Pattern; 5] = [
    CrashPoint::Before,
    CrashPoint::After,
    CrashPoint::Unanswered,
    CrashPoint::Late,
    CrashPoint::Skipped,
];

/// What came of a run.
struct End {
    writes: u64,
    tally: ChangeCounts,
}

/// A federation, and what happens at a write of its controller.
struct Run {
    federation: SimFederation,
    checker: InvariantChecker,
    point: Option<CrashPoint>,
    /// Whether nothing is written at the end; how long a member has been lost is.
    is_quiet: bool,
}

impl Run {
    /// Three members with room for 40 pods each, but for `c`, which may have less; no controller.
    async fn new(point: Option<CrashPoint>, pods_per_node_of_c: u32) -> Self {
        let member = |name: &str| SimMemberSpec {
            name: name.to_owned(),
            nodes: 2,
            pods_per_node: if name == "c" { pods_per_node_of_c } else { 20 },
        };
        let spec = SimFederationSpec {
            members: ["a", "b", "c"].map(member).into(),
            ..SimFederationSpec::default()
        };
        let federation = SimFederation::start_clusters(spec).await;
        Self::of(federation, point)
    }

    fn of(federation: SimFederation, point: Option<CrashPoint>) -> Self {
        Self {
            checker: InvariantChecker::start(&federation, &["web"]),
            federation,
            point,
            is_quiet: true,
        }
    }

    /// The same with a FederatedDeployment, of whose `replicas` so many may be unavailable.
    async fn with_rollout(point: Option<CrashPoint>, replicas: u32, unavailable: u32) -> Self {
        let mut federation = Self::new(point, 20).await.federation;
        federation.deploys("web");
        let mut set = frs("web", replicas, &even(true));
        set["spec"]["strategy"] = json!({
            "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": 0 },
        });
        Self::of(federation, point).running(replicas, &set).await
    }

    /// The same, and a controller has placed `replicas` evenly.
    async fn with_replicas(point: Option<CrashPoint>, replicas: u32) -> Self {
        let set = frs("web", replicas, &even(true));
        Self::new(point, 20).await.running(replicas, &set).await
    }

    /// A controller has placed the `replicas` of `set` evenly.
    async fn running(self, replicas: u32, set: &Value) -> Self {
        let mut run = self;
        run.federation.start_controller().await;
        run.federation.create(set).await;
        let share = u64::from(replicas) / 3;
        let what = format!("{replicas} run");
        let wait = run
            .federation
            .wait_until(&what, TIMEOUT, async |federation| {
                is_settled(federation, [share; 3]).await
            });
        wait.await;
        run
    }

    /// Has `act` happen while no controller runs, and starts one to which the pattern happens. Then `settled` holds, and stays
    /// so without writes.
    async fn to(
        mut self,
        act: impl AsyncFnOnce(&SimFederation, &InvariantChecker),
        settled: impl AsyncFn(&SimFederation) -> bool,
        ready: RangeInclusive<u64>,
    ) -> End {
        let (federation, point) = (&mut self.federation, self.point);
        federation.kill_controller().await;
        let counter = ChangeCounter::start(federation);
        act(federation, &self.checker).await;
        federation.start_controller_until(point).await;
        if let Some(CrashPoint::Before(_) | CrashPoint::After(_)) = point {
            let crashed = federation.wait_for_crash(TIMEOUT).await;
            assert!(crashed, "{point:?} was never reached");
            federation.start_controller().await;
        }
        let what = format!("{point:?}");
        federation
            .wait_until(&what, TIMEOUT, async |federation| settled(federation).await)
            .await;
        let settling = federation.writes();
        // Held-back events, and what is written about the past.
        tokio::time::sleep(QUIET).await;
        let writes = federation.writes();
        tokio::time::sleep(QUIET).await;
        let state = federation.describe().await;
        let now = federation.writes();
        assert!(
            now == writes || !self.is_quiet,
            "{what}: {} writes in a settled federation\n{state}",
            now - writes
        );
        assert!(
            settled(federation).await,
            "{what}: it did not stay so\n{state}"
        );
        let violations = self.checker.violations();
        assert!(violations.is_empty(), "{what}: {violations:#?}\n{state}");
        let seen = counter.seen();
        let is_allowed = ready.contains(&seen.lowest) && ready.contains(&seen.highest);
        assert!(
            is_allowed,
            "{what}: {seen:?}, {ready:?} may be ready\n{state}"
        );
        End {
            writes: settling,
            tally: seen.tally,
        }
    }
}

/// Runs a scenario without faults, and then with the patterns at each of its writes. `exact`: in all of them objects are
/// created and deleted as often.
fn at_every_write(exact: bool, run: impl AsyncFn(Option<CrashPoint>) -> End) {
    let simulate = |point| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without IO can be built")
            .block_on(run(point))
    };
    let reference = simulate(None);
    let writes = reference.writes;
    assert!(writes > 3, "{writes} writes are too few for this test");
    let is_exhaustive = std::env::var_os("FEDRS_PATTERNS").is_some();
    let mut differences = BTreeMap::new();
    let mut runs = 0;
    for write in 1..=writes {
        for (turn, pattern) in (0..).zip(PATTERNS) {
            if !is_exhaustive && (write + turn) % 3 != 0 {
                continue;
            }
            runs += 1;
            let point = pattern(write);
            let end = simulate(Some(point));
            let difference = difference(&reference.tally, &end.tally);
            if !difference.is_empty() {
                differences.insert(format!("{point:?}"), difference);
            }
        }
    }
    println!("{runs} runs, {writes} writes without faults");
    if !differences.is_empty() {
        let text = format!("{differences:#?}, without faults {:#?}", reference.tally);
        assert!(!exact, "{text}");
        println!("{text}");
    }
}

/// What was done another number of times than without faults.
fn difference(reference: &ChangeCounts, tally: &ChangeCounts) -> Vec<String> {
    let all: BTreeSet<_> = reference.keys().chain(tally.keys()).collect();
    let count = |tally: &ChangeCounts, what: &str| tally.get(what).copied().unwrap_or_default();
    let text = |what: &String| {
        let (expected, found) = (count(reference, what), count(tally, what));
        (expected != found).then(|| format!("{what}: {found} times instead of {expected}"))
    };
    all.into_iter().filter_map(text).collect()
}

async fn is_settled(federation: &SimFederation, layout: [u64; 3]) -> bool {
    let wanted: u64 = layout.iter().sum();
    federation.sorted_layout("web") == layout
        && federation.available("web") == wanted
        && federation.is_settled("web").await
}

#[test]
fn a_creation_survives_every_pattern() {
    at_every_write(true, async |point| {
        let run = Run::new(point, 20).await;
        let create = async |federation: &SimFederation, _: &InvariantChecker| {
            federation.create(&frs("web", 7, &even(true))).await;
        };
        let settled = async |federation: &SimFederation| is_settled(federation, [2, 2, 3]).await;
        run.to(create, settled, 0..=7).await
    });
}

#[test]
fn scaling_survives_every_pattern() {
    for (from, to, share) in [(6, 12, 4), (12, 6, 2)] {
        at_every_write(true, async |point| {
            let run = Run::with_replicas(point, from).await;
            let scale = async |federation: &SimFederation, _: &InvariantChecker| {
                federation
                    .patch("web", &json!({ "spec": { "replicas": to } }))
                    .await;
            };
            let settled =
                async |federation: &SimFederation| is_settled(federation, [share; 3]).await;
            run.to(scale, settled, 6..=12).await
        });
    }
}

#[test]
fn f20_a_move_survives_every_pattern_without_a_dip() {
    at_every_write(true, async |point| {
        let run = Run::with_replicas(point, 12).await;
        let prefer = async |federation: &SimFederation, _: &InvariantChecker| {
            let clusters =
                json!({ "a": { "weight": 10 }, "b": { "weight": 1 }, "*": { "weight": 1 } });
            let placement = json!({ "spec": { "placement": { "clusters": clusters } } });
            federation.patch("web", &placement).await;
        };
        let settled = async |federation: &SimFederation| is_settled(federation, [1, 1, 10]).await;
        run.to(prefer, settled, 12..=15).await
    });
}

#[test]
fn f20_a_drain_survives_every_pattern_without_a_dip() {
    at_every_write(true, async |point| {
        let run = Run::with_replicas(point, 9).await;
        let drain = async |federation: &SimFederation, _: &InvariantChecker| {
            let path = format!("{MEMBERS_PATH}/b");
            let spec = json!({ "spec": { "drain": true } });
            federation.on_host("PATCH", &path, &spec).await.unwrap();
        };
        let settled = async |federation: &SimFederation| {
            federation.layout("web")["b"] == 0 && is_settled(federation, [0, 4, 5]).await
        };
        run.to(drain, settled, 9..=12).await
    });
}

/// A user changes the image.
async fn change_image(federation: &SimFederation, _: &InvariantChecker) {
    let containers = json!([{ "name": "main", "image": "registry.example/main:2" }]);
    let template = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    federation.patch("web", &template).await;
}

/// Whether the local set of each member has that image.
fn has_image(federation: &SimFederation) -> bool {
    let mut members = federation.member_names().into_iter();
    members.all(|member| {
        let set = federation.local_set(&member, "web").unwrap_or_default();
        set["spec"].to_string().contains("registry.example/main:2")
    })
}

#[test]
fn f20_a_template_survives_every_pattern() {
    at_every_write(true, async |point| {
        let run = Run::with_replicas(point, 6).await;
        let settled = async |federation: &SimFederation| {
            has_image(federation) && is_settled(federation, [2, 2, 2]).await
        };
        run.to(change_image, settled, 6..=6).await
    });
}

#[test]
fn l14_a_rollout_survives_every_pattern_within_its_budget() {
    at_every_write(true, async |point| {
        let run = Run::with_rollout(point, 9, 2).await;
        let settled = async |federation: &SimFederation| {
            let set = federation.frs("web").await;
            has_image(federation)
                && set["status"]["updatedReplicas"] == 9
                && !set["status"]["rollout"]["record"]
                    .to_string()
                    .contains("generation")
                && is_settled(federation, [3, 3, 3]).await
        };
        run.to(change_image, settled, 7..=9).await
    });
}

#[test]
fn f5_a_deletion_survives_every_pattern() {
    at_every_write(true, async |point| {
        let run = Run::with_replicas(point, 6).await;
        let delete =
            async |federation: &SimFederation, _: &InvariantChecker| federation.delete("web").await;
        let settled = async |federation: &SimFederation| {
            let is_released = |member: &String| {
                let set = federation.local_set(member, "web").unwrap_or_default();
                !set["metadata"]["labels"].to_string().contains("fedrs.dev")
            };
            federation.frs("web").await.is_null()
                && federation.member_names().iter().all(is_released)
                && federation.available("web") == 6
        };
        run.to(delete, settled, 6..=6).await
    });
}

#[test]
fn f5_a_deletion_with_its_local_sets_survives_every_pattern() {
    at_every_write(true, async |point| {
        let run = Run::with_replicas(point, 6).await;
        let delete = async |federation: &SimFederation, _: &InvariantChecker| {
            federation
                .patch("web", &json!({ "spec": { "deletionPolicy": "Delete" } }))
                .await;
            federation.delete("web").await;
        };
        let settled = async |federation: &SimFederation| {
            let is_gone = |member: &String| federation.local_set(member, "web").is_none();
            federation.frs("web").await.is_null()
                && federation.member_names().iter().all(is_gone)
                && federation.available("web") == 0
        };
        run.to(delete, settled, 0..=6).await
    });
}

#[test]
fn f34_a_full_member_survives_every_pattern() {
    at_every_write(false, async |point| {
        let mut run = Run::new(point, 1).await;
        // Its capacity is tried again from time to time.
        run.is_quiet = false;
        let create = async |federation: &SimFederation, _: &InvariantChecker| {
            federation.create(&frs("web", 9, &even(true))).await;
        };
        let settled = async |federation: &SimFederation| {
            federation.available("web") == 9
                && federation.layout("web")["c"] == 3
                && federation.sorted_layout("web") == [3, 3, 4]
                && federation.is_settled("web").await
        };
        run.to(create, settled, 0..=12).await
    });
}

#[test]
fn f33_a_member_lost_and_back_survives_every_pattern_without_a_dip() {
    at_every_write(true, async |point| {
        let mut run = Run::with_replicas(point, 9).await;
        run.is_quiet = false;
        run.checker.set_unreachable("b", true);
        let federation = &run.federation;
        federation.member("b").faults().set_unreachable(true);
        let what = "its replicas run elsewhere";
        let replaced = federation.wait_until(what, TIMEOUT, async |federation| {
            federation.available("web") == 12
        });
        replaced.await;
        let back = async |federation: &SimFederation, checker: &InvariantChecker| {
            checker.set_unreachable("b", false);
            federation.member("b").faults().heal();
        };
        let settled = async |federation: &SimFederation| is_settled(federation, [3, 3, 3]).await;
        run.to(back, settled, 9..=12).await
    });
}

#[test]
fn f33_the_loss_of_a_member_survives_every_pattern() {
    at_every_write(true, async |point| {
        let mut run = Run::with_replicas(point, 9).await;
        run.is_quiet = false;
        let lose = async |federation: &SimFederation, checker: &InvariantChecker| {
            checker.set_unreachable("b", true);
            federation.member("b").faults().set_unreachable(true);
        };
        let settled = async |federation: &SimFederation| federation.available("web") == 12;
        run.to(lose, settled, 9..=12).await
    });
}
