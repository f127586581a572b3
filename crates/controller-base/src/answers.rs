//! What clusters answer to the requests that follow from a look at them.

use std::collections::BTreeMap;

/// After so many looks in a row whose requests were outdated at once, a cluster does not show what it has.
const OUTDATED_LOOKS: u32 = 3;

/// What a cluster answers to all requests of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All were carried out.
    Accepted,
    /// An object was changed, created or removed meanwhile: the next look shows how.
    Outdated(String),
    /// One was rejected, and why.
    Rejected(String),
}

/// The answers to the last look, by cluster.
#[derive(Debug, Default)]
pub struct Answers {
    rejected: BTreeMap<String, String>,
    /// In how many looks in a row the requests were outdated.
    outdated: BTreeMap<String, u32>,
}

impl Answers {
    /// Records the answers to the last look. A cluster that is not among them was asked for nothing.
    pub fn put(&mut self, answers: impl IntoIterator<Item = (String, Answer)>) {
        let before = std::mem::take(self);
        for (cluster, answer) in answers {
            match answer {
                Answer::Accepted => {}
                Answer::Rejected(why) => _ = self.rejected.insert(cluster, why),
                Answer::Outdated(why) => {
                    let looks = before.outdated.get(&cluster).map_or(1, |looks| looks + 1);
                    if looks >= OUTDATED_LOOKS {
                        self.rejected.insert(cluster.clone(), why);
                    }
                    self.outdated.insert(cluster, looks);
                }
            }
        }
    }

    /// The clusters that are asked again after a pause only, and why.
    #[must_use]
    pub const fn rejected(&self) -> &BTreeMap<String, String> {
        &self.rejected
    }

    /// Forgets the clusters that are no longer looked at.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.rejected.retain(|cluster, _| is_kept(cluster));
        self.outdated.retain(|cluster, _| is_kept(cluster));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_outdated_again_and_again_are_rejected() {
        let outdated = || Answer::Outdated("it exists".to_owned());
        let mut answers = Answers::default();
        for (answer, is_rejected) in [
            (outdated(), false),
            (outdated(), false),
            (outdated(), true),
            (outdated(), true),
            (Answer::Accepted, false),
            (outdated(), false),
            (Answer::Rejected("no".to_owned()), true),
            (outdated(), false),
        ] {
            answers.put([("a".to_owned(), answer.clone())]);
            assert_eq!(
                answers.rejected().contains_key("a"),
                is_rejected,
                "{answer:?}"
            );
        }
        answers.put([]);
        assert!(answers.rejected().is_empty());
    }
}
