//! Pauses between attempts. Pure: randomness is an argument.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
/// The longest pause: how late a client notices that the service is back.
const MAX: Duration = Duration::from_secs(30);

/// The pause after `failures` in a row, of one or more `servers` that are tried in turn: doubled when each of them has failed
/// once more, less up to half of it by `random` (0 to 1), so that the clients of a server that fails don't come back together.
#[must_use]
pub fn pause(failures: u32, servers: usize, random: f64) -> Duration {
    let servers = u32::try_from(servers.max(1)).unwrap_or(u32::MAX);
    let rounds = failures.saturating_sub(1) / servers;
    let whole = FIRST.saturating_mul(2_u32.saturating_pow(rounds)).min(MAX);
    whole.mul_f64(1.0 - 0.5 * random)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first(1, 1, 0.0, 200)]
    #[case::doubled(2, 1, 0.0, 400)]
    #[case::the_longest(9, 1, 0.0, 30_000)]
    #[case::no_overflow(u32::MAX, 1, 0.0, 30_000)]
    #[case::less_by_jitter(2, 1, 1.0, 200)]
    #[case::the_first_round_of_three(3, 3, 0.0, 200)]
    #[case::the_second_round_of_three(4, 3, 0.0, 400)]
    fn d3_pauses_grow_with_each_round(
        #[case] failures: u32,
        #[case] servers: usize,
        #[case] random: f64,
        #[case] millis: u64,
    ) {
        assert_eq!(
            pause(failures, servers, random),
            Duration::from_millis(millis)
        );
    }
}
