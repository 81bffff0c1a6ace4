//! How many requests someone may make in an hour, and the headers that report it.
//!
//! Windows are the hours of the clock, as GitHub's clients expect: a limit, what is left, and when it begins anew. A
//! crate for limiting would smooth requests out instead and has no such numbers to report. Memory is bounded: of strangers
//! beyond the number of addresses that are kept apart, all share one window.

use crate::error::ApiError;
use abide_core::admission::{Network, RateWindows};
use abide_core::settings::count;
use abide_core::{Clock, Timestamp, UserId};
use abide_forge::Caller;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

const HOUR: Duration = Duration::from_secs(3600);

abide_core::settings! {
    /// Limits of API requests and event streams.
    #[derive(Debug, Clone, Copy)]
    pub struct ApiLimits in "api" {
        /// API requests per account per hour. 0: no limit.
        [Common] account as rate_limit_per_hour: u64 = "15000", count(..);
        /// API requests without a token per IP address per hour. 0: no limit.
        [Common] anonymous as anonymous_rate_limit_per_hour: u64 = "3600", count(..);
        /// Maximum concurrent event streams.
        streams: usize = "200", count(1..);
        /// Maximum concurrent event streams per account or IP address.
        streams_each: usize = "20", count(1..);
    }
    with {
        /// Accounts and addresses whose requests are counted separately; all others share one count.
        tracked: usize = 100_000;
    }
}

/// Counts requests.
pub(crate) struct Meter {
    limits: ApiLimits,
    clock: Arc<dyn Clock>,
    requests: RateWindows<Key>,
}

/// Callers whose requests share a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Account(UserId),
    Address(Option<Network>),
}

impl Key {
    pub(super) fn of(caller: &Caller) -> Self {
        match caller.user_id() {
            Some(id) => Self::Account(id),
            None => Self::Address(caller.ip.map(Network::of)),
        }
    }
}

/// A rate limit in the current hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Standing {
    limit: u64,
    used: u64,
    remaining: u64,
    /// Start of the next hour in seconds since 1970.
    reset: i64,
    resource: &'static str,
    #[serde(skip)]
    now: i64,
}

impl Meter {
    pub(crate) fn new(limits: ApiLimits, clock: Arc<dyn Clock>) -> Self {
        Self { limits, clock, requests: RateWindows::new(HOUR, limits.tracked) }
    }

    /// Counts one request, and returns the caller's count.
    pub(super) fn charge(&self, caller: &Caller) -> Standing {
        let now = self.clock.now();
        self.standing_with(caller, self.requests.add(Key::of(caller), now), now)
    }

    /// Returns the caller's count without counting a request.
    pub(super) fn standing(&self, caller: &Caller) -> Standing {
        let now = self.clock.now();
        self.standing_with(caller, self.requests.used(&Key::of(caller), now), now)
    }

    fn standing_with(&self, caller: &Caller, used: u64, now: Timestamp) -> Standing {
        let limit = match caller.user_id() {
            Some(_) => self.limits.account,
            None => self.limits.anonymous,
        };
        let limit = if limit == 0 { u64::from(u32::MAX) } else { limit };
        Standing {
            limit,
            used,
            remaining: limit.saturating_sub(used),
            reset: seconds(self.requests.end(now)),
            resource: "core",
            now: seconds(now),
        }
    }
}

fn seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}

impl Standing {
    /// Fails if the last request was one too many.
    pub(super) fn ensure_within(&self, caller: &Caller) -> Result<(), ApiError> {
        match self.used > self.limit {
            false => Ok(()),
            true => Err(ApiError::rate_limited(caller.user_id().is_some(), self.reset - self.now)),
        }
    }

