//! Which of a list, an event and a write's answer is believed, and which notice comes of it.

use proptest::prelude::*;

use super::*;

fn key() -> SetKey {
    SetKey::new("default", "web")
}

fn fact(uid: &str, version: u64) -> SetFact {
    SetFact {
        key: key(),
        uid: uid.into(),
        resource_version: version.to_string(),
        generation: 1,
        observed_generation: 1,
        replicas: 10,
        current: 10,
        ready: 5,
        available: 5,
        fully_labeled: 10,
        replica_failure: None,
        spec_hash: 1,
        floor: 10,
        federation: "fed".into(),
        member: "a".into(),
        deleting: false,
        controlled: false,
    }
}

fn with(version: u64, change: impl FnOnce(&mut SetFact)) -> SetFact {
    let mut fact = fact("a", version);
    change(&mut fact);
    fact
}

fn table(facts: impl IntoIterator<Item = SetFact>) -> SetTable {
    let mut table = SetTable::default();
    table.restarted();
    for fact in facts {
        table.applied(fact);
    }
    table.listed(ResourceVersion::parse("10"));
    table
}

#[test]
fn f22_each_change_has_its_notice() {
    let cases: [(&str, SetFact, Option<Change>); 10] = [
        ("nothing but the version", fact("a", 11), None),
        ("the same again", fact("a", 10), None),
        (
            "ready",
            with(11, |set| set.ready = 6),
            Some(Change::SetChanged),
        ),
        (
            "available",
            with(11, |set| set.available = 6),
            Some(Change::BecameReady),
        ),
        (
            "fewer available",
            with(11, |set| set.available = 4),
            Some(Change::SetChanged),
        ),
        (
            "replicas",
            with(11, |set| set.replicas = 9),
            Some(Change::SetDrifted),
        ),
        (
            "template",
            with(11, |set| set.spec_hash = 2),
            Some(Change::SetDrifted),
        ),
        (
            "being deleted",
            with(11, |set| set.deleting = true),
            Some(Change::SetChanged),
        ),
        (
            "another's",
            with(11, |set| set.controlled = true),
            Some(Change::SetDrifted),
        ),
        ("made anew by hand", fact("b", 11), Some(Change::SetDrifted)),
    ];
    for (name, event, expected) in cases {
        assert_eq!(table([fact("a", 10)]).applied(event), expected, "{name}");
    }
}

#[test]
fn our_own_writes_are_no_drift() {
    let mut table = table([fact("a", 10)]);
    let written = with(12, |set| {
        (set.replicas, set.spec_hash, set.floor) = (20, 7, 20);
    });
    table.observe(written.clone());
    assert_eq!(table.get(&key()), Some(&written));
    assert_eq!(
        table.applied(with(11, |set| set.available = 6)),
        None,
        "older than our write"
    );
    assert_eq!(table.get(&key()), Some(&written));
    assert_eq!(table.applied(written.clone()), None);
    assert_eq!(
        table.applied(with(13, |set| set.replicas = 19)),
        Some(Change::SetDrifted)
    );
}

#[test]
fn f20_ready_replicas_in_a_writes_answer_are_announced_by_its_event() {
    let mut table = table([fact("a", 10)]);
    let answer = with(12, |set| (set.replicas, set.available) = (20, 6));
    table.observe(answer.clone());
    assert_eq!(table.applied(with(11, |set| set.available = 6)), None);
    assert_eq!(table.applied(answer), Some(Change::BecameReady));
}

#[test]
fn f31_a_deleted_set_is_noticed_and_does_not_come_back() {
    let mut table = table([fact("a", 10)]);
    assert_eq!(
        table.deleted(&key(), Uid::of("a"), ResourceVersion::parse("12")),
        Some(Change::SetDrifted)
    );
    table.observe(with(11, |set| set.replicas = 3));
    assert_eq!(table.applied(fact("a", 11)), None);
    assert_eq!(table.get(&key()), None);
    assert_eq!(
        table.applied(fact("a", 13)),
        Some(Change::SetChanged),
        "it got our labels again"
    );
    assert_eq!(
        table.deleted(&key(), Uid::of("a"), ResourceVersion::parse("12")),
        None,
        "an old event"
    );
}

