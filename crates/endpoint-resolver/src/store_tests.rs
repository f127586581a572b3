//! When files are written, and what is read of them.

use rstest::rstest;
use tempfile::TempDir;

use super::*;
use crate::{endpoint::Endpoint, endpoints::Publisher};

fn set() -> SetName {
    SetName::new("shop", "web").unwrap()
}

fn endpoint(pod: &str) -> Endpoint {
    serde_json::from_value(serde_json::json!({
        "cluster": "eu", "pod": pod, "addresses": ["10.0.0.1"], "ports": [],
        "ready": true, "serving": true, "terminating": false,
    }))
    .unwrap()
}

fn answer(version: u64, pods: &[&str]) -> Resolved {
    Resolved {
        version,
        endpoints: held::sorted(pods.iter().map(|pod| endpoint(pod)).collect()),
        stale_members: Vec::new(),
        problem: None,
        confirmation: Confirmation::Live,
        is_from_service: true,
    }
}

fn past(seconds: u64) -> Confirmation {
    Confirmation::Past(Age {
        then: Duration::from_secs(seconds),
        at: Instant::now(),
    })
}

/// A directory, and the handle of a set whose answers are written there.
struct World {
    directory: TempDir,
    endpoints: Endpoints,
    publisher: Publisher,
}

impl World {
    fn new() -> Self {
        let (endpoints, publisher) = Endpoints::new(set(), View::Unknown(None));
        Self {
            directory: tempfile::tempdir().unwrap(),
            endpoints,
            publisher,
        }
    }

    fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(self.directory.path()).unwrap())
    }

    fn publish(&self, answer: Resolved) {
        self.publisher.publish(&View::Known(Arc::new(answer)));
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.directory.path()).unwrap();
        files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

#[tokio::test]
async fn d3_an_answer_is_read_as_it_was_written() {
    let world = World::new();
    let keep = tokio::spawn(world.store().keep(world.endpoints.fresh()));
    let written = answer(7, &["web-1", "web-2"]);
    world.publish(written.clone());
    let store = world.store();
    let World {
        directory: _directory,
        publisher,
        ..
    } = world;
    // The writer ends with the resolver, and has written all by then.
    drop(publisher);
    keep.await.unwrap();

    let view = store.read(&set());
    let read = view.current().expect("the file is there");
    assert_eq!((read.version, &read.endpoints), (7, &written.endpoints));
    assert!(
        !read.is_live() && read.age() < Duration::from_secs(60),
        "{:?}",
        read.age()
    );
}

#[test]
fn d3_writing_leaves_no_other_file() {
    let world = World::new();
    for version in 1..4 {
        world
            .store()
            .replace(&set(), &answer(version, &["web-1"]))
            .unwrap();
    }
    assert_eq!(world.files(), ["shop.web.json"]);
    fs::remove_file(world.directory.path().join("shop.web.json")).unwrap();
    fs::create_dir(world.directory.path().join("shop.web.json")).unwrap();
    world.store().replace(&set(), &answer(4, &[])).unwrap_err();
    assert_eq!(world.files(), ["shop.web.json"], "nor does a failure");
}

#[test]
fn d3_the_age_goes_on_from_the_file() {
    let world = World::new();
    let days = 3 * 24 * 60 * 60;
    let old = Resolved {
        confirmation: past(days),
        ..answer(7, &[])
    };
    world.store().replace(&set(), &old).unwrap();
    let view = world.store().read(&set());
    let age = view.current().unwrap().age().as_secs();
    assert!((days..days + 60).contains(&age), "{age}");
}

#[rstest]
#[case::damaged(b"sha256:0000\n{}".as_slice())]
#[case::empty(b"")]
#[case::foreign(b"hello")]
fn d3_a_damaged_file_is_ignored_and_replaced(#[case] content: &[u8]) {
    let world = World::new();
    let store = world.store();
    fs::write(store.path(&set()), content).unwrap();
    assert_eq!(store.read(&set()), View::Unknown(None));
    store.replace(&set(), &answer(7, &["web-1"])).unwrap();
    assert!(store.read(&set()).current().is_some());
}

#[tokio::test(start_paused = true)]
async fn d3_files_are_written_when_they_say_something_else() {
    let answer_7 = answer(7, &["web-1"]);
    let written = |last: &Resolved| Writer {
        last: Some((Arc::new(last.clone()), Instant::now())),
        has_failed: false,
    };
    let from_disk = Arc::new(Resolved {
        is_from_service: false,
        confirmation: past(5),
        ..answer_7.clone()
    });
    let live = Arc::new(answer_7.clone());
    let ended = Arc::new(Resolved {
        confirmation: past(0),
        ..answer_7.clone()
    });
    let now = Instant::now();
    assert!(
        !Writer::default().needs(&from_disk, now),
        "it is from there"
    );
    assert!(Writer::default().needs(&live, now));
    assert!(!written(&live).needs(&live, now + REFRESH / 2));
    assert!(
        written(&live).needs(&live, now + REFRESH),
        "its time is old"
    );
    assert!(written(&live).needs(&ended, now), "its time is known now");
    assert!(!written(&ended).needs(&ended, now + 2 * REFRESH));
    assert!(written(&live).needs(&Arc::new(answer(8, &["web-1"])), now));
}

#[tokio::test(start_paused = true)]
async fn d3_a_set_is_written_once_a_second_at_most() {
    let world = World::new();
    let store = world.store();
    let path = store.path(&set());
    let keep = tokio::spawn(Arc::clone(&store).keep(world.endpoints.fresh()));
    let begun = Instant::now();
    let mut writes = 0;
    for version in 1..=50 {
        world.publish(answer(version, &["web-1"]));
        tokio::time::sleep(Duration::from_millis(100)).await;
        writes += u32::from(fs::remove_file(&path).is_ok());
    }
    let seconds = begun.elapsed().as_secs_f64();
    assert!(
        f64::from(writes) <= seconds + 1.0,
        "{writes} in {seconds} s"
    );
    assert!(writes >= 2, "{writes} in {seconds} s");
    keep.abort();
}
