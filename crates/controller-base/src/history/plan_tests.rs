//! The writes for some existing revisions.

use std::collections::BTreeSet;

use fedrs_api::labels;
use serde_json::{Value, json};

use super::{
    owner::Owner,
    plan::{Update, Wanted, Write, plan},
    stored::Revision,
};

const UID: &str = "u";

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid, "controller": true })
}

/// `2 web-b`, number and name, with ` of KIND/NAME` for another controller than the set, ` without owner`, ` without label`, and
/// ` because CAUSE` at the end.
fn revision(text: &str) -> Revision {
    let (text, cause) = text.split_once(" because ").unwrap_or((text, ""));
    let mut words = text.split(' ');
    let (number, name) = (words.next().unwrap(), words.next().unwrap());
    let rest: Vec<_> = words.collect();
    let owners = match rest[..] {
        ["of", other] => {
            let (kind, name) = other.split_once('/').unwrap();
            json!([owner(kind, name, "another")])
        }
        ["without", "owner"] => json!(null),
        _ => json!([owner("FederatedDeployment", "web", UID)]),
    };
    let labels = match rest[..] {
        ["without", "label"] => json!({ "app": "web" }),
        _ => json!({ "fedrs.dev/federated-deployment": "web" }),
    };
    let annotations = match cause {
        "" => json!(null),
        cause => json!({ "kubernetes.io/change-cause": cause }),
    };
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "uid": name, "resourceVersion": "1", "ownerReferences": owners, "labels": labels,
            "annotations": annotations,
        },
        "revision": number.parse::<i64>().unwrap(),
    }))
    .unwrap()
}

/// A write in words.
fn text(write: &Write<'_>) -> String {
    match write {
        Write::Create { number } => format!("create {number}"),
        Write::Delete(revision) => format!("delete {}", revision.name()),
        Write::Update { of, update } => {
            let Update {
                number,
                change_cause,
                is_adoption,
            } = update;
            let number = number.map(|number| format!(" number {number}"));
            let cause = change_cause.map(|cause| format!(" because {cause}"));
            let adopt = is_adoption.then_some(" adopted");
            let (number, cause) = (number.unwrap_or_default(), cause.unwrap_or_default());
            let adopt = adopt.unwrap_or_default();
            format!("{}{number}{cause}{adopt}", of.name())
        }
    }
}

/// What the plan is made of.
struct Given<'a> {
    existing: &'a [&'a str],
    in_use: &'a [&'a str],
    cause: Option<&'a str>,
    limit: u32,
}

impl Default for Given<'_> {
    fn default() -> Self {
        Self {
            existing: &[],
            in_use: &[],
            cause: None,
            limit: 10,
        }
    }
}

/// The writes with which `web-a` becomes the latest revision, or the error.
fn writes(given: &Given<'_>) -> Vec<String> {
    let existing: Vec<_> = given.existing.iter().map(|text| revision(text)).collect();
    let in_use: BTreeSet<String> = given.in_use.iter().copied().map(str::to_owned).collect();
    let wanted = Wanted {
        owner: Owner {
            kind: "FederatedDeployment",
            namespace: "default",
            name: "web",
            uid: UID,
            label: labels::FEDERATED_DEPLOYMENT,
        },
        data: &json!({}),
        name: "web-a",
        change_cause: given.cause,
        in_use: &in_use,
        limit: given.limit,
    };
    match plan(&existing, &wanted) {
        Ok(writes) => writes.iter().map(text).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// Existing revisions, and the expected writes.
type Case = (&'static [&'static str], &'static [&'static str]);

#[test]
fn l2_the_wanted_revision_is_the_latest() {
    let cases: &[Case] = &[
        (&[], &["create 1"]),
        (&["1 web-b", "7 web-c"], &["create 8"]),
        (&["1 web-b", "7 web-a"], &[]),
        // An earlier template again.
        (&["1 web-b", "7 web-a", "8 web-c"], &["web-a number 9"]),
        (&["7 web-a", "7 web-c"], &["web-a number 8"]),
        (
            &["9223372036854775807 web-b"],
            &["create 9223372036854775807"],
        ),
    ];
    for (existing, expected) in cases {
        let given = Given {
            existing,
            ..Given::default()
        };
        assert_eq!(writes(&given), *expected, "{existing:?}");
    }
}

#[test]
fn l2_revisions_of_others_stay_and_those_of_nobody_are_adopted() {
    let cases: &[Case] = &[
        (&["1 web-a without label"], &["web-a adopted"]),
        (
            &["1 web-a without owner", "3 web-b without owner"],
            &["web-a number 4 adopted", "web-b adopted"],
        ),
        (&["9 web-b of StatefulSet/web", "1 web-c"], &["create 2"]),
        (
            &["1 web-a of StatefulSet/web", "2 web-b"],
            &["ControllerRevision default/web-a belongs to StatefulSet web"],
        ),
    ];
    for (existing, expected) in cases {
        let given = Given {
            existing,
            ..Given::default()
        };
        assert_eq!(writes(&given), *expected, "{existing:?}");
    }
}

#[test]
fn l2_the_change_cause_is_that_of_the_set() {
    let cases: &[(&[&str], Option<&str>, &[&str])] = &[
        (&["1 web-a because x"], None, &[]),
        (&["1 web-a because x"], Some("x"), &[]),
        (&["1 web-a"], Some("x y"), &["web-a because x y"]),
        (
            &["1 web-a because x", "2 web-b"],
            Some("undo"),
            &["web-a number 3 because undo"],
        ),
    ];
    for (existing, cause, expected) in cases {
        let given = Given {
            existing,
            cause: *cause,
            ..Given::default()
        };
        assert_eq!(writes(&given), *expected, "{existing:?} {cause:?}");
    }
}

#[test]
fn l10_the_oldest_unused_revisions_beyond_the_limit_are_deleted() {
    /// Existing revisions, those in use, the limit, and the expected writes.
    type Kept<'a> = (&'a [&'a str], &'a [&'a str], u32, &'a [&'a str]);
    let five: &[&str] = &["3 web-d", "1 web-b", "5 web-a", "2 web-c", "4 web-e"];
    let all: &[&str] = &[
        "delete web-b",
        "delete web-c",
        "delete web-d",
        "delete web-e",
    ];
    let foreign: &[&str] = &["1 web-b of FederatedDeployment/web", "2 web-a"];
    let cases: &[Kept<'_>] = &[
        (five, &[], 4, &[]),
        (five, &[], 3, &["delete web-b"]),
        (five, &[], 0, all),
        (five, &["web-b", "web-d"], 1, &["delete web-c"]),
        (five, &["web-b", "web-d"], 2, &[]),
        (
            &["1 web-b", "2 web-c"],
            &["web-c"],
            0,
            &["create 3", "delete web-b"],
        ),
        (foreign, &[], 0, &[]),
    ];
    for (existing, in_use, limit, expected) in cases {
        let given = Given {
            existing,
            in_use,
            cause: None,
            limit: *limit,
        };
        assert_eq!(writes(&given), *expected, "{existing:?} {in_use:?} {limit}");
    }
}
