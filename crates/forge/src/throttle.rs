//! Rate limits of attempts. They are counted in the database, so that all nodes share the counts and a restart does not
//! reset them. Also the limit of repositories per account.

use crate::Rate;
use abide_core::UserId;
use abide_core::admission::Network;
use abide_store::repos::{self, Page, Viewer};
use abide_store::throttles::Limit;
use abide_store::{StoreError, Tx};
use std::net::IpAddr;
use std::time::Duration;

/// A rate with its scope.
pub(crate) const fn limit(scope: &'static str, rate: Rate) -> Limit {
    Limit { scope, times: rate.times, window: rate.window }
}

/// Network of a client, the unit of the limits: an IPv6 customer has at least 2⁶⁴ addresses.
pub(crate) fn network(ip: Option<IpAddr>) -> String {
    ip.map_or_else(|| "unknown".into(), |ip| Network::of(ip).address().to_string())
}

/// Message for a client that has to wait.
pub(crate) fn wait(retry_after: Duration) -> String {
    let minutes = retry_after.as_secs().div_ceil(60).max(1);
    format!("too many attempts; wait {minutes} minute{}", if minutes == 1 { "" } else { "s" })
}

/// Whether an account has reached its repository limit.
pub(crate) async fn owns_too_many(tx: &mut Tx, owner: UserId, limit: i64) -> Result<bool, StoreError> {
    let viewer = Viewer { user: Some(owner), reads_everything: false };
    let (_, owned) = repos::of_owner(tx, owner, viewer, Page { limit: 1, offset: 0 }).await?;
    Ok(owned >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_and_a_mapped_address_count_as_one() {
        let at = |text: &str| network(Some(text.parse().unwrap()));
        assert_eq!(at("2001:db8:1:2::3"), at("2001:db8:1:2:ffff::1"));
        assert_ne!(at("2001:db8:1:2::3"), at("2001:db8:1:3::3"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }

    #[test]
    fn waits_are_told_in_whole_minutes() {
        assert!(wait(Duration::from_secs(1)).ends_with("wait 1 minute"));
        assert!(wait(Duration::from_secs(61)).ends_with("wait 2 minutes"));
    }
}
