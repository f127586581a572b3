//! Runs a check on a corpus, and on mutations of it.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::mutated;

/// The number of mutated documents of a run, unless `FEDRS_FUZZ` is set.
const CASES: u64 = 1_000;
/// The most mutations of a document.
const MUTATIONS_MAX: usize = 6;

/// Calls `check` with each document in the directory `corpus`, and then with mutations of them. If `check` panics, adds the
/// document with only the mutations that cause the panic to the corpus: the next runs check it first.
///
/// # Panics
/// If `check` does, or if the corpus is empty.
pub fn fuzz(corpus: &Path, check: impl Fn(&[u8])) {
    let documents = read(corpus);
    assert!(!documents.is_empty(), "{} is empty", corpus.display());
    for (name, document) in &documents {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(document))) {
            eprintln!("failed: {name} of {}", corpus.display());
            resume_unwind(panic);
        }
    }
    let cases = std::env::var("FEDRS_FUZZ").ok();
    let cases = cases.map_or(CASES, |cases| {
        cases.parse().expect("FEDRS_FUZZ is a number")
    });
    for case in 0..cases {
        let mut random = StdRng::seed_from_u64(case);
        let document = &documents[random.random_range(0..documents.len())].1;
        let count = random.random_range(1..=MUTATIONS_MAX);
        let seeds: Vec<u64> = (0..count).map(|_| random.random()).collect();
        let fails = |seeds: &[u64]| {
            let input = mutated(document, seeds);
            catch_unwind(AssertUnwindSafe(|| check(&input))).err()
        };
        if let Some(mut panic) = fails(&seeds) {
            let mut seeds = seeds;
            let mut place = 0;
            while place < seeds.len() {
                let mut fewer = seeds.clone();
                fewer.remove(place);
                match fails(&fewer) {
                    Some(other) => (seeds, panic) = (fewer, other),
                    None => place += 1,
                }
            }
            let file = keep(corpus, &mutated(document, &seeds));
            eprintln!("failed: case {case}, kept as {file}");
            resume_unwind(panic);
        }
    }
}

/// The documents of a directory, in the order of their names.
fn read(corpus: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(corpus).expect("the corpus can be read");
    let mut documents: Vec<_> = files
        .map(|file| {
            let path = file.expect("the corpus can be read").path();
            let document = fs::read(&path).expect("the corpus can be read");
            (path.display().to_string(), document)
        })
        .collect();
    documents.sort();
    documents
}

/// Adds an input to the corpus. Returns its name.
fn keep(corpus: &Path, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let name = format!("failed-{:016x}", hasher.finish());
    // The panic is reported even if the file cannot be written.
    let _ = fs::write(corpus.join(&name), input);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_fails_is_kept_and_checked_first() {
        let corpus = std::env::temp_dir().join(format!("fedrs-corpus-{}", std::process::id()));
        fs::create_dir_all(&corpus).expect("a directory can be made");
        fs::write(corpus.join("valid"), r#"{"a":[1,2,{"b":"c"}],"d":7}"#)
            .expect("it can be written");
        let has_true = |input: &[u8]| assert!(!input.windows(4).any(|part| part == b"true"));
        let fails = || catch_unwind(|| fuzz(&corpus, has_true)).is_err();
        assert!(fails());
        let kept = read(&corpus);
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(fails());
        assert_eq!(read(&corpus), kept, "the kept one fails at once");
        fs::remove_dir_all(corpus).expect("it can be removed");
    }
}
