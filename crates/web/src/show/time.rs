//! Times as people say them, with the exact instant on hover.

use abide_core::Timestamp;
use askama::filters::HtmlSafe;
use std::fmt;
use std::time::Duration;

/// The present, as the page was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now(pub Timestamp);

impl Now {
    /// An instant, relative to now.
    pub(crate) fn ago(self, then: &Timestamp) -> When {
        When { now: self.0, then: *then }
    }

    /// Seconds since 1970, relative to now.
    pub(crate) fn ago_seconds(self, seconds: &i64) -> When {
        self.ago(&Timestamp::from_micros(seconds.saturating_mul(1_000_000)))
    }
}

/// An instant as HTML: relative in words, exact in its title.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    now: Timestamp,
    then: Timestamp,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.then.to_string();
        let readable = exact.replace('T', " ").replace('Z', " UTC");
        write!(f, r#"<time datetime="{exact}" title="{readable}">"#)?;
        if self.then > self.now {
            let ahead = self.then.since(self.now);
            if ahead < Duration::from_secs(60) { f.write_str("just now") } else { write!(f, "in {}", span(ahead)) }?;
        } else {
            let passed = self.now.since(self.then);
            if passed < Duration::from_secs(60) { f.write_str("just now") } else { write!(f, "{} ago", span(passed)) }?;
        }
        f.write_str("</time>")
    }
}

impl HtmlSafe for When {}

/// A length of time in its largest unit.
pub(crate) fn span(length: Duration) -> String {
    const UNITS: [(u64, &str); 6] = [
        (365 * 86_400, "year"),
        (30 * 86_400, "month"),
        (7 * 86_400, "week"),
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
    ];
    let seconds = length.as_secs();
    let (count, unit) = UNITS
        .into_iter()
        .find(|(size, _)| seconds >= *size)
        .map_or((seconds.max(1), "second"), |(size, unit)| (seconds / size, unit));
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let told = |seconds: i64| {
            let html = Now(now).ago(&Timestamp::from_micros(now.micros() - seconds * 1_000_000)).to_string();
            html.split(['<', '>']).nth(2).unwrap().to_owned()
        };
        assert_eq!(told(5), "just now");
        assert_eq!(told(60), "1 minute ago");
        assert_eq!(told(3 * 3600 + 5), "3 hours ago");
        assert_eq!(told(15 * 86_400), "2 weeks ago");
        assert_eq!(told(800 * 86_400), "2 years ago");
        assert_eq!(told(-7 * 86_400), "in 1 week");
    }

    #[test]
    fn the_exact_instant_is_in_the_title() {
        let html = Now(Timestamp::from_micros(0)).ago_seconds(&0).to_string();
        assert_eq!(html, r#"<time datetime="1970-01-01T00:00:00Z" title="1970-01-01 00:00:00 UTC">just now</time>"#);
    }
}
