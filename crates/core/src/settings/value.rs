//! Kinds of setting values: each function returns a parser that checks the bounds.
//!
//! A parser takes the text that the operator wrote and returns the value, or the rule that the text breaks with the
//! allowed range.

use std::fmt;
use std::net::SocketAddr;
use std::ops::{RangeFrom, RangeFull, RangeInclusive, RangeToInclusive};
use std::str::FromStr;
use std::time::Duration;

/// Shortest duration that is not zero.
pub const TICK: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);
pub const DAY: Duration = Duration::from_secs(86_400);

/// Bounds of a value, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed<V> {
    least: Option<V>,
    most: Option<V>,
}

impl<V: PartialOrd + Copy> Allowed<V> {
    fn has(&self, value: V) -> bool {
        self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }

    /// The range in words, with values as `show` writes them. Empty if there are no bounds.
    fn said(&self, show: impl Fn(V) -> String) -> String {
        match (self.least.map(&show), self.most.map(&show)) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("{least} or more"),
            (None, Some(most)) => format!("at most {most}"),
            (None, None) => String::new(),
        }
    }
}

impl<V> From<RangeFull> for Allowed<V> {
    fn from(_: RangeFull) -> Self {
        Self { least: None, most: None }
    }
}

impl<V> From<RangeFrom<V>> for Allowed<V> {
    fn from(range: RangeFrom<V>) -> Self {
        Self { least: Some(range.start), most: None }
    }
}

impl<V> From<RangeToInclusive<V>> for Allowed<V> {
    fn from(range: RangeToInclusive<V>) -> Self {
        Self { least: None, most: Some(range.end) }
    }
}

impl<V: Copy> From<RangeInclusive<V>> for Allowed<V> {
    fn from(range: RangeInclusive<V>) -> Self {
        Self { least: Some(*range.start()), most: Some(*range.end()) }
    }
}

/// A whole number.
pub fn count<T: TryFrom<u64>>(allowed: impl Into<Allowed<u64>>) -> impl Fn(&str) -> Result<T, String> {
    let allowed = allowed.into();
    move |text| {
        let rule = || match allowed.said(|bound| bound.to_string()) {
            range if range.is_empty() => "it must be a whole number, 0 or more".to_owned(),
            range => format!("it must be a whole number, {range}"),
        };
        let number = text.parse().ok().filter(|number| allowed.has(*number)).ok_or_else(rule)?;
        fitting(number)
    }
}

/// A size: `4GiB`, `500MB`, `1024`.
pub fn bytes<T: TryFrom<u64>>(allowed: impl Into<Allowed<u64>>) -> impl Fn(&str) -> Result<T, String> {
    let allowed = allowed.into();
    move |text| {
        let size = parse_bytes(text)?;
        match allowed.has(size) {
            true => fitting(size),
            false => Err(format!("it must be {}", allowed.said(size_text))),
        }
    }
}

/// A duration: `7d`, `30m`, `500ms`.
pub fn duration(allowed: impl Into<Allowed<Duration>>) -> impl Fn(&str) -> Result<Duration, String> {
    let allowed = allowed.into();
    move |text| {
        let duration = parse_duration(text)?;
        match allowed.has(duration) {
            true => Ok(duration),
            false => Err(format!("it must be {}", allowed.said(duration_text))),
        }
    }
}

/// A window in which attempts are counted. Counts are deleted after a day, so no window may be longer.
pub fn window(text: &str) -> Result<Duration, String> {
    duration(TICK..=DAY)(text)
}

/// Any text.
pub fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A text with at least one character.
pub fn nonempty<T: for<'a> From<&'a str>>(text: &str) -> Result<T, String> {
    if text.is_empty() { Err("it must not be empty".into()) } else { Ok(T::from(text)) }
}

/// `true` or `false`.
pub fn truth(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "it must be true or false".into())
}

/// One word of a closed set; its error lists them.
pub fn word<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// An IP address and a port.
pub fn socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it must be an IP address and a port, e.g. 127.0.0.1:7464".into())
}

/// Parts of a list, separated by commas.
pub fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// A URL whose password, if any, is replaced.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, host)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:***@{host}")
        }
        None => url.to_owned(),
    }
}

fn fitting<T: TryFrom<u64>>(number: u64) -> Result<T, String> {
    T::try_from(number).map_err(|_| format!("{number} is larger than this server can count"))
}

/// Duration units in milliseconds, largest first.
const DURATIONS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

fn parse_duration(text: &str) -> Result<Duration, String> {
    let rule = || "a duration must be a number with a unit: 500ms, 30s, 5m, 12h or 7d".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(rule)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| rule())?;
    let (_, millis) = DURATIONS.iter().find(|(name, _)| *name == unit).ok_or_else(rule)?;
    number.checked_mul(*millis).map(Duration::from_millis).ok_or_else(rule)
}

/// The shortest way to write a duration of whole milliseconds.
fn duration_text(duration: Duration) -> String {
    let millis = duration.as_millis() as u64;
    let (name, unit) = DURATIONS.iter().find(|(_, unit)| millis.is_multiple_of(*unit)).unwrap_or(&("ms", 1));
    format!("{}{name}", millis / unit)
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let rule = || "a size must be a number of bytes, or a number with KiB, MiB, GiB, kB, MB or GB".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| rule())?;
    let factor = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(rule()),
    };
    number.checked_mul(factor).ok_or_else(rule)
}

/// The shortest way to write a size.
fn size_text(size: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| size >= *unit && size.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", size / unit),
        None => format!("{size}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_as_people_write_them() {
        for (text, millis) in
            [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("12h", 43_200_000), ("7d", 604_800_000)]
        {
            assert_eq!(duration(..)(text), Ok(Duration::from_millis(millis)));
            assert_eq!(duration_text(Duration::from_millis(millis)), text);
        }
        for bad in ["", "9", "s", "1.5s", "-1s", "1w", "99999999999999999d"] {
            assert!(duration(..)(bad).is_err(), "{bad:?}");
        }
        for (text, size) in [("4GiB", 4 << 30), ("500MB", 500_000_000), ("1024", 1024), ("2 KiB", 2048), ("0", 0)] {
            assert_eq!(bytes::<u64>(..)(text), Ok(size));
        }
        for bad in ["", "many", "1TB", "-1", "99999999999999999GiB"] {
            assert!(bytes::<u64>(..)(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_the_range() {
        assert_eq!(count::<u32>(1..)("0").unwrap_err(), "it must be a whole number, 1 or more");
        assert_eq!(count::<u32>(0..=100)("101").unwrap_err(), "it must be a whole number, 0 to 100");
        assert_eq!(count::<u32>(..)("-1").unwrap_err(), "it must be a whole number, 0 or more");
        assert_eq!(bytes::<u64>(1..)("0").unwrap_err(), "it must be 1B or more");
        assert_eq!(bytes::<u64>(..=4096)("1MiB").unwrap_err(), "it must be at most 4KiB");
        assert_eq!(window("0s").unwrap_err(), "it must be 1ms to 1d");
        assert_eq!(window("25h").unwrap_err(), "it must be 1ms to 1d");
        assert_eq!(window("24h"), Ok(DAY));
    }

    #[test]
    fn a_number_that_its_type_cannot_hold_is_refused_instead_of_cut() {
        assert!(count::<u32>(..)("4294967296").is_err());
        assert!(count::<i64>(..)("9223372036854775808").is_err());
        assert_eq!(count::<u32>(..)("4294967295"), Ok(u32::MAX));
    }
}