#[test]
fn our_deletion_is_final_but_can_be_seen_going() {
    let mut table = table([fact("a", 10)]);
    table.observe_deleted(&key(), "a".into_uid());
    assert_eq!(table.get(&key()), None);
    assert_eq!(
        table.applied(fact("a", 12)),
        None,
        "a status written before the deletion"
    );
    table.observe(fact("a", 12));
    assert_eq!(table.get(&key()), None);
    assert_eq!(
        table.applied(with(13, |set| set.deleting = true)),
        Some(Change::SetChanged)
    );
    assert_eq!(
        table.deleted(&key(), "a".into_uid(), ResourceVersion::parse("14")),
        Some(Change::SetDrifted)
    );
    assert_eq!(
        table.applied(fact("b", 15)),
        Some(Change::SetChanged),
        "another object with the name"
    );
}

#[test]
fn what_we_released_may_become_ours_again() {
    let mut table = table([fact("a", 10)]);
    // As the answer to our write tells it.
    table.deleted(&key(), "a".into_uid(), ResourceVersion::parse("12"));
    assert_eq!(table.get(&key()), None);
    assert_eq!(table.applied(fact("a", 11)), None, "of before");
    assert_eq!(
        table.deleted(&key(), "a".into_uid(), ResourceVersion::parse("12")),
        None
    );
    table.observe(fact("a", 14));
    assert!(table.get(&key()).is_some(), "taken over again");
    table.applied(fact("a", 14));
    assert!(table.get(&key()).is_some());
}

#[test]
fn a_deletion_of_another_uid_takes_nothing() {
    let mut table = table([fact("b", 10)]);
    table.observe_deleted(&key(), "a".into_uid());
    assert_eq!(
        table.deleted(&key(), "a".into_uid(), ResourceVersion::parse("99")),
        None
    );
    assert_eq!(table.get(&key()).map(|set| &*set.uid), Some("b"));
}

trait IntoUid {
    fn into_uid(self) -> Uid;
}

impl IntoUid for &str {
    fn into_uid(self) -> Uid {
        Uid::of(self)
    }
}

#[test]
fn a_relist_sweeps_what_is_gone_but_not_what_was_written_after_it() {
    let mut table = table([fact("a", 10)]);
    table.restarted();
    let written_later = SetFact {
        key: SetKey::new("default", "new"),
        ..fact("n", 25)
    };
    let gone_before = SetFact {
        key: SetKey::new("default", "old"),
        ..fact("o", 19)
    };
    table.observe(written_later.clone());
    table.observe(gone_before);
    let lost: Vec<_> = table
        .listed(ResourceVersion::parse("20"))
        .into_iter()
        .map(|(key, _)| key.to_string())
        .collect();
    assert_eq!(lost, ["default/old", "default/web"]);
    assert!(table.iter().eq([(&written_later.key, &written_later)]));
    assert_eq!(table.len(), 1);
}

#[test]
fn a_list_is_believed_over_what_was_known_before() {
    let mut table = table([fact("a", 100)]);
    table.observe_deleted(&SetKey::new("default", "x"), "x".into_uid());
    table.restarted();
    // The member was restored from an older snapshot: its versions went back.
    assert_eq!(
        table.applied(with(50, |set| set.replicas = 3)),
        Some(Change::SetDrifted)
    );
    let back = SetFact {
        key: SetKey::new("default", "x"),
        ..fact("x", 49)
    };
    assert_eq!(table.applied(back), Some(Change::SetChanged));
    assert_eq!(table.listed(ResourceVersion::parse("51")), []);
}

#[test]
fn a_set_that_cannot_be_read_survives_the_sweep() {
    let mut table = table([fact("a", 10)]);
    table.restarted();
    table.kept("a".into_uid());
    assert_eq!(table.listed(ResourceVersion::parse("20")), []);
    assert_eq!(table.get(&key()), Some(&fact("a", 10)));
}

