//! Watches: events and their order.

use crate::reference::script::{
    KnownDifferenceRow, METADATA, RequestScript,
    Step::{Compact, Events, Watch},
    TABLE, delete, get, merge, post, script, steps, with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, labelled, lease};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "watches::of_a_namespace",
        "columns",
        "*",
        "body/0/object/columnDefinitions/*/description",
    ),
    (
        "watches::initial_events",
        "columns",
        "*",
        "body/0/object/columnDefinitions/*/description",
    ),
    (
        "watches::initial_events",
        "initial-events",
        "events of table",
        "body/2",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    let leases = "coordination.k8s.io/v1:leases";
    vec![
        script("watches::of_a_namespace", steps![
            get(leases).keep("rv", "/metadata/resourceVersion"),
            Watch("all", get(&format!("{leases}?watch=true&resourceVersion=${{rv}}"))),
            Watch("one", get(&format!("{leases}?watch=1&resourceVersion=${{rv}}&fieldSelector=metadata.name%3Db"))),
            Watch("tables", get(&format!("{leases}?watch=true&resourceVersion=${{rv}}")).accept(TABLE)),
            Watch("metadata", get(&format!("{leases}?watch=true&resourceVersion=${{rv}}")).accept(METADATA)),
            Watch("rows", get(&format!("{leases}?watch=true&resourceVersion=${{rv}}&includeObject=None")).accept(TABLE)),
            post(leases, lease("a", "x")),
            post(leases, lease("b", "x")),
            merge(&format!("{leases}/a"), json!({ "spec": { "holderIdentity": "y" } })),
            merge(&format!("{leases}/a"), json!({ "spec": { "holderIdentity": "y" } })).called("no change"),
            delete(&format!("{leases}/b")),
            Events("all", 4),
            Events("one", 2),
            Events("tables", 4),
            Events("metadata", 4),
            Events("rows", 4),
            Events("all", 0),
            Watch("late", get(&format!("{leases}?watch=true&resourceVersion=${{rv}}"))),
            Events("late", 4),
        ]),
        script("watches::selectors", steps![
            get("configmaps").only("/metadata/resourceVersion").keep("rv", "/metadata/resourceVersion"),
            Watch("w", get("configmaps?watch=true&resourceVersion=${rv}&labelSelector=on%3Dyes")),
            post("configmaps", labelled("a", "on", "no")),
            merge("configmaps/a", json!({ "metadata": { "labels": { "on": "yes" } } })),
            merge("configmaps/a", json!({ "data": { "b": "2" } })),
            merge("configmaps/a", json!({ "metadata": { "labels": { "on": "no" } } })),
            merge("configmaps/a", json!({ "metadata": { "labels": { "on": "yes" } } })),
            delete("configmaps/a"),
            post("configmaps", labelled("b", "on", "yes")),
            Events("w", 6),
            Events("w", 0),
        ]),
        script("watches::initial_events", steps![
            post("configmaps", labelled("a", "on", "yes")),
            post("configmaps", labelled("b", "on", "yes")),
            Watch("list", get("configmaps?watch=true&labelSelector=on&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")),
            Events("list", 3),
            Watch("without", get("configmaps?watch=true&labelSelector=on")),
            Events("without", 2),
            Watch("any", get("configmaps?watch=true&labelSelector=on&resourceVersion=0")),
            Events("any", 2),
            Watch("table", get("configmaps?watch=true&labelSelector=on&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").accept(TABLE)),
            Events("table", 3),
            Watch("no match", get("configmaps?watch=true&sendInitialEvents=true&allowWatchBookmarks=true").called("no match")),
            Watch("no bookmarks", get("configmaps?watch=true&labelSelector=on&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").called("no bookmarks")),
            Events("no bookmarks", 2),
            Watch("not", get("configmaps?watch=true&sendInitialEvents=false&allowWatchBookmarks=true").called("not")),
            Watch("exact", get("configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1").called("exact")),
            Watch("match", get("configmaps?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1").called("match")),
            merge("configmaps/a", json!({ "data": { "x": "y" } })),
            Events("list", 1),
        ]),
        script("watches::expired_and_refused", steps![
            Watch("bad", get("configmaps?watch=true&resourceVersion=x").called("no version")),
            Watch("future", get("configmaps?watch=true&resourceVersion=999999999&timeoutSeconds=2").called("the future")),
            Watch("label", get("configmaps?watch=true&labelSelector=a%3Db%3Dc").called("a bad selector")),
            Watch("field", get("configmaps?watch=true&fieldSelector=a%3Db").called("a bad field")),
            Watch("timeout", get("configmaps?watch=true&labelSelector=none%3Dx&timeoutSeconds=1").called("timeout")),
            Events("timeout", 1),
            Watch("bad timeout", get("configmaps?watch=true&timeoutSeconds=x").called("bad timeout")),
            Watch("continue", get("configmaps?watch=true&continue=abc").called("continue")),
        ]),
        script("watches::after_a_compaction", steps![
            post("configmaps", labelled("a", "on", "yes")).keep("rv", "/metadata/resourceVersion"),
            post("configmaps", labelled("b", "on", "yes")),
            get("configmaps?labelSelector=on&limit=1").keep("next", "/metadata/continue").called("a page"),
            merge("configmaps/a", json!({ "data": { "b": "2" } })),
            merge("configmaps/a", json!({ "data": { "b": "3" } })),
            Compact,
            Watch("w", get("configmaps?watch=true&resourceVersion=${rv}")),
            Events("w", 1),
            get("configmaps?resourceVersion=${rv}&resourceVersionMatch=Exact").called("an exact version"),
            get("configmaps?labelSelector=on&limit=1&continue=${next}").called("the next page"),
            get("configmaps?labelSelector=on&resourceVersion=1&resourceVersionMatch=Exact").called("long ago"),
            get("configmaps/a?resourceVersion=${rv}").called("at least"),
            // An earlier version may be too old as well, if there were other writes since.
            merge("configmaps/a", json!({ "data": { "b": "4" } })).keep("now", "/metadata/resourceVersion"),
            Watch("next", get("configmaps?watch=true&labelSelector=on&resourceVersion=${now}").called("from now")),
            merge("configmaps/a", json!({ "data": { "b": "5" } })),
            Events("next", 1),
        ]).alone(),
        script("watches::by_name", steps![
            post("configmaps", config_map("a")).keep("rv", "/metadata/resourceVersion"),
            Watch("old", get("/api/v1/watch/namespaces/${ns}/configmaps/a?resourceVersion=${rv}").called("the old path")),
            Watch("w", get("configmaps/a?watch=true&resourceVersion=${rv}")),
            merge("configmaps/a", json!({ "data": { "b": "2" } })),
            delete("configmaps/a"),
            Events("w", 2),
        ]),
        script("watches::deletion", steps![
            post("configmaps", json!({ "metadata": { "name": "a", "finalizers": ["a.example/b"] } })).keep("rv", "/metadata/resourceVersion"),
            Watch("w", get("configmaps?watch=true&resourceVersion=${rv}&fieldSelector=metadata.name%3Da")),
            delete("configmaps/a"),
            merge("configmaps/a", json!({ "metadata": { "finalizers": null } })),
            Events("w", 2),
        ]),
    ]
}
