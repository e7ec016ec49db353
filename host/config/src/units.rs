//! Durations and sizes: a number never stands without its unit.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;

/// The units of a duration in milliseconds, longest first.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The units of a size.
const SIZE_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "KB", "MB", "GB"];

/// A duration such as `500ms`, `30s`, `15m`, `12h`, `7d` or `1h30m`; none where the text is not one.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut longest_allowed = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_digits(rest)?;
        let (unit, after) = split_letters(after);
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        if factor >= longest_allowed {
            return None;
        }
        longest_allowed = factor;
        total = total.checked_add(number.checked_mul(factor)?)?;
        rest = after;
    }
    (!text.is_empty()).then(|| Duration::from_millis(total))
}

fn split_digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    digits.parse().ok().map(|number| (number, rest))
}

fn split_letters(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    text.split_at(end)
}

/// A size in bytes such as `512B`, `64KiB`, `1MiB` or `2GB`; none where the text is not one.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (_, unit) = split_digits(text)?;
    if !SIZE_UNITS.contains(&unit) {
        return None;
    }
    text.parse::<ByteSize>().ok().map(|size| size.as_u64())
}

/// A duration as the configuration would spell it: `1h30m`, `58s5ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable(pub Duration);

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return f.write_str("0s");
        }
        for (unit, factor) in UNITS {
            let count = left / factor;
            left %= factor;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

/// A size as the configuration would spell it: the largest unit that divides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadableSize(pub u64);

impl fmt::Display for ReadableSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        let table = [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("15m", Some(900_000)),
            ("12h", Some(43_200_000)),
            ("7d", Some(604_800_000)),
            ("1h30m", Some(5_400_000)),
            ("0s", Some(0)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("30 s", None),
            ("30S", None),
            ("30sec", None),
            ("30m1h", None),
            ("1s1s", None),
            ("1h30", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ];
        for (text, millis) in table {
            assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn a_size_has_a_unit() {
        let table = [
            ("0B", Some(0)),
            ("64KiB", Some(65_536)),
            ("64MiB", Some(67_108_864)),
            ("2GiB", Some(2_147_483_648)),
            ("1MB", Some(1_000_000)),
            ("64", None),
            ("64M", None),
            ("64 MiB", None),
            ("1.5MiB", None),
            ("-1B", None),
            ("MiB", None),
            ("", None),
        ];
        for (text, bytes) in table {
            assert_eq!(parse_size(text), bytes, "{text:?}");
        }
    }

    #[test]
    fn what_is_read_is_written_back_the_same() {
        for text in ["500ms", "30s", "1h30m", "1m", "7d", "58s5ms", "0s"] {
            let read = parse_duration(text).expect("a duration");
            assert_eq!(Readable(read).to_string(), text);
        }
        for text in ["64MiB", "3KiB", "1000B", "4GiB", "0B"] {
            let read = parse_size(text).expect("a size");
            assert_eq!(ReadableSize(read).to_string(), text);
        }
    }
}
