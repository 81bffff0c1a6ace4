//! IP addresses that the server never contacts on a user's behalf: everything but public hosts.
//!
//! One table with a reason per prefix. Addresses that embed another one (IPv4 in IPv6, relays, translators) are judged
//! by the embedded address, because that is where the packets go.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reason for refusing an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// "Any address"; reaches this machine.
    Unspecified,
    Loopback,
    Private,
    /// The local link, where cloud metadata services hand out credentials.
    LinkLocal,
    /// Shared between a provider's customers (CGNAT).
    CarrierGrade,
    /// A cloud metadata service.
    Metadata,
    Multicast,
    Documentation,
    Benchmarking,
    /// Reserved for protocols or unassigned.
    Reserved,
    /// Translated to IPv4 by rules of the local network.
    Translation,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "the unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::CarrierGrade => "a carrier-grade NAT address",
            Self::Metadata => "a cloud metadata service",
            Self::Multicast => "a multicast address",
            Self::Documentation => "reserved for documentation",
            Self::Benchmarking => "reserved for benchmarks",
            Self::Reserved => "a reserved address",
            Self::Translation => "translated by the local network (NAT64)",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, len: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), len)
}

const fn v6(a: u16, b: u16, c: u16, len: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), len)
}

/// Refused IPv4 prefixes.
pub const V4: &[(Ipv4Net, Reason)] = &[
    (v4(0, 0, 0, 0, 8), Reason::Unspecified),
    (v4(10, 0, 0, 0, 8), Reason::Private),
    (v4(100, 64, 0, 0, 10), Reason::CarrierGrade),
    (v4(127, 0, 0, 0, 8), Reason::Loopback),
    // Azure's metadata service, reachable from every virtual machine.
    (v4(168, 63, 129, 16, 32), Reason::Metadata),
    (v4(169, 254, 0, 0, 16), Reason::LinkLocal),
    (v4(172, 16, 0, 0, 12), Reason::Private),
    (v4(192, 0, 0, 0, 24), Reason::Reserved),
    (v4(192, 0, 2, 0, 24), Reason::Documentation),
    (v4(192, 88, 99, 0, 24), Reason::Reserved),
    (v4(192, 168, 0, 0, 16), Reason::Private),
    (v4(198, 18, 0, 0, 15), Reason::Benchmarking),
    (v4(198, 51, 100, 0, 24), Reason::Documentation),
    (v4(203, 0, 113, 0, 24), Reason::Documentation),
    (v4(224, 0, 0, 0, 4), Reason::Multicast),
    (v4(240, 0, 0, 0, 4), Reason::Reserved),
];

/// Refused IPv6 prefixes with a specific reason. Everything outside [`GLOBAL`] is refused too.
pub const V6: &[(Ipv6Net, Reason)] = &[
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), Reason::Unspecified),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), Reason::Loopback),
    // NAT64 with a locally chosen prefix: only the local network knows the target.
    (v6(0x64, 0xff9b, 1, 48), Reason::Translation),
    (v6(0x100, 0, 0, 64), Reason::Reserved),
    // Protocol assignments such as benchmarks and ORCHIDs. Teredo addresses are handled before.
    (v6(0x2001, 2, 0, 48), Reason::Benchmarking),
    (v6(0x2001, 0, 0, 23), Reason::Reserved),
    (v6(0x2001, 0xdb8, 0, 32), Reason::Documentation),
    (v6(0x3fff, 0, 0, 20), Reason::Documentation),
    (v6(0xfc00, 0, 0, 7), Reason::Private),
    (v6(0xfe80, 0, 0, 10), Reason::LinkLocal),
    (v6(0xfec0, 0, 0, 10), Reason::Private),
    (v6(0xff00, 0, 0, 8), Reason::Multicast),
];

/// Global unicast space of IPv6. Outside it, only addresses that embed an IPv4 address are allowed.
pub const GLOBAL: Ipv6Net = v6(0x2000, 0, 0, 3);

const MAPPED: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);
const TEREDO: Ipv6Net = v6(0x2001, 0, 0, 32);

/// Reason for refusing an address; `None` for a public host.
pub fn refused(ip: IpAddr) -> Option<Reason> {
    match ip {
        IpAddr::V4(ip) => refused_v4(ip),
        IpAddr::V6(ip) => refused_v6(ip),
    }
}

fn refused_v4(ip: Ipv4Addr) -> Option<Reason> {
    V4.iter().find(|(net, _)| net.contains(&ip)).map(|(_, reason)| *reason)
}

fn refused_v6(ip: Ipv6Addr) -> Option<Reason> {
    let inside = carried(ip);
    if let Some(reason) = inside.iter().flatten().find_map(|ip| refused_v4(*ip)) {
        return Some(reason);
    }
    let carries = inside.iter().any(Option::is_some);
    let listed = V6.iter().find(|(net, _)| net.contains(&ip)).map(|(_, reason)| *reason);
    match listed {
        _ if carries => None,
        None if !GLOBAL.contains(&ip) => Some(Reason::Reserved),
        listed => listed,
    }
}