    /// Sets the rate limit headers of a response.
    pub(super) fn set_headers(&self, headers: &mut HeaderMap) {
        let numbers = [
            ("x-ratelimit-limit", self.limit.to_string()),
            ("x-ratelimit-remaining", self.remaining.to_string()),
            ("x-ratelimit-reset", self.reset.to_string()),
            ("x-ratelimit-used", self.used.min(self.limit).to_string()),
            ("x-ratelimit-resource", self.resource.to_owned()),
        ];
        for (name, value) in numbers {
            let value = HeaderValue::from_str(&value).expect("digits and letters can stand in a header");
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::policy::Actor;
    use std::sync::atomic::{AtomicI64, Ordering};

    const HOUR_SECONDS: i64 = 3600;

    #[derive(Default)]
    struct Turned(AtomicI64);

    impl Clock for Turned {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::Relaxed) * 1_000_000)
        }
    }

    fn meter(account: u64, anonymous: u64, tracked: usize) -> (Meter, Arc<Turned>) {
        let clock = Arc::new(Turned::default());
        clock.0.store(HOUR_SECONDS * 500_000 + 60, Ordering::Relaxed);
        (Meter::new(ApiLimits { account, anonymous, tracked, streams: 0, streams_each: 0 }, clock.clone()), clock)
    }

    fn someone(id: i64) -> Caller {
        let actor = Actor::User { id: UserId::new(id), site_admin: false, suspended: false };
        Caller { actor, ..Caller::anonymous(None) }
    }

    fn at(ip: &str) -> Caller {
        Caller::anonymous(Some(ip.parse().unwrap()))
    }

    fn passes(meter: &Meter, caller: &Caller) -> bool {
        meter.charge(caller).ensure_within(caller).is_ok()
    }

    #[test]
    fn an_hour_has_so_many_requests_and_the_next_begins_anew() {
        let (meter, clock) = meter(3, 1, 10);
        for left in [2, 1, 0] {
            let standing = meter.charge(&someone(1));
            assert!(standing.ensure_within(&someone(1)).is_ok());
            assert_eq!((standing.remaining, standing.limit, standing.reset), (left, 3, HOUR_SECONDS * 500_001));
        }
        let over = meter.charge(&someone(1));
        assert!(over.ensure_within(&someone(1)).is_err());
        assert_eq!((over.remaining, over.used), (0, 4));
        assert_eq!(meter.standing(&someone(1)).remaining, 0, "looking costs nothing");
        assert!(passes(&meter, &someone(2)), "another account has its own");
        assert!(passes(&meter, &at("192.0.2.1")));
        assert!(!passes(&meter, &at("192.0.2.1")));
        clock.0.fetch_add(HOUR_SECONDS, Ordering::Relaxed);
        assert_eq!(meter.charge(&someone(1)).remaining, 2);
    }

    #[test]
    fn one_network_is_one_stranger() {
        let (meter, _) = meter(1, 1, 10);
        assert!(passes(&meter, &at("2001:db8::1")));
        assert!(!passes(&meter, &at("2001:db8::ffff:2")));
        assert!(passes(&meter, &at("2001:db8:0:1::1")));
        assert!(passes(&meter, &at("192.0.2.1")));
        assert!(!passes(&meter, &at("::ffff:192.0.2.1")), "the same address in another form");
    }

    #[test]
    fn memory_is_bounded_and_whoever_has_a_place_keeps_it() {
        let (meter, _) = meter(9, 2, 2);
        for ip in ["192.0.2.1", "192.0.2.2"] {
            assert_eq!(meter.charge(&at(ip)).used, 1);
        }
        assert_eq!(meter.charge(&at("192.0.2.3")).used, 1);
        assert_eq!(meter.charge(&at("192.0.2.4")).used, 2, "these share a window");
        assert!(!passes(&meter, &at("192.0.2.5")));
        assert_eq!(meter.charge(&at("192.0.2.1")).used, 2, "this one has its own");
    }

    #[test]
    fn zero_is_no_limit() {
        let (meter, _) = meter(0, 0, 10);
        assert!((0..10_000).all(|_| passes(&meter, &someone(1))));
    }
}
