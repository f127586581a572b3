//! Layouts stay what they are from one version to the next: a change would move replicas of running sets.
//!
//! Two hashes, one of all numbers and ranks and one of all reasons, cover some thousand layouts, over inputs from small
//! numbers to all of `u64`. They are older than the scheduler's present arithmetic.

use std::fmt::Write;

use federated_scheduler::{Cluster, Preference, Reason, Request, Rounding, TakenBy, plan};
use xxhash_rust::xxh3::xxh3_64;

/// A stream of numbers that is the same everywhere (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Numbers of `bits` bits, often one of the ends; of 64 bits, `u64::MAX` too.
    fn of_bits(&mut self, bits: u64) -> u64 {
        let most = u64::MAX >> (64 - bits);
        match self.below(8) {
            0 => 0,
            1 => most - self.below(3).min(most),
            _ => self.next() & most,
        }
    }
}

/// The layout of a random request whose numbers have up to `bits` bits, as text.
fn layout_of(
    numbers: &mut Numbers,
    count: u64,
    bits: u64,
    text: &mut String,
    reasons: &mut String,
) {
    let names: Vec<String> = (0..count)
        .map(|i| format!("cluster-{:x}", i * 7919))
        .collect();
    // Preferences that few clusters differ in make ties, and those make bounds that bind elsewhere.
    let common = Preference {
        min: 0,
        max: None,
        weight: numbers.of_bits(bits),
    };
    let preference = |numbers: &mut Numbers| {
        if numbers.one_in(3) {
            return common;
        }
        let min = if numbers.one_in(3) {
            numbers.of_bits(bits) / 8
        } else {
            0
        };
        Preference {
            min,
            max: numbers
                .one_in(2)
                .then(|| min.saturating_add(numbers.of_bits(bits))),
            weight: numbers.of_bits(bits),
        }
    };
    let clusters: Vec<_> = names
        .iter()
        .map(|name| Cluster {
            name,
            preference: (!numbers.one_in(20)).then(|| preference(numbers)),
            current: numbers.of_bits(bits),
            capacity: numbers.one_in(3).then(|| numbers.of_bits(bits)),
        })
        .collect();
    let request = Request {
        key: &format!("default/web-{}", numbers.below(1000)),
        replicas: numbers.of_bits(bits).saturating_mul(1 + numbers.below(4)),
        rebalance: numbers.one_in(2),
        clusters: &clusters,
    };
    let layout = plan(&request);
    for share in &layout.shares {
        write!(text, "{} {};", share.replicas, share.rank).expect("a string takes everything");
        for reason in share.reasons.iter() {
            write!(reasons, "{};", data_of(reason)).expect("a string takes everything");
        }
    }
    writeln!(text, "{}", layout.unplaced).expect("a string takes everything");
}

/// A reason as data: its message may change, its data may not.
fn data_of(reason: &Reason) -> String {
    match reason {
        Reason::NotSelected => "no preference".to_owned(),
        Reason::ScaledToZero => "no replicas".to_owned(),
        Reason::AtMinimum { minimum } => format!("minimum {minimum}"),
        Reason::BelowMinimum { granted, minimum } => format!("{granted} of minimum {minimum}"),
        Reason::NoReplicasLeft { taken_by } => match taken_by {
            TakenBy::Minimums => "minimums use all".to_owned(),
            TakenBy::KeptInPlace => "others keep all".to_owned(),
        },
        Reason::ByWeight(quota) => format!(
            "{} of {} of {}, {}",
            quota.weight,
            quota.total_weight,
            quota.replicas,
            match quota.rounding {
                Rounding::Exact => "exact",
                Rounding::Up => "up",
                Rounding::Down => "down",
                Rounding::UpByOrder => "up by order",
                Rounding::DownByOrder => "down by order",
                Rounding::FarUp => "far up",
                Rounding::FarDown => "far down",
            }
        ),
        Reason::AboveShare { current } => format!("above its share with {current}"),
        Reason::WithinShare { current } => format!("within its share with {current}"),
        Reason::KeptInPlace { current } => format!("keeps {current}"),
        Reason::AtMaximum { maximum } => format!("maximum {maximum}"),
        Reason::AtCapacity { capacity } => format!("capacity {capacity}"),
        Reason::ZeroWeight => "weight 0".to_owned(),
        Reason::RemovedFirst { current } => format!("weight 0 with {current}"),
    }
}

#[test]
fn layouts_stay_what_they_are() {
    let mut numbers = Numbers(3);
    let (mut text, mut reasons) = (String::new(), String::new());
    for round in 0..4000 {
        let count = numbers.below(if round % 20 == 0 { 300 } else { 12 });
        let bits = [3, 5, 8, 16, 31, 32, 33, 63, 64][round % 9];
        layout_of(&mut numbers, count, bits, &mut text, &mut reasons);
    }
    assert_eq!(xxh3_64(text.as_bytes()), 0x362a_2402_3008_9e18);
    assert_eq!(xxh3_64(reasons.as_bytes()), 0x33c4_e9e5_fe9a_3a6d);
}
