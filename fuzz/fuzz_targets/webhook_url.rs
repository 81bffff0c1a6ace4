//! The address of a webhook is http or https to a host that is what it looks like, or it is refused.
#![no_main]

use abide_outbound::{Host, OutboundUrl, guard};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(address) = text.parse::<OutboundUrl>() else { return };
    assert_eq!(address.as_str().parse::<OutboundUrl>().as_ref(), Ok(&address));
    assert!(address.port() != 0 && address.target().starts_with('/'));
    assert!(!address.target().bytes().any(|byte| byte.is_ascii_control() || byte == b' '));
    match address.host() {
        Host::Ip(ip) => drop(guard::refused(*ip)),
        // A name never is an internet address in disguise: the system would find the address without asking anyone.
        Host::Name(name) => {
            let last = name.rsplit('.').next().unwrap_or_default();
            let digits = last.strip_prefix("0x").map_or(last.bytes().all(|b| b.is_ascii_digit()), |rest| {
                rest.bytes().all(|b| b.is_ascii_hexdigit())
            });
            assert!(!digits, "{name}");
        }
    }
});
