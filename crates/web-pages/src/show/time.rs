//! Relative times, with the exact time on hover.

use abide_core::Timestamp;
use askama::filters::HtmlSafe;
use std::fmt;
use std::time::Duration;

/// A time to the second.
pub(crate) fn exact(then: Timestamp) -> String {
    then.to_string().replace('T', " ").replace('Z', " UTC")
}

/// Time of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now(pub Timestamp);

impl Now {
    /// An instant, relative to now.
    pub(crate) fn ago(self, then: &Timestamp) -> When {
        When { now: self.0, then: *then }
    }

    /// An exact time with its distance, for deadlines.
    pub(crate) fn until(self, then: &Timestamp) -> Until {
        Until(self.ago(then))
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
        write!(f, r#"<time datetime="{}" title="{}">"#, self.then, exact(self.then))?;
        write!(f, "{}</time>", self.words())
    }
}

impl HtmlSafe for When {}

impl When {
    fn words(&self) -> String {
        const MOMENT: Duration = Duration::from_secs(60);
        let (ahead, passed) = (self.then.since(self.now), self.now.since(self.then));
        match () {
            () if ahead < MOMENT && passed < MOMENT => "just now".to_owned(),
            // Rounds up to the minute, so that a new period of a week is shown as a week.
            () if self.then > self.now => format!("in {}", span(ahead + Duration::from_secs(59))),
            () => format!("{} ago", span(passed)),
        }
    }
}

/// An exact time with its distance, as HTML.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until(When);

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let then = self.0.then;
        write!(f, r#"<time datetime="{then}">{}</time> ({})"#, exact(then), self.0.words())
    }
}

impl HtmlSafe for Until {}

/// A duration, in days if it is a whole number of days.
pub(crate) fn days(length: Duration) -> String {
    match (length.as_secs() / 86_400, length.as_secs() % 86_400) {
        (1, 0) => "1 day".to_owned(),
        (days, 0) if days > 1 => format!("{days} days"),
        _ => span(length),
    }
}

/// A duration in its largest unit.
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
        let shown = |seconds: i64| {
            let html = Now(now).ago(&Timestamp::from_micros(now.micros() - seconds * 1_000_000)).to_string();
            html.split(['<', '>']).nth(2).unwrap().to_owned()
        };
        assert_eq!(shown(5), "just now");
        assert_eq!(shown(60), "1 minute ago");
        assert_eq!(shown(3 * 3600 + 5), "3 hours ago");
        assert_eq!(shown(15 * 86_400), "2 weeks ago");
        assert_eq!(shown(800 * 86_400), "2 years ago");
        assert_eq!(shown(-7 * 86_400), "in 1 week");
        assert_eq!(shown(-7 * 86_400 + 2), "in 1 week");
    }

    #[test]
    fn what_depends_on_an_instant_tells_it_exactly() {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let html = Now(now).until(&now.plus(Duration::from_secs(7 * 86_400))).to_string();
        assert_eq!(html, r#"<time datetime="2023-11-21T22:13:20Z">2023-11-21 22:13:20 UTC</time> (in 1 week)"#);
    }

    #[test]
    fn rules_are_told_in_days() {
        let shown = |seconds| days(Duration::from_secs(seconds));
        assert_eq!(shown(30 * 86_400), "30 days");
        assert_eq!(shown(86_400), "1 day");
        assert_eq!(shown(90 * 60), "1 hour");
    }

    #[test]
    fn the_exact_instant_is_in_the_title() {
        let html = Now(Timestamp::from_micros(0)).ago_seconds(&0).to_string();
        assert_eq!(html, r#"<time datetime="1970-01-01T00:00:00Z" title="1970-01-01 00:00:00 UTC">just now</time>"#);
    }
}
