//! Kubernetes quantities (`100m`, `131Mi`, `2e3`), for sums and comparisons.

/// Longer than any number of a pod or a node.
const MAX_DIGITS: usize = 24;

/// `text` in thousandths, rounded up; `None` if it isn't a quantity or is negative.
#[must_use]
pub fn millis(text: &str) -> Option<u128> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let digits: u128 = digits.parse().ok()?;
    let (times, over) = factor(suffix)?;
    let over = over.checked_mul(10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?)?;
    let thousandths = digits.checked_mul(1000)?.checked_mul(times)?;
    Some(thousandths.div_ceil(over))
}

/// The factor and the divisor of a suffix.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    let of = |power: u32| Some((10u128.pow(power), 1));
    match suffix {
        "" => of(0),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => of(3),
        "M" => of(6),
        "G" => of(9),
        "T" => of(12),
        "P" => of(15),
        "E" => of(18),
        _ => binary(suffix).or_else(|| exponent(suffix)),
    }
}

/// Suffixes of powers of 1024, from the second on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

fn binary(suffix: &str) -> Option<(u128, u128)> {
    let place = BINARY.iter().position(|unit| *unit == suffix)?;
    Some((1 << (10 * (place + 1)), 1))
}

/// `e3`, `E-3`.
fn exponent(suffix: &str) -> Option<(u128, u128)> {
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let factor = 10u128.checked_pow(power.unsigned_abs())?;
    Some(if power < 0 { (1, factor) } else { (factor, 1) })
}

/// Thousandths as Kubernetes writes them: `1500m`, `2`.
#[must_use]
pub fn of_millis(millis: u64) -> String {
    if millis.is_multiple_of(1000) {
        (millis / 1000).to_string()
    } else {
        format!("{millis}m")
    }
}

/// Bytes as Kubernetes writes them: with the largest binary suffix that leaves a whole number.
#[must_use]
pub fn of_bytes(bytes: u64) -> String {
    let powers = (bytes.trailing_zeros() / 10).min(6) as usize;
    match powers.checked_sub(1) {
        Some(place) if bytes > 0 => format!("{}{}", bytes >> (10 * powers), BINARY[place]),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4", Some(4000)),
            ("100m", Some(100)),
            ("1.5", Some(1500)),
            (".5", Some(500)),
            ("2.", Some(2000)),
            ("1n", Some(1)),
            ("1500u", Some(2)),
            ("2k", Some(2_000_000)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("1e3", Some(1_000_000)),
            ("5E-3", Some(5)),
            ("1Ei", Some((1 << 60) * 1000)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1.2.3", None),
            ("1ki", None),
            ("1e99", None),
            ("many", None),
            ("9999999999999999999999999999", None),
        ] {
            assert_eq!(millis(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sums_are_written_canonically() {
        let cpus = [(0, "0"), (1500, "1500m"), (64_000, "64")];
        for (number, text) in cpus {
            assert_eq!(of_millis(number), text);
        }
        let memory = [
            (0, "0"),
            (1000, "1000"),
            (1024, "1Ki"),
            (1536, "1536"),
            (3 << 30, "3Gi"),
            ((1 << 40) + 1024, "1073741825Ki"),
            (1 << 60, "1Ei"),
            (1 << 63, "8Ei"),
        ];
        for (number, text) in memory {
            assert_eq!(of_bytes(number), text);
        }
    }
}
