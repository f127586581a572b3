//! The state machine against a scripted transport, on paused time.

#[path = "list_watch_tests/script.rs"]
mod script;

use self::script::*;
use super::*;

/// Longer than a watch that ended early, and not as long as a silent one.
const A_MINUTE: Then = Then::EndAfter(Duration::from_mins(1));

#[tokio::test(start_paused = true)]
async fn pages_then_events_then_a_watch_from_the_last_version() {
    let log = run([
        page(5, "c", &[thing("a", 1), thing("b", 2)]),
        page(5, "", &[thing("c", 3)]),
        Response::Watch(
            vec![
                event("ADDED", &thing("d", 6)),
                event("DELETED", &thing("a", 7)),
                event("NEW", "{}"),
            ],
            A_MINUTE,
        ),
        Response::Watch(vec![bookmark(9)], A_MINUTE),
        Response::Watch(vec![], Then::Hang),
    ])
    .await;
    let expected = [
        "begin",
        "list first page",
        "+a 1",
        "+b 2",
        "list c",
        "+c 3",
        "init done 5",
        "watch 5",
        "+d 6",
        "-a 7",
        "compare",
        "watch 7",
        "compare",
        "watch 9",
    ];
    assert_eq!(log.entries()[..14], expected);
}

#[tokio::test(start_paused = true)]
async fn an_unusable_version_in_the_stream_at_the_start_and_in_a_list_causes_a_new_list() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(vec![event("ERROR", GONE)], Then::Hang),
        page(6, "", &[]),
        Response::Error(410, "too old"),
        page(7, "c", &[]),
        Response::Error(410, "the token expired"),
        page(8, "", &[]),
        Response::VersionTooLarge,
        page(3, "", &[]),
        Response::Watch(vec![bookmark(2)], Then::Hang),
        page(2, "", &[]),
    ])
    .await;
    assert_eq!(log.times("list first").len(), 6);
    assert_eq!(log.times("begin").len(), 6);
    assert_eq!(
        log.times("init done").len(),
        5,
        "the list that failed was not completed"
    );
    assert!(log.times("begin").last() < Some(&Duration::from_mins(1)));
}