/// IPv4 addresses that packets to an IPv6 address reach or pass through.
fn carried(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let [_, six_b, six_c, _, _, _, high, low] = ip.segments();
    let join = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    if MAPPED.contains(&ip) || NAT64.contains(&ip) {
        return [join(high, low), None];
    }
    if SIX_TO_FOUR.contains(&ip) {
        return [join(six_b, six_c), None];
    }
    if TEREDO.contains(&ip) {
        let [_, _, server_high, server_low, ..] = ip.segments();
        // Teredo stores the client address bit-inverted.
        return [join(server_high, server_low), join(!high, !low)];
    }
    [None, None]
}

/// A network of one address.
pub(crate) fn alone(ip: IpAddr) -> IpNet {
    IpNet::from(ip)
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
pub(crate) fn unwrapped(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Option<Reason> {
        refused(text.parse().expect(text))
    }

    #[test]
    fn public_hosts_pass() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            // Teredo with a public server and a public client.
            "2001:0:808:808:0:0:f7f7:f7f7",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_for_its_reason() {
        for (text, reason) in [
            ("0.0.0.0", Reason::Unspecified),
            ("0.1.2.3", Reason::Unspecified),
            ("10.255.0.1", Reason::Private),
            ("100.100.100.200", Reason::CarrierGrade),
            ("127.0.0.1", Reason::Loopback),
            ("127.255.255.254", Reason::Loopback),
            ("168.63.129.16", Reason::Metadata),
            ("169.254.169.254", Reason::LinkLocal),
            ("172.31.255.255", Reason::Private),
            ("192.0.0.192", Reason::Reserved),
            ("192.168.1.1", Reason::Private),
            ("198.19.255.255", Reason::Benchmarking),
            ("203.0.113.7", Reason::Documentation),
            ("239.1.1.1", Reason::Multicast),
            ("255.255.255.255", Reason::Reserved),
            ("::", Reason::Unspecified),
            ("::1", Reason::Loopback),
            ("::127.0.0.1", Reason::Reserved),
            ("::ffff:0:127.0.0.1", Reason::Reserved),
            ("::ffff:127.0.0.1", Reason::Loopback),
            ("::ffff:169.254.169.254", Reason::LinkLocal),
            ("64:ff9b::a00:1", Reason::Private),
            ("64:ff9b:1::808:808", Reason::Translation),
            ("100::1", Reason::Reserved),
            ("2001:2::1", Reason::Benchmarking),
            ("2001:20::1", Reason::Reserved),
            ("2001:db8::1", Reason::Documentation),
            ("2002:7f00:1::", Reason::Loopback),
            ("2002:a9fe:a9fe::1", Reason::LinkLocal),
            // Teredo with a private client, and with a private server.
            ("2001:0:808:808:0:0:f5ff:fffe", Reason::Private),
            ("2001:0:a00:1:0:0:f7f7:f7f7", Reason::Private),
            ("3fff::1", Reason::Documentation),
            ("4000::1", Reason::Reserved),
            ("5f00::1", Reason::Reserved),
            ("fc00::1", Reason::Private),
            ("fd00:ec2::254", Reason::Private),
            ("fe80::1", Reason::LinkLocal),
            ("fec0::1", Reason::Private),
            ("ff02::1", Reason::Multicast),
        ] {
            assert_eq!(at(text), Some(reason), "{text}");
        }
    }

    #[test]
    fn both_ends_of_every_prefix_are_refused() {
        for (net, _) in V4 {
            assert!(refused(net.network().into()).is_some() && refused(net.broadcast().into()).is_some(), "{net}");
        }
        for (net, _) in V6 {
            assert!(refused(net.broadcast().into()).is_some(), "{net}");
        }
    }

    proptest! {
        #[test]
        fn what_carries_an_address_is_judged_like_it(bits: u32, rest: u64) {
            let (inner, direct) = (Ipv4Addr::from(bits), refused(Ipv4Addr::from(bits).into()));
            let [a, b, c, d] = inner.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let rest = rest.to_be_bytes();
            let tail = |i: usize| u16::from_be_bytes([rest[i], rest[i + 1]]);
            for ip in [
                inner.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, tail(0), tail(2), tail(4), tail(6), 1),
                Ipv6Addr::new(0x2001, 0, 0x808, 0x808, tail(0), tail(2), !high, !low),
                Ipv6Addr::new(0x2001, 0, high, low, tail(0), tail(2), 0xf7f7, 0xf7f7),
            ] {
                prop_assert_eq!(refused(ip.into()), direct, "{} in {}", inner, ip);
            }
        }

        #[test]
        fn what_the_language_knows_to_be_local_is_refused(bits: u32, wide: u128) {
            let ip = Ipv4Addr::from(bits);
            let local = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_multicast()
                || ip.is_broadcast() || ip.is_documentation() || ip.is_unspecified();
            prop_assert!(!local || refused(ip.into()).is_some(), "{}", ip);
            let ip = Ipv6Addr::from(wide);
            let local = ip.is_loopback() || ip.is_multicast() || ip.is_unspecified() || ip.is_unique_local()
                || ip.is_unicast_link_local();
            prop_assert!(!local || refused(ip.into()).is_some(), "{}", ip);
        }
    }
}
