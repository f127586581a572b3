//! The names of new pods.
//!
//! A name follows from the set and from which names are free, and names whose creation was not answered come first. So a creation
//! that is repeated is rejected, instead of creating one pod more.

use std::{borrow::Cow, collections::HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{pod::Pod, set::Set};

/// The characters of generated names in Kubernetes: without vowels, and without digits that look like letters.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Their number in a name.
const LENGTH: usize = 5;
/// Names that are tried for each pod before the set goes on without one: only if nearly all names are taken.
const TRIES: usize = 1000;

/// `count` names that neither `pods` have, nor are `taken` by pods that the set does not see or keeps a place for: those that were
/// `asked` for before, then others.
pub(crate) fn free_names<'t>(
    set: &Set<'_>,
    pods: &[Pod<'t>],
    taken: impl Iterator<Item = &'t str>,
    asked: impl Iterator<Item = &'t str>,
    count: usize,
) -> Vec<String> {
    let mut used: HashSet<Cow<'t, str>> = pods.iter().map(|pod| pod.name.into()).collect();
    used.extend(taken.map(Cow::from));
    let tries = 0..used.len().saturating_add(count).saturating_add(TRIES);
    let generated = tries.map(|index| name(set, index).into());
    let candidates = asked.map(Cow::from).chain(generated);
    let free = candidates.filter(|name| used.insert(name.clone()));
    free.take(count).map(Cow::into_owned).collect()
}

fn name(set: &Set<'_>, index: usize) -> String {
    let mut hash = xxh3_64_with_seed(set.uid.as_bytes(), index as u64);
    let base = ALPHABET.len() as u64;
    let mut name = String::with_capacity(set.name.len() + 1 + LENGTH);
    name.push_str(set.name);
    name.push('-');
    for _ in 0..LENGTH {
        let letter = usize::try_from(hash % base).unwrap_or_default();
        name.push(char::from(ALPHABET[letter]));
        hash /= base;
    }
    name
}