#[tokio::test(start_paused = true)]
async fn after_other_errors_the_watch_resumes_from_its_version() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Break),
        Response::Error(503, "etcd leader changed"),
        Response::Watch(vec![], A_MINUTE),
    ])
    .await;
    let expected = ["begin", "list first page", "init done 5", "watch 5", "+a 6"];
    assert_eq!(log.entries()[..5], expected);
    assert!(
        log.entries()[5].starts_with("error: failed to watch /api/v1/things: 0 Reason: reset"),
        "{:?}",
        log.entries()
    );
    let unavailable = "error: failed to watch /api/v1/things: 503 Reason: etcd leader changed";
    let expected = ["compare", "watch 6", unavailable, "compare", "watch 6"];
    assert_eq!(log.entries()[6..11], expected);
    assert_eq!(log.times("begin").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f39_a_server_that_was_restored_is_listed_again() {
    let at_once = Then::EndAfter(Duration::from_secs(1));
    for end in [Then::Break, at_once, A_MINUTE] {
        let log = run([
            page(7, "", &[thing("a", 6)]),
            Response::Watch(vec![], end),
            Response::Comparison(Response::Error(503, "the server starts").into()),
            Response::Comparison(page(5, "", &[]).into()),
            page(5, "", &[thing("b", 4)]),
            Response::Watch(vec![], Then::Hang),
        ])
        .await;
        let entries = log.entries();
        let compared = entries.iter().position(|entry| entry == "compare");
        let expected = [
            "compare",
            "error: failed to list /api/v1/things: 503 Reason: the server starts",
            "compare",
            "error: failed to list /api/v1/things: the resourceVersion went back from 7 to 5",
            "begin",
            "list first page",
            "+b 4",
            "init done 5",
            "watch 5",
        ];
        assert_eq!(entries[compared.unwrap()..][..9], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn f39_a_restored_server_that_looks_as_before_is_listed_some_time_after_the_break() {
    let settings = ReflectorSettings {
        relist_within: Duration::from_secs(100),
        ..ReflectorSettings::default()
    };
    let same = || Response::Comparison(page(7, "", &[]).into());
    let until = |seconds| Response::Watch(vec![], Then::EndAfter(Duration::from_secs(seconds)));
    let broken = Response::Watch(vec![], Then::Break);
    let log = run_with(
        settings,
        [
            page(7, "", &[thing("a", 4)]),
            broken,
            same(),
            // Another early end does not delay the list.
            until(60),
            same(),
            until(50),
            page(7, "", &[thing("b", 4)]),
            Response::Watch(vec![], Then::Hang),
        ],
    )
    .await;
    let begins = log.times("begin");
    assert_eq!(begins[1].abs_diff(begins[0]).as_secs(), 60 + 50);
    assert_eq!(log.times("+b 4").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_break_all_is_listed_if_the_server_may_have_been_restored() {
    let settings = ReflectorSettings {
        relist_after_break: true,
        ..ReflectorSettings::default()
    };
    let responses = [
        page(5, "", &[]),
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Break),
        page(4, "", &[]),
        Response::Watch(vec![], Then::Hang),
        page(3, "", &[]),
        Response::Watch(vec![], A_MINUTE),
    ];
    let log = run_with(settings, responses).await;
    let entries = log.entries();
    let is_request = |entry: &&String| entry.starts_with("list") || entry.starts_with("watch");
    let requests: Vec<_> = entries.iter().filter(is_request).take(5).collect();
    let expected = [
        "list first page",
        "watch 5",
        "list first page",
        "watch 4",
        "list first page",
    ];
    assert_eq!(requests, expected);
}

#[tokio::test(start_paused = true)]
async fn pauses_after_errors_grow_and_stay_bounded() {
    let refused = || Response::Error(503, "starting");
    let log = run(std::iter::repeat_with(refused).take(50)).await;
    let pauses: Vec<_> = log
        .times("list")
        .windows(2)
        .map(|pair| pair[1].abs_diff(pair[0]))
        .collect();
    assert!(pauses[0] <= Duration::from_millis(501), "{pauses:?}");
    assert!(
        pauses
            .iter()
            .all(|pause| *pause <= Duration::from_millis(30_001)),
        "{pauses:?}"
    );
    assert!(
        pauses
            .last()
            .is_some_and(|pause| *pause >= Duration::from_secs(15)),
        "{pauses:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn short_watches_are_reported_and_delay_the_next() {
    let short = || Response::Watch(vec![], Then::EndAfter(Duration::from_millis(1)));
    let log =
        run(std::iter::once(page(5, "", &[])).chain(std::iter::repeat_with(short).take(1000)))
            .await;
    let watches = log.times("short watch").len();
    assert!(
        (100..400).contains(&watches),
        "{watches} watches in ten minutes"
    );
    assert!(log.times("error").is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_a_deadline() {
    let log = run([
        Response::Hang,
        page(5, "", &[]),
        Response::Hang,
        Response::Watch(vec![bookmark(6)], Then::Hang),
        Response::Watch(vec![], A_MINUTE),
    ])
    .await;
    let failures: Vec<_> = log
        .entries()
        .into_iter()
        .filter(|entry| entry.starts_with("error"))
        .take(3)
        .collect();
    assert_eq!(
        failures[0],
        "error: failed to list /api/v1/things: no response within 30s"
    );
    assert_eq!(
        failures[1],
        "error: failed to watch /api/v1/things: no response within 10s"
    );
    assert_eq!(
        failures[2],
        "error: failed to watch /api/v1/things: no response within 15s"
    );
    assert_eq!(
        log.times("watch 5").len(),
        2,
        "the watch resumes from its version"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_reopened_and_all_is_listed_unless_something_follows_all_that_the_server_had()
 {
    let ends = |lines| Response::Watch(lines, Then::EndAfter(Duration::from_secs(5)));
    let log = run([
        page(5, "", &[]),
        // Of a quiet collection, by a server that sends no bookmarks: the end of the short watch is the answer.
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Hang),
        ends(vec![]),
        // An event that others may follow.
        Response::Watch(vec![bookmark(7)], Then::Hang),
        Response::Watch(vec![event("ADDED", &thing("b", 8))], Then::Break),
        page(9, "", &[]),
        // Nothing but the headers.
        Response::Watch(vec![], Then::Hang),
        Response::Watch(vec![], Then::Hang),
        page(10, "", &[]),
        Response::Watch(vec![], Then::Hang),
        Response::Watch(vec![bookmark(11)], Then::EndAfter(Duration::from_secs(5))),
        Response::Hang,
    ])
    .await;
    let entries: Vec<_> = log
        .entries()
        .into_iter()
        .filter(|entry| !entry.starts_with("error"))
        .collect();
    let expected = [
        "watch 5",
        "+a 6",
        "silence",
        "confirm 6",
        "caught up",
        "watch 6",
        "silence",
        "confirm 7",
        "+b 8",
        "begin",
        "list first page",
        "init done 9",
        "watch 9",
        "silence",
        "confirm 9",
        "begin",
        "list first page",
        "init done 10",
        "watch 10",
        "silence",
        "confirm 10",
        "caught up",
        "watch 11",
    ];
    assert_eq!(entries[3..3 + expected.len()], expected);
    let silences = log.times("silence");
    assert_eq!(silences[0].as_secs(), 90);
    assert_eq!(silences[1].as_secs(), 90 + 5 + 90);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_asked_whether_it_works_is_reopened_once() {
    let short = || Response::Watch(vec![], Then::EndAfter(Duration::from_secs(5)));
    let responses = [
        page(5, "", &[]),
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Hang),
        short(),
        Response::Watch(vec![], A_MINUTE),
        Response::Hang,
    ];
    let ask = async |confirm: &Notify| {
        // The second time it is being found out.
        for pause in [20, 2] {
            sleep(Duration::from_secs(pause)).await;
            confirm.notify_waiters();
        }
    };
    let log = run_asked(ReflectorSettings::default(), responses, &Notify::new(), ask).await;
    let watches = log.entries().into_iter();
    let watches: Vec<_> = watches.filter(|entry| entry.contains(" 6")).collect();
    assert_eq!(watches[..3], ["+a 6", "confirm 6", "watch 6"]);
    assert_eq!(log.times("confirm 6"), [Duration::from_secs(20)]);
    assert_eq!(log.times("watch 6")[0], Duration::from_secs(25));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_after_a_silence_causes_a_new_list() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(vec![], Then::Hang),
        Response::Error(410, "too old"),
        page(9, "", &[]),
    ])
    .await;
    assert_eq!(log.times("init done").len(), 2);
    assert!(log.entries().contains(&"confirm 5".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_reported_and_skipped() {
    let log = run([
        page(
            5,
            "",
            &[r#"{"metadata":{"name":"a"}}"#.into(), thing("b", 2)],
        ),
        Response::Watch(
            vec![
                event("ADDED", r#"{"metadata":{"name":"c","resourceVersion":7}}"#),
                "no json\n".into(),
                event("ADDED", &thing(&"d".repeat(300), 8)),
                event("ADDED", &thing("e", 9)),
            ],
            A_MINUTE,
        ),
        Response::Watch(vec![], Then::Hang),
    ])
    .await;
    let expected = [
        "invalid a",
        "+b 2",
        "init done 5",
        "watch 5",
        "invalid c",
        "invalid ?",
        "invalid ?",
        "+e 9",
        "compare",
        "watch 9",
    ];
    assert_eq!(log.entries()[2..12], expected);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_a_list_is_an_error() {
    let log = run([Response::Page("<html>".into()), page(5, "", &[])]).await;
    assert!(
        log.entries()[2]
            .starts_with("error: failed to list /api/v1/things: the response is not a list"),
        "{:?}",
        log.entries()
    );
    assert_eq!(log.times("init done 5").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_events_do_not_move_the_version_back() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(
            vec![
                event("ADDED", &thing("a", 9)),
                event("ADDED", &thing("a", 6)),
            ],
            A_MINUTE,
        ),
        Response::Watch(vec![], Then::Hang),
    ])
    .await;
    assert_eq!(log.times("watch 9").len(), log.times("watch").len() - 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_log() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let log = run([
            Response::Error(503, ""),
            page(5, "", &[]),
            Response::Watch(vec![], Then::Break),
        ])
        .await;
        logs.push(log.0.lock().clone());
    }
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn types_of_k8s_openapi_can_be_reflected() {
    fn is_reflected<T: DeserializeOwned + Versioned + Send>() {}
    is_reflected::<k8s_openapi::api::core::v1::Pod>();
}
