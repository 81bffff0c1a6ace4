//! Time as a value: microseconds since the Unix epoch, and the clock trait.

use std::fmt;
use std::time::Duration;

/// An instant in microseconds since 1970-01-01T00:00:00Z, as both databases store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// This instant plus a duration, saturating.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration_micros(duration)))
    }

    /// This instant minus a duration, saturating.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration_micros(duration)))
    }

    /// Duration since `earlier`; zero if this is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn duration_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// RFC 3339 in UTC with whole seconds, as GitHub's API writes times.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000);
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let of_day = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Written as its text, to the second.
impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        parse_rfc3339(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

/// Proleptic Gregorian date of a day number counted from 1970-01-01.
///
/// Counts in eras of 400 years that start on 1 March, so that the leap day is the last day of its year.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Parses an RFC 3339 time such as `2026-01-31T12:00:00Z`, with `Z` or an offset; drops fractions of a second. A date
/// alone means its first moment.
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = days_from_civil(year, month, day);
    if parts.next().is_some() || civil_from_days(days) != (year, month, day) {
        return None;
    }
    if rest.is_empty() {
        return Some(Timestamp(days * 86_400_000_000));
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (time, zone) = time.split_at(time.find(['Z', 'z', '+', '-'])?);
    let time = time.split_once('.').map_or(time, |(whole, _)| whole);
    let mut parts = time.split(':').map(number);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    // A leap second counts as the second before it.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second.min(59) - zone_offset(zone)?;
    Some(Timestamp(seconds * 1_000_000))
}

/// Parses digits only, without a sign.
fn number(part: &str) -> Option<i64> {
    if part.bytes().all(|byte| byte.is_ascii_digit()) { part.parse().ok() } else { None }
}

/// Offset in seconds of `Z` or `+hh:mm`.
fn zone_offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = hours * 3600 + minutes * 60;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

/// Day number of a date, the inverse of [`civil_from_days`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Source of the time. Tests control it.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// The system clock, and the only place that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is what everything else takes the time from")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp(duration_micros(since_epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn timestamps_print_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp::from_micros(seconds * 1_000_000).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(seconds in -62_135_596_800_i64..253_402_300_800) {
            let at = Timestamp::from_micros(seconds * 1_000_000);
            prop_assert_eq!(parse_rfc3339(&at.to_string()), Some(at));
        }

        #[test]
        fn arbitrary_text_never_panics(text: String, tail in "[-+:.TZ0-9]{0,20}") {
            let _ = parse_rfc3339(&text);
            let _ = parse_rfc3339(&format!("2026-01-31T{tail}"));
        }
    }

    #[test]
    fn times_are_read_with_offsets_and_fractions() {
        let at = |text: &str| parse_rfc3339(text).map(|at| at.to_string());
        assert_eq!(at("2026-01-31T12:00:00+02:00").as_deref(), Some("2026-01-31T10:00:00Z"));
        assert_eq!(at("2026-01-31T23:30:00.999-01:30").as_deref(), Some("2026-02-01T01:00:00Z"));
        assert_eq!(at("2026-01-31").as_deref(), Some("2026-01-31T00:00:00Z"));
        for bad in ["", "2026", "2026-02-30", "2026-13-01", "2026-1-31", "2026-01-31T12:00Z", "2026-01-31T25:00:00Z"] {
            assert_eq!(at(bad), None, "{bad}");
        }
        for bad in ["2026-01-31T12:00:00", "2026-01-31T12:00:00+2", "-026-01-31", "2026-01-31T12:00:00Zx"] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let end = Timestamp::from_micros(i64::MAX);
        assert_eq!(end.plus(Duration::from_secs(1)), end);
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(9)), Duration::ZERO);
    }
}
