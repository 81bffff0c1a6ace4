//! A URL entered by a user: `http` or `https`, a host and a port. `relay.rs` has the same for relays.
//!
//! Parsed by the rules of browsers. Odd spellings of an IP address (`0x7f.1`, `2130706433`, `0177.0.0.1`, full-width
//! digits) become that address before the guard checks it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use url::Url;

/// Longest accepted URL.
pub const MAX_LEN: usize = 2048;

/// Reason why a text is no valid target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a URL.
    #[error("is not a URL: {0}")]
    Unreadable(String),
    /// Another scheme than http or https.
    #[error("must start with http:// or https://")]
    Scheme,
    /// Another scheme than ws or wss.
    #[error("must start with ws:// or wss://")]
    RelayScheme,
    /// A user name or password before the host.
    #[error("must not contain a user name or password")]
    Credentials,
    #[error("must have at most {MAX_LEN} characters")]
    TooLong,
    /// Line breaks and similar characters, which the URL parser would drop silently.
    #[error("must not contain spaces or control characters")]
    Characters,
}

/// Scheme of a URL. `ws` and `wss` begin as requests of HTTP, so they count as these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    Http,
    Https,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name to look up: lower case, without a trailing dot.
    Name(String),
    /// An IP address, in any spelling.
    Ip(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

/// Server and path of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) target: String,
}

impl Endpoint {
    /// Value of the `Host` header: with the port only if it is not the default.
    pub(crate) fn authority(&self) -> String {
        match (self.scheme, self.port) {
            (Scheme::Http, 80) | (Scheme::Https, 443) => self.host.to_string(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// Parses a URL with one of these schemes: the plain one, and the one with TLS. Removes its fragment.
    pub(crate) fn parse(text: &str, schemes: [&str; 2], other: AddressError) -> Result<(Self, Url), AddressError> {
        check_text(text)?;
        let mut url = Url::parse(text).map_err(|error| AddressError::Unreadable(error.to_string()))?;
        let scheme = match url.scheme() {
            found if found == schemes[0] => Scheme::Http,
            found if found == schemes[1] => Scheme::Https,
            _ => return Err(other),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Credentials);
        }
        url.set_fragment(None);
        let host = match url.host() {
            Some(url::Host::Domain(name)) => name_of(name)?,
            Some(url::Host::Ipv4(ip)) => Host::Ip(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::Ip(ip.into()),
            None => return Err(AddressError::Unreadable("it has no host".into())),
        };
        let port = url.port_or_known_default().expect("the four schemes have default ports");
        if port == 0 {
            return Err(AddressError::Unreadable("port 0 is not valid".into()));
        }
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok((Self { scheme, host, port, target }, url))
    }
}

/// Target of an outbound request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundUrl {
    endpoint: Endpoint,
    text: String,
}

impl OutboundUrl {
    /// Server and path of the URL.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Scheme of the URL.
    pub fn scheme(&self) -> Scheme {
        self.endpoint.scheme
    }

    /// Host of the URL.
    pub fn host(&self) -> &Host {
        &self.endpoint.host
    }

    /// Port, explicit or the scheme's default.
    pub fn port(&self) -> u16 {
        self.endpoint.port
    }

    /// Path and query, as in the request line.
    pub fn target(&self) -> &str {
        &self.endpoint.target
    }

    /// The URL as text, without a fragment.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Value of the `Host` header: with the port only if it is not the default.
    pub fn authority(&self) -> String {
        self.endpoint.authority()
    }

    /// Target of a redirect from this URL: a `Location`, relative or absolute. The rules for a URL hold for it, too.
    pub fn join(&self, location: &str) -> Result<Self, AddressError> {
        check_text(location)?;
        let base = Url::parse(&self.text).expect("the text was parsed before");
        let joined = base.join(location).map_err(|error| AddressError::Unreadable(error.to_string()))?;
        joined.as_str().parse()
    }
}

impl FromStr for OutboundUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (endpoint, url) = Endpoint::parse(text, ["http", "https"], AddressError::Scheme)?;
        Ok(Self { endpoint, text: url.into() })
    }
}

fn check_text(text: &str) -> Result<(), AddressError> {
    if text.len() > MAX_LEN {
        return Err(AddressError::TooLong);
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(AddressError::Characters);
    }
    Ok(())
}

