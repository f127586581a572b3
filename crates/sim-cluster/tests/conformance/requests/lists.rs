//! Lists: selectors, pages, versions.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, Step, delete, get, other, post, script, steps,
    with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, labelled, pod_nowhere};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] =
    &[("lists::pages", "go-words", "a bad token", "body/message")];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![selectors(), fields(), pages(), versions()]
}

fn selectors() -> RequestScript {
    let mut steps = steps![
        post("configmaps", labelled("a", "t", "1")),
        post("configmaps", labelled("b", "t", "2")),
        post("configmaps", labelled("c", "u", "1")),
    ];
    let selectors = [
        "t",
        "%21t,u",
        "t%3D1",
        "t%3D%3D1",
        "t%21%3D1,t",
        "t+in+(1,2)",
        "t+notin+(1),t",
        "t%3D",
        "u,t",
        "t%3E1",
        "t%3C2",
        "t+in+()",
        "t+in+(1",
        "%3D1",
        "t%3D1%3D2",
        "-t",
        "t%3D-",
        "t,,u",
        "t+is+1",
        "a/b/c%3D1",
    ];
    for selector in selectors {
        let path = format!("configmaps?labelSelector={selector}");
        let list = get(&path);
        // Other objects of the namespace have none of these labels.
        steps.push(if matches!(selector, "t%3D") {
            list.only("/kind").into()
        } else {
            Step::from(list)
        });
    }
    script("lists::label_selectors", steps)
}

fn fields() -> RequestScript {
    let mut steps = steps![
        post("configmaps", config_map("a")),
        post("pods", pod_nowhere("p")),
        get("pods/p").until(20, |object| !object["status"]["conditions"].is_null()),
    ];
    for path in [
        "configmaps?fieldSelector=metadata.name%3Da",
        "configmaps?fieldSelector=metadata.name%3Da,metadata.namespace%3D${ns}",
        "configmaps?fieldSelector=metadata.name%3D%3Da",
        "configmaps?fieldSelector=data.a%3D1",
        "configmaps?fieldSelector=metadata.name",
        "configmaps?fieldSelector=metadata.name+in+(a)",
        "configmaps?fieldSelector=",
        "pods?fieldSelector=spec.nodeName%3D",
        "pods?fieldSelector=spec.nodeName%3Dx",
        "pods?fieldSelector=status.phase%3DPending",
        "pods?fieldSelector=status.phase%21%3DPending",
        "pods?fieldSelector=status.podIP%3D",
        "pods?fieldSelector=spec.restartPolicy%3DAlways,spec.schedulerName%3Ddefault-scheduler",
        "pods?fieldSelector=spec.foo%3D1",
        "apps/v1:replicasets?fieldSelector=status.replicas%3D0",
        "events?fieldSelector=involvedObject.kind%3DNothing",
        "events?fieldSelector=reason%3DNothing",
        "secrets?fieldSelector=type%3DOpaque",
        "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue",
        "/api/v1/namespaces?fieldSelector=metadata.name%3D${ns}",
        "/api/v1/namespaces?fieldSelector=status.phase%3DNothing",
    ] {
        let list = get(path);
        let whole = !path.ends_with("fieldSelector=");
        steps.push(if whole {
            list.into()
        } else {
            list.only("/kind").into()
        });
    }
    script("lists::field_selectors", steps)
}

fn pages() -> RequestScript {
    let mut steps = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        steps.push(post("configmaps", labelled(name, "of", "pages")).into());
    }
    let of = "configmaps?labelSelector=of%3Dpages";
    steps.extend(steps![
        get("secrets?limit=2").called("none"),
        get(&format!("{of}&limit=2"))
            .keep("next", "/metadata/continue")
            .keep("rv", "/metadata/resourceVersion")
            .called("first page"),
        delete("configmaps/d"),
        post("configmaps", labelled("bb", "of", "pages")),
        get(&format!("{of}&limit=2&continue=${{next}}"))
            .keep("last", "/metadata/continue")
            .called("second page"),
        get(&format!("{of}&limit=2&continue=${{last}}")).called("last page"),
        get(&format!("{of}&limit=500")).called("all"),
        get(&format!("{of}&limit=0")).called("no limit"),
        get(&format!("{of}&limit=-1")).called("negative"),
        get(&format!("{of}&limit=x")).called("no number"),
        get(&format!("{of}&limit=2&continue=abc")).called("a bad token"),
        get(&format!(
            "{of}&limit=2&continue=${{next}}&resourceVersion=${{rv}}"
        ))
        .called("token and version"),
        get(&format!(
            "{of}&limit=2&resourceVersion=${{rv}}&resourceVersionMatch=Exact"
        ))
        .called("an exact version"),
        get(&format!("{of}&limit=1&resourceVersion=0")).called("version 0"),
        get("configmaps?limit=1&fieldSelector=metadata.name%3Da").called("one by name"),
    ]);
    script("lists::pages", steps)
}

fn versions() -> RequestScript {
    let of = "configmaps?labelSelector=of%3Dme";
    script(
        "lists::versions",
        steps![
            post("configmaps", labelled("a", "of", "me")).keep("rv", "/metadata/resourceVersion"),
            post("configmaps", labelled("b", "of", "me"))
                .keep("later", "/metadata/resourceVersion"),
            get(of),
            get(&format!("{of}&resourceVersion=${{later}}")).called("at least"),
            get(&format!(
                "{of}&resourceVersion=${{later}}&resourceVersionMatch=NotOlderThan"
            ))
            .called("not older"),
            get(&format!(
                "{of}&resourceVersion=${{rv}}&resourceVersionMatch=Exact"
            ))
            .called("exact"),
            get(&format!(
                "{of}&resourceVersion=0&resourceVersionMatch=Exact"
            ))
            .called("exactly 0"),
            get(&format!("{of}&resourceVersionMatch=Exact")).called("match without a version"),
            get(&format!("{of}&resourceVersion=1&resourceVersionMatch=Foo"))
                .called("no such match"),
            get(&format!("{of}&resourceVersion=x")).called("no version"),
            get(&format!("{of}&resourceVersion=-1")).called("negative"),
            get("configmaps/a?resourceVersion=0"),
            get("configmaps/a?resourceVersion=${later}"),
            get("configmaps/a?resourceVersion=x"),
            get("configmaps/a?resourceVersion=999999999").called("the future"),
            get(&format!("{of}&resourceVersion=999999999")).called("a list of the future"),
            get(&format!(
                "{of}&resourceVersion=999999999&resourceVersionMatch=Exact"
            ))
            .called("exactly the future"),
            get(&format!("{of}&resourceVersion=0&sendInitialEvents=true"))
                .called("initial events without a watch"),
            post("configmaps", json!({ "metadata": { "name": "z" } })),
            other("DELETE", of).called("delete collection"),
            get(of).called("nothing left"),
        ],
    )
}
