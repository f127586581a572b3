//! The decision about an object with owners: `state of each owner, own dependents -> Verdict`. Pure.

use crate::api::Propagation;
use crate::object::{FOREGROUND_FINALIZER, ORPHAN_FINALIZER};

/// The state of the owner in an owner reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It exists and does not wait for its dependents.
    Solid,
    /// It does not exist, or another object has its name.
    Absent,
    /// It is being deleted and waits for its dependents.
    Waiting,
}

/// The object's own dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependents {
    pub(crate) any: bool,
    /// One of them waits for its own dependents; there may be a cycle.
    pub(crate) waiting: bool,
}

/// What to do with the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// Some owners exist: keep the object and remove the references to the others, by index.
    DropOwners(Vec<usize>),
    Delete {
        propagation: Propagation,
        /// First stop blocking the owners, or a cycle would wait for itself.
        unblock: bool,
    },
}

/// Decides about an object. `finalizers` are its own.
pub(crate) fn verdict(owners: &[Owner], dependents: Dependents, finalizers: &[&str]) -> Verdict {
    if owners.is_empty() {
        return Verdict::Keep;
    }
    if owners.contains(&Owner::Solid) {
        let lost: Vec<usize> = (0..owners.len())
            .filter(|&place| owners[place] != Owner::Solid)
            .collect();
        return if lost.is_empty() {
            Verdict::Keep
        } else {
            Verdict::DropOwners(lost)
        };
    }
    if owners.contains(&Owner::Waiting) && dependents.any {
        return Verdict::Delete {
            propagation: Propagation::Foreground,
            unblock: dependents.waiting,
        };
    }
    let propagation = if finalizers.contains(&ORPHAN_FINALIZER) {
        Propagation::Orphan
    } else if finalizers.contains(&FOREGROUND_FINALIZER) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    Verdict::Delete {
        propagation,
        unblock: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Owner::{Absent, Solid, Waiting};
    use rstest::rstest;

    const NONE: Dependents = Dependents {
        any: false,
        waiting: false,
    };
    const SOME: Dependents = Dependents {
        any: true,
        waiting: false,
    };
    const CIRCLE: Dependents = Dependents {
        any: true,
        waiting: true,
    };

    fn delete(propagation: Propagation, unblock: bool) -> Verdict {
        Verdict::Delete {
            propagation,
            unblock,
        }
    }

    #[rstest]
    #[case::no_owner(&[], NONE, &[], Verdict::Keep)]
    #[case::owner_lives(&[Solid], NONE, &[], Verdict::Keep)]
    #[case::one_of_two_lives(&[Absent, Solid], NONE, &[], Verdict::DropOwners(vec![0]))]
    #[case::one_waits_one_lives(&[Solid, Waiting, Absent], SOME, &[], Verdict::DropOwners(vec![1, 2]))]
    #[case::owner_is_gone(&[Absent], SOME, &[], delete(Propagation::Background, false))]
    #[case::all_are_gone(&[Absent, Absent], NONE, &[], delete(Propagation::Background, false))]
    #[case::own_orphan_finalizer(&[Absent], SOME, &["orphan"], delete(Propagation::Orphan, false))]
    #[case::own_foreground_finalizer(&[Absent], SOME, &["foregroundDeletion"], delete(Propagation::Foreground, false))]
    #[case::owner_waits_for_a_leaf(&[Waiting], NONE, &[], delete(Propagation::Background, false))]
    #[case::owner_waits_for_a_branch(&[Waiting], SOME, &[], delete(Propagation::Foreground, false))]
    #[case::a_circle_is_broken(&[Waiting, Absent], CIRCLE, &[], delete(Propagation::Foreground, true))]
    fn verdicts(
        #[case] owners: &[Owner],
        #[case] dependents: Dependents,
        #[case] finalizers: &[&str],
        #[case] expected: Verdict,
    ) {
        assert_eq!(verdict(owners, dependents, finalizers), expected);
    }
}