fn name_of(name: &str) -> Result<Host, AddressError> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.len() > 253 || name.split('.').any(str::is_empty) || !name.chars().all(plain) {
        return Err(AddressError::Unreadable("its host name is not valid".into()));
    }
    // Without the trailing dot, the name may be an IP address.
    Ok(match name.parse() {
        Ok(ip) => Host::Ip(ip),
        Err(_) => Host::Name(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard;
    use proptest::prelude::*;

    fn host(text: &str) -> Host {
        text.parse::<OutboundUrl>().expect(text).host().clone()
    }

    #[test]
    fn an_address_is_split_into_what_a_request_needs() {
        let address: OutboundUrl = "https://Example.COM:8443/in/a%20b?x=1#part".parse().unwrap();
        assert_eq!(address.scheme(), Scheme::Https);
        assert_eq!(address.host(), &Host::Name("example.com".into()));
        assert_eq!((address.port(), address.target()), (8443, "/in/a%20b?x=1"));
        assert_eq!(address.authority(), "example.com:8443");
        assert_eq!(address.as_str(), "https://example.com:8443/in/a%20b?x=1");
        assert_eq!("http://example.com".parse::<OutboundUrl>().unwrap().authority(), "example.com");
        assert_eq!("http://[2606:4700::1111]:81/".parse::<OutboundUrl>().unwrap().authority(), "[2606:4700::1111]:81");
    }

    #[test]
    fn every_spelling_of_an_internet_address_is_that_address() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7F.0.0.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://127.0x0.0.01/",
            "http://１２７.０.０.１/",
            "http://127。0。0。1/",
            "http://%31%32%37.0.0.1/",
            "http:127.0.0.1",
            "http:\\\\127.0.0.1\\x",
        ] {
            assert_eq!(host(text), Host::Ip("127.0.0.1".parse().unwrap()), "{text}");
        }
        for text in ["http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:7f00:0001]/"] {
            let Host::Ip(ip) = host(text) else { panic!("{text}") };
            assert_eq!(guard::refused(ip), Some(guard::Reason::Loopback), "{text}");
        }
        assert_eq!(host("http://localhost./"), Host::Name("localhost".into()));
        assert_eq!(host("http://LocalHost/"), Host::Name("localhost".into()));
    }

    #[test]
    fn what_is_no_address_to_send_to_is_refused_with_its_reason() {
        let error = |text: &str| text.parse::<OutboundUrl>().expect_err(text);
        for text in ["ftp://example.com/", "file:///etc/passwd", "gopher://x/", "javascript:alert(1)", "data:,x"] {
            assert_eq!(error(text), AddressError::Scheme, "{text}");
        }
        for text in ["http://user@example.com/", "https://a:b@example.com/", "http://127.0.0.1@example.com/"] {
            assert_eq!(error(text), AddressError::Credentials, "{text}");
        }
        for text in ["http://exam ple.com/", "http://example.com/\r\nHost: x", " http://example.com", "http://a\tb/"] {
            assert_eq!(error(text), AddressError::Characters, "{text}");
        }
        for text in
            ["", "example.com", "http://", "http://[fe80::1%25eth0]/", "http://[::1", "http://a..b/", "http://x:0/"]
        {
            assert!(matches!(error(text), AddressError::Unreadable(_)), "{text}: {:?}", error(text));
        }
        assert_eq!(error(&format!("http://example.com/{}", "x".repeat(MAX_LEN))), AddressError::TooLong);
    }

    #[test]
    fn a_redirect_is_judged_like_a_url() {
        let base: OutboundUrl = "https://example.com/a/b.git/info/refs?service=x".parse().unwrap();
        for (location, target) in [
            ("https://other.example/c", "https://other.example/c"),
            ("/c?y=1#z", "https://example.com/c?y=1"),
            ("../refs", "https://example.com/a/b.git/refs"),
            ("//other.example", "https://other.example/"),
            ("http://127.1/", "http://127.0.0.1/"),
        ] {
            assert_eq!(base.join(location).unwrap().as_str(), target, "{location}");
        }
        for (location, error) in [
            ("file:///etc/passwd", AddressError::Scheme),
            ("//user@other.example/", AddressError::Credentials),
            ("/a\r\nx: y", AddressError::Characters),
            (&"x".repeat(MAX_LEN), AddressError::TooLong),
        ] {
            assert_eq!(base.join(location), Err(error), "{location}");
        }
    }

    proptest! {
        #[test]
        fn what_was_read_reads_back_the_same(text in "https?://[ -~]{0,60}") {
            if let Ok(address) = text.parse::<OutboundUrl>() {
                prop_assert_eq!(address.as_str().parse::<OutboundUrl>().unwrap(), address);
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = text.parse::<OutboundUrl>();
        }
    }
}
