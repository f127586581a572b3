//! How the commands show the rollouts of a kind.

use std::ops::Range;

use membership::rollout::RolloutKind;

/// How the commands show the rollouts of a kind.
pub(crate) trait View: RolloutKind {
    /// The column of a history that says who has a revision.
    const USERS: &'static str;
    /// The columns of a part of a rollout.
    const COLUMNS: &'static [&'static str];
    /// Those with numbers.
    const NUMBERS: Range<usize>;

    /// A part in these columns.
    fn row(part: &Self::Part) -> Vec<String>;
    /// Whether the rollout waits for nothing more of this part.
    fn is_complete(part: &Self::Part) -> bool;

    /// What a status that is shown once has besides its sentence.
    fn details(_parts: &[Self::Part]) -> String {
        String::new()
    }
}
