//! Kubernetes quantities (`500m`, `1.5Gi`, `1e3`): parse, compare, add and print them exactly.
//!
//! text -> nano-units in an `i128` and the family of suffixes -> canonical text.
//! Fractions of a nano-unit are rounded away from zero, as in Kubernetes.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

const NANO: i128 = 1_000_000_000;

/// Decimal suffixes with their power of ten, largest first.
const DECIMAL: [(&str, i32); 10] = [
    ("E", 18),
    ("P", 15),
    ("T", 12),
    ("G", 9),
    ("M", 6),
    ("k", 3),
    ("", 0),
    ("m", -3),
    ("u", -6),
    ("n", -9),
];
/// Binary suffixes with their power of two, largest first.
const BINARY: [(&str, u32); 6] = [
    ("Ei", 60),
    ("Pi", 50),
    ("Ti", 40),
    ("Gi", 30),
    ("Mi", 20),
    ("Ki", 10),
];

/// The family of suffixes a quantity was written with; it is printed with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `n u m k M G T P E`
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`
    BinarySi,
    /// `e3`
    DecimalExponent,
}

/// A fixed-point number with the family of suffixes it is printed with. Equality and order are by value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nanos: i128,
    format: Format,
}

/// The error of a text that is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)]
pub(crate) struct NotAQuantity;

impl Quantity {
    /// Whether the quantity is zero.
    pub(crate) const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// A whole number of units.
    pub(crate) fn units(count: i64) -> Self {
        Self {
            nanos: i128::from(count) * NANO,
            format: Format::DecimalSi,
        }
    }

    /// The value in thousandths, rounded up: the unit of CPU.
    pub(crate) fn millis(self) -> i64 {
        saturate(ceil_div(self.nanos, 1_000_000))
    }

    /// The value in whole units, rounded up: the unit of memory.
    pub(crate) fn value(self) -> i64 {
        saturate(ceil_div(self.nanos, NANO))
    }

    /// Whether the quantity is less than zero.
    pub(crate) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Zero.
    pub(crate) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The sum, in this one's format, or in the other's if this one is zero.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format,
        }
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn ceil_div(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let split = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(split);
        let (scale, format) = Scale::parse(suffix).ok_or(NotAQuantity)?;
        let magnitude = scale.of(number).ok_or(NotAQuantity)?;
        Ok(Self {
            nanos: if negative { -magnitude } else { magnitude },
            format,
        })
    }
}

/// The factor of a suffix.
enum Scale {
    Ten(i32),
    Two(u32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<(Self, Format)> {
        if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some((Self::Ten(*power), Format::DecimalSi));
        }
        if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            return Some((Self::Two(*power), Format::BinarySi));
        }
        let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        Some((Self::Ten(exponent), Format::DecimalExponent))
    }

    /// `number` (digits with at most one point) in nano-units, rounded up, capped at what an `i128` can hold.
    fn of(&self, number: &str) -> Option<i128> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        // More digits are beyond the largest quantity.
        let digits: i128 = format!("{whole}{fraction}")
            .trim_start_matches('0')
            .chars()
            .take(36)
            .try_fold(0i128, |sum, digit| {
                Some(
                    sum.saturating_mul(10)
                        .saturating_add(i128::from(digit.to_digit(10)?)),
                )
            })?;
        let decimals = i32::try_from(fraction.len()).ok()?;
        Some(match *self {
            Self::Ten(power) => shift(digits, 9 + power - decimals),
            Self::Two(power) => shift(digits.saturating_mul(1 << power), 9 - decimals),
        })
    }
}

/// `value` times ten to the `power`, rounded up.
fn shift(value: i128, power: i32) -> i128 {
    match u32::try_from(power) {
        Ok(power) => value.saturating_mul(10i128.checked_pow(power).unwrap_or(i128::MAX)),
        Err(_) => 10i128
            .checked_pow(power.unsigned_abs())
            .map_or(i128::from(value > 0), |by| ceil_div(value, by)),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.format == Format::BinarySi && self.nanos.abs() >= 1024 * NANO {
            let value = ceil_div(self.nanos.abs(), NANO) * self.nanos.signum();
            let fits = BINARY
                .iter()
                .find(|(_, power)| value % (1i128 << power) == 0);
            return match fits {
                Some((suffix, power)) => write!(f, "{}{suffix}", value >> power),
                None => write!(f, "{value}"),
            };
        }
        let (suffix, power) = DECIMAL
            .iter()
            .find(|(_, power)| self.nanos % shift(1, 9 + power) == 0)
            .expect("one nano divides every quantity");
        let mantissa = self.nanos / shift(1, 9 + power);
        match self.format {
            Format::DecimalExponent if *power != 0 => write!(f, "{mantissa}e{power}"),
            _ => write!(f, "{mantissa}{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("0", "0")]
    #[case("0.5", "500m")]
    #[case("1.5Gi", "1536Mi")]
    #[case("1024Mi", "1Gi")]
    #[case("1000", "1k")]
    #[case("100", "100")]
    #[case("1023Ki", "1023Ki")]
    #[case("0.5Ki", "512")]
    #[case("1e3", "1e3")]
    #[case("12e2", "1200")]
    #[case("-2500m", "-2500m")]
    #[case("+3", "3")]
    #[case(".1", "100m")]
    #[case("0.0000000001", "1n")]
    #[case("2E", "2E")]
    #[case("1Ei", "1Ei")]
    fn a_quantity_is_printed_in_its_canonical_form(#[case] text: &str, #[case] canonical: &str) {
        assert_eq!(text.parse::<Quantity>().unwrap().to_string(), canonical);
    }

    #[rstest]
    #[case("")]
    #[case("-")]
    #[case("1.2.3")]
    #[case("1 Gi")]
    #[case("Gi")]
    #[case("1gi")]
    #[case("1e")]
    fn malformed_quantities_are_rejected(#[case] text: &str) {
        assert_eq!(text.parse::<Quantity>(), Err(NotAQuantity));
    }

    #[test]
    fn values_compare_across_formats_and_round_up() {
        let parse = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(parse("1"), parse("1000m"));
        assert!(parse("1Gi") > parse("1G"));
        assert_eq!(parse("1500m").value(), 2);
        assert_eq!(parse("100u").millis(), 1);
        assert_eq!(parse("500m").plus(parse("500m")).to_string(), "1");
        assert_eq!(parse("0").plus(parse("64Mi")).to_string(), "64Mi");
    }

    proptest! {
        #[test]
        fn the_canonical_text_has_the_same_value(number in -1_000_000i64..1_000_000, suffix in 0usize..16) {
            let suffixes = ["", "m", "k", "M", "G", "T", "u", "n", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "P", "E"];
            let quantity: Quantity = format!("{number}{}", suffixes[suffix]).parse().unwrap();
            let again: Quantity = quantity.to_string().parse().unwrap();
            prop_assert_eq!(quantity, again);
            prop_assert_eq!(quantity.to_string(), again.to_string());
        }
    }
}
