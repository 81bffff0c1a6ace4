//! IP address of the client behind a proxy. `X-Forwarded-For` is read only from proxies in `server.trusted_proxies`,
//! because any client can send that header.

use crate::server::Peer;
use abide_core::settings::value;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Parses the setting: addresses and networks, separated by commas.
pub(crate) fn networks(text: &str) -> Result<Arc<[IpNet]>, String> {
    let rule = "is not an IP address such as 10.0.0.1 or a network such as 10.0.0.0/8";
    value::list(text).map(|part| network(part).ok_or_else(|| format!("{part:?} {rule}"))).collect()
}

/// Reads an address such as `10.0.0.1` or a network such as `10.0.0.0/8`.
fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Replaces the address of a trusted proxy by the address of its client.
pub(crate) fn resolve(trusted: &[IpNet], request: &mut Request) {
    let Some(&Peer(peer)) = request.extensions().get::<Peer>() else { return };
    let client = client(trusted, peer, request.headers());
    request.extensions_mut().insert(Peer(client));
}

/// Reads the hops backwards; the first address that is not a trusted proxy is the client's.
fn client(trusted: &[IpNet], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let ours = |address: IpAddr| trusted.iter().any(|network| network.contains(&address.to_canonical()));
    let mut client = peer;
    let lines = headers.get_all(FORWARDED_FOR).iter().rev().filter_map(|line| line.to_str().ok());
    for hop in lines.flat_map(|line| line.rsplit(',')) {
        if !ours(client) {
            break;
        }
        // Trusted proxies write valid addresses, so an invalid hop and everything before it is forged.
        let Ok(address) = hop.trim().parse() else { break };
        client = address;
    }
    client
}

/// Address that the nearest proxy reports, trusted or not: `None` without the header, `Some(None)` if it is not an
/// address.
pub(crate) fn last_hop(headers: &HeaderMap) -> Option<Option<IpAddr>> {
    let line = headers.get_all(FORWARDED_FOR).iter().next_back()?;
    let last = line.to_str().ok().and_then(|line| line.rsplit(',').next());
    Some(last.and_then(|hop| hop.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn found(trusted: &[&str], peer: &str, lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|text| network(text).unwrap()).collect();
        let headers = lines.iter().map(|line| (FORWARDED_FOR, HeaderValue::from_str(line).unwrap())).collect();
        client(&trusted, peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_named_proxies_are_believed_and_only_as_far_as_they_saw() {
        assert_eq!(found(&[], "10.0.0.1", &["1.2.3.4"]), "10.0.0.1", "nobody is trusted by default");
        assert_eq!(found(&["10.0.0.1"], "10.0.0.1", &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(found(&["10.0.0.0/8"], "10.9.9.9", &["6.6.6.6, 1.2.3.4"]), "1.2.3.4", "the client's own words");
        assert_eq!(found(&["10.0.0.0/8"], "10.0.0.2", &["6.6.6.6, 1.2.3.4, 10.0.0.1"]), "1.2.3.4", "two proxies");
        assert_eq!(found(&["10.0.0.0/8"], "10.0.0.2", &["6.6.6.6", "1.2.3.4, 10.0.0.1"]), "1.2.3.4", "two lines");
        assert_eq!(found(&["10.0.0.1"], "1.1.1.1", &["1.2.3.4"]), "1.1.1.1", "someone else says so");
        assert_eq!(found(&["10.0.0.1"], "10.0.0.1", &["nonsense"]), "10.0.0.1");
        assert_eq!(found(&["10.0.0.1"], "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(found(&["fd00::/8"], "fd00::1", &["2001:db8::7"]), "2001:db8::7");
        assert_eq!(found(&["0.0.0.0/0"], "9.9.9.9", &["1.2.3.4"]), "1.2.3.4");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for bad in ["", "x", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/-1", "/8"] {
            assert_eq!(network(bad), None, "{bad}");
        }
    }
}
