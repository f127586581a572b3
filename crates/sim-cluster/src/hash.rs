//! FNV-1a with a seed: for ids that need to differ, not to be secret.

/// The hash of `bytes`; another one for each seed.
pub(crate) fn fnv(bytes: &[u8], seed: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed.rotate_left(32), step)
}
