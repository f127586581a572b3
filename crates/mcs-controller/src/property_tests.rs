//! Whatever happens in which order: it settles, and no endpoint is removed of which is not known that it is gone.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use crate::{
    export::Export,
    fake_members::FakeMembers,
    import::Import,
    plan::{Kind, Verb},
    slice::Slice,
};

const MEMBERS: [&str; 3] = ["ap", "eu", "us"];

/// Something happens to a member.
#[derive(Clone, Copy, Debug)]
enum Event {
    Export {
        second: u32,
        is_headless: bool,
    },
    Unexport,
    Endpoint {
        slice: u8,
        address: u8,
    },
    RemoveEndpoint {
        slice: u8,
    },
    DeleteImport,
    Unreachable,
    Reachable,
    /// What it has is listed.
    Observe,
    /// The writes of the next step are carried out, all or only the first.
    Step {
        only_first: bool,
    },
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..5_u32, any::<bool>())
            .prop_map(|(second, is_headless)| Event::Export { second, is_headless }),
        1 => Just(Event::Unexport),
        2 => (0..2_u8, 0..4_u8).prop_map(|(slice, address)| Event::Endpoint { slice, address }),
        1 => (0..2_u8).prop_map(|slice| Event::RemoveEndpoint { slice }),
        1 => Just(Event::DeleteImport),
        1 => Just(Event::Unreachable),
        1 => Just(Event::Reachable),
        4 => Just(Event::Observe),
        4 => any::<bool>().prop_map(|only_first| Event::Step { only_first }),
        1 => Just(Event::Restart),
    ]
}

fn apply(members: &mut FakeMembers, member: &str, event: Event) {
    match event {
        Event::Export {
            second,
            is_headless,
        } => {
            let ip = if is_headless { "None" } else { "10.9.9.9" };
            members.export(member, second, json!({ "clusterIP": ip }));
        }
        Event::Unexport => members.remove::<Export>(member, "web"),
        Event::Endpoint { slice, address } => {
            members.endpoint(
                member,
                &format!("web-{slice}"),
                &format!("10.0.0.{address}"),
            );
        }
        Event::RemoveEndpoint { slice } => members.remove::<Slice>(member, &format!("web-{slice}")),
        Event::DeleteImport => members.remove::<Import>(member, "web"),
        Event::Unreachable | Event::Reachable => {
            let is_unreachable = matches!(event, Event::Unreachable);
            members.members.get_mut(member).unwrap().is_unreachable = is_unreachable;
        }
        Event::Observe => members.observe(member),
        Event::Step { only_first } => step(members, only_first),
        Event::Restart => members.restart(),
    }
}

/// Carries out the next writes. None of them removes what is not known to be gone.
fn step(members: &mut FakeMembers, only_first: bool) {
    let known = members.known();
    let limit = if only_first { 1 } else { usize::MAX };
    for (member, write) in members.writes().into_iter().take(limit) {
        let before = members.imported(&member);
        let is_done = members.carry_out(&member, &write);
        if !is_done || write.kind == Kind::Export {
            continue;
        }
        let after = members.imported(&member);
        for (source, addresses) in &before {
            let lost = !addresses.is_subset(after.get(source).unwrap_or(&BTreeSet::new()));
            assert!(
                !lost || known.contains(&**source),
                "{source} is not known: {write:?}"
            );
        }
        if write.kind == Kind::Import && write.verb == Verb::Delete {
            assert_eq!(after, [].into(), "endpoints go first");
        }
    }
}

/// What all members should have imported, when all is known.
fn check(members: &FakeMembers) {
    let exporting = MEMBERS
        .iter()
        .filter(|member| members.get::<Export>(member, "web").is_some());
    let exporting: Vec<_> = exporting.collect();
    for member in MEMBERS {
        let import = members.get::<Import>(member, "web");
        assert_eq!(import.is_some(), !exporting.is_empty(), "{member}");
        let imported = members.imported(member);
        for source in &exporting {
            let slices = members.all::<Slice>(source);
            let own = slices.iter().filter(|slice| {
                slice["metadata"]["labels"]
                    .get("kubernetes.io/service-name")
                    .is_some()
            });
            let addresses: BTreeSet<String> = own
                .map(|slice| {
                    slice["endpoints"][0]["addresses"][0]
                        .as_str()
                        .unwrap()
                        .to_owned()
                })
                .collect();
            assert_eq!(
                imported.get(**source).cloned().unwrap_or_default(),
                addresses,
                "{member} {source}"
            );
        }
        assert!(
            imported
                .keys()
                .all(|source| exporting.contains(&&&**source)),
            "{imported:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn it_settles_and_removes_nothing_that_is_not_known_to_be_gone(
        events in prop::collection::vec((0..MEMBERS.len(), event()), 1..60),
    ) {
        let mut members = FakeMembers::new(&MEMBERS);
        members.restart();
        for (member, event) in events {
            apply(&mut members, MEMBERS[member], event);
        }
        for member in members.members.values_mut() {
            member.is_unreachable = false;
        }
        members.settle();
        check(&members);
        prop_assert!(members.writes().is_empty(), "nothing changes, nothing is written");
    }
}
