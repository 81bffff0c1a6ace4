//! The operator's exceptions to the guard.

use crate::address::Host;
use crate::guard;
use ipnet::IpNet;
use std::net::IpAddr;
use std::str::FromStr;

/// Host names and networks. A listed name is allowed whatever addresses it has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    names: Vec<String>,
    nets: Vec<IpNet>,
}

/// An entry that is neither a host name nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host name, an IP address or a network such as 10.0.0.0/8")]
pub struct AllowError(String);

impl AllowList {
    /// Parses the entries.
    pub fn parse<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, AllowError> {
        let mut list = Self::default();
        for entry in entries {
            let entry = entry.as_ref().trim();
            if let Ok(net) = IpNet::from_str(entry) {
                list.nets.push(net.trunc());
            } else if let Ok(ip) = entry.trim_matches(['[', ']']).parse() {
                list.nets.push(guard::alone(ip));
            } else if is_name(entry) {
                list.names.push(entry.trim_end_matches('.').to_ascii_lowercase());
            } else {
                return Err(AllowError(entry.to_owned()));
            }
        }
        Ok(list)
    }

    /// Parses the setting: entries separated by commas.
    pub fn setting(text: &str) -> Result<Self, String> {
        Self::parse(abide_core::settings::value::list(text)).map_err(|error| error.to_string())
    }

    /// Whether the operator listed this host name.
    pub fn names(&self, host: &Host) -> bool {
        matches!(host, Host::Name(name) if self.names.contains(name))
    }

    /// Whether an address is in a listed network.
    pub fn holds(&self, ip: IpAddr) -> bool {
        let ip = guard::unwrapped(ip);
        self.nets.iter().any(|net| net.contains(&ip))
    }
}

fn is_name(text: &str) -> bool {
    // An entry with a slash, or with only digits and dots, was meant as a network.
    let letters = text.bytes().any(|b| b.is_ascii_alphabetic());
    letters && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_nets_are_told_apart() {
        let list = AllowList::parse(["CI.internal.", "10.1.2.3/8", "::1", " 192.168.7.7 "]).unwrap();
        assert!(list.names(&Host::Name("ci.internal".into())));
        assert!(!list.names(&Host::Name("x.ci.internal".into())));
        for (ip, held) in [
            ("10.200.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("::1", true),
            ("192.168.7.7", true),
            ("192.168.7.8", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(list.holds(ip.parse().unwrap()), held, "{ip}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for bad in ["", "10.0.0.0/33", "1.2.3", "http://x", "a b", "*"] {
            assert_eq!(AllowList::parse([bad]), Err(AllowError(bad.to_owned())), "{bad}");
        }
    }
}