#[test]
fn f20_the_floor_is_the_lowest_until_the_member_caught_up() {
    let write = |version, generation, replicas| {
        with(version, |set| {
            (set.generation, set.replicas, set.floor) = (generation, replicas, replicas);
        })
    };
    let floor = |table: &SetTable| table.get(&key()).unwrap().floor;
    let mut table = table([fact("a", 10)]);
    table.observe(write(12, 2, 4));
    assert_eq!(floor(&table), 4);
    table.observe(write(14, 4, 8));
    assert_eq!(floor(&table), 4, "the member may still act on the 4");
    table.applied(write(13, 3, 2));
    assert_eq!(
        floor(&table),
        2,
        "somebody's write in between comes to light late"
    );
    table.applied(with(15, |set| {
        (set.generation, set.observed_generation, set.replicas) = (4, 3, 8);
    }));
    assert_eq!(floor(&table), 2);
    table.applied(with(16, |set| {
        (set.generation, set.observed_generation, set.replicas) = (4, 4, 8);
    }));
    assert_eq!(floor(&table), 8);
    table.observe(SetFact {
        uid: "b".into(),
        replicas: 3,
        floor: 3,
        generation: 2,
        ..fact("b", 20)
    });
    assert_eq!(floor(&table), 3, "another object");
}

/// A member's one set as it was after each write, by anyone; versions count up from 1.
#[derive(Clone, Debug)]
enum Write {
    /// Somebody's change, seen by the watch alone.
    Theirs(u32),
    /// Ours: its answer is observed after so many events.
    Ours(u32, usize),
    /// Deleted by somebody and made anew.
    Anew(u32),
    /// Events from there on are shown again by a new list.
    Relist,
    /// An event that was shown is shown again.
    Repeat(usize),
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (0..5u32).prop_map(Write::Theirs),
        3 => ((0..5u32), 0..4usize).prop_map(|(replicas, late)| Write::Ours(replicas, late)),
        1 => (0..5u32).prop_map(Write::Anew),
        1 => Just(Write::Relist),
        2 => (0..6usize).prop_map(Write::Repeat),
    ]
}

proptest! {
    /// However late answers come, and whichever events come again: once all is delivered, the newest state stands.
    #[test]
    fn f39_the_newest_state_stands_after_late_answers_and_repeated_events(writes in prop::collection::vec(write(), 1..60)) {
        let mut table = SetTable::default();
        let mut version = 1;
        let mut current = fact("uid-1", version);
        let mut shown = vec![current.clone()];
        let mut answers: Vec<(usize, SetFact)> = Vec::new();
        table.restarted();
        table.applied(current.clone());
        table.listed(ResourceVersion::parse("1"));
        for write in writes {
            match write {
                Write::Theirs(replicas) | Write::Ours(replicas, _) => {
                    version += 1;
                    current = SetFact { replicas, floor: replicas, resource_version: version.to_string(), ..current };
                    if let Write::Ours(_, late) = write {
                        answers.push((late, current.clone()));
                    }
                    table.applied(current.clone());
                    shown.push(current.clone());
                }
                Write::Anew(replicas) => {
                    version += 1;
                    table.deleted(&key(), current.id(), ResourceVersion::parse(&version.to_string()));
                    version += 1;
                    current = SetFact { replicas, floor: replicas, ..fact(&format!("uid-{version}"), version) };
                    table.applied(current.clone());
                    shown.push(current.clone());
                }
                Write::Relist => {
                    table.restarted();
                    table.applied(current.clone());
                    table.listed(ResourceVersion::parse(&version.to_string()));
                }
                Write::Repeat(back) => {
                    if let Some(old) = shown.iter().rev().nth(back) {
                        table.applied(old.clone());
                    }
                }
            }
            for (late, answer) in &mut answers {
                if *late == 0 {
                    table.observe(answer.clone());
                }
                *late = late.wrapping_sub(1);
            }
            answers.retain(|(late, _)| *late != usize::MAX);
            prop_assert_eq!(table.get(&key()), Some(&current));
        }
    }
}
