//! Writes to the members.

use crate::strategy::Strategy;

/// A write to the Deployment of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The member's name.
    pub member: String,
    /// The precondition: the Deployment has this generation, and the uid of the view.
    pub generation: i64,
    /// What to write.
    pub action: Action,
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the target template and this strategy, in one write.
    Roll(Strategy),
    /// Write this strategy, and leave the template. A LocalReplicaSet whose strategy becomes 0 is paused.
    Shrink(Strategy),
    /// Write this strategy into a LocalReplicaSet that stays paused: for its evictions (L20).
    Lend(Strategy),
    /// Pause the Deployment: it starts no more pods of the template. Strategy and template stay.
    Pause,
    /// End a pause of ours: it rolls on with what is lent.
    Resume,
    /// Change something of the spec that has no effect, such as `progressDeadlineSeconds` by one, so that no earlier write can
    /// be carried out any more.
    Fence,
}
