//! The URL of a relay: `ws` or `wss`, in one spelling per relay.

use crate::address::{AddressError, Endpoint, MAX_LEN, Scheme};
use std::fmt;
use std::str::FromStr;

/// A relay. Its text is normal: the same relay is the same text, and equal URLs are the same relay.
///
/// The host is in lower case and has no trailing dot, the port is there only if it is not the default, and the path has
/// no slash at its end, because relays are announced with and without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelayUrl {
    text: String,
    endpoint: Endpoint,
}

impl RelayUrl {
    /// The normal text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Server and path of the relay.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl FromStr for RelayUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (mut endpoint, url) = Endpoint::parse(text, ["ws", "wss"], AddressError::RelayScheme)?;
        let scheme = match endpoint.scheme {
            Scheme::Http => "ws",
            Scheme::Https => "wss",
        };
        let path = match url.path().trim_end_matches('/') {
            "" => "/",
            path => path,
        };
        endpoint.target = match url.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        let target = if endpoint.target == "/" { "" } else { &endpoint.target };
        let text = format!("{scheme}://{}{target}", endpoint.authority());
        // The normal text may be longer: other characters than ASCII are encoded.
        if text.len() > MAX_LEN {
            return Err(AddressError::TooLong);
        }
        Ok(Self { text, endpoint })
    }
}

impl fmt::Display for RelayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use proptest::prelude::*;

    fn error(text: &str) -> AddressError {
        text.parse::<RelayUrl>().expect_err(text)
    }

    #[test]
    fn every_spelling_of_a_relay_is_one_text() {
        for (normal, spellings) in [
            (
                "wss://relay.example",
                &[
                    "wss://relay.example/",
                    "WSS://Relay.Example:443",
                    "wss://relay.example.//",
                    "wss://relay.example/#x",
                ][..],
            ),
            ("ws://relay.example", &["ws://relay.example:80/", "ws://RELAY.example"]),
            ("wss://relay.example:80", &["wss://relay.example:80/"]),
            ("wss://relay.example/npub", &["wss://relay.example/npub/", "wss://relay.example/a/../npub//"]),
            ("wss://relay.example/?a=1", &["wss://relay.example?a=1", "wss://relay.example:443//?a=1"]),
            ("wss://relay.example/a?b", &["wss://relay.example/a/?b"]),
            ("ws://127.0.0.1:7777", &["ws://0x7f.1:7777/", "ws://127.0.0.1.:7777"]),
            ("ws://[::1]:7777", &["ws://[0:0:0:0:0:0:0:1]:7777/"]),
        ] {
            for text in spellings.iter().chain([&normal]) {
                assert_eq!(text.parse::<RelayUrl>().unwrap().as_str(), normal, "{text}");
            }
        }
    }

    #[test]
    fn a_relay_has_the_server_of_its_url() {
        let relay: RelayUrl = "wss://Relay.example/npub/?x".parse().unwrap();
        let Endpoint { scheme, host, port, target } = relay.endpoint();
        assert_eq!((scheme, host, port), (&Scheme::Https, &Host::Name("relay.example".into()), &443));
        assert_eq!(target, "/npub?x");
        assert_eq!("ws://h".parse::<RelayUrl>().unwrap().endpoint().target, "/");
    }

    #[test]
    fn other_urls_are_refused_with_their_reason() {
        for text in ["https://relay.example", "http://relay.example", "ftp://relay.example", "data:,x"] {
            assert_eq!(error(text), AddressError::RelayScheme, "{text}");
        }
        assert_eq!(error("wss://user:word@relay.example"), AddressError::Credentials);
        assert_eq!(error("wss://relay.example/\r\nHost: x"), AddressError::Characters);
        assert_eq!(error(&format!("wss://relay.example/{}", "ü".repeat(MAX_LEN / 4))), AddressError::TooLong);
        for text in ["", "relay.example", "wss://", "wss://a..b", "ws://x:0/"] {
            assert!(matches!(error(text), AddressError::Unreadable(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_text_is_its_own_normal_text(text in "wss?://[ -~]{0,60}") {
            if let Ok(relay) = text.parse::<RelayUrl>() {
                prop_assert_eq!(relay.as_str().parse::<RelayUrl>(), Ok(relay.clone()));
                prop_assert!(!relay.as_str().ends_with('/') || relay.as_str().contains('?'));
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = text.parse::<RelayUrl>();
        }
    }
}
