//! Server addresses: host and port, compared exactly.

use std::fmt;
use url::{Host, Url};

/// Address of a server. Names match in full: `evil-example.org` and `example.org.evil` are other servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    host: Host<String>,
    port: u16,
}

/// The text is no server URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a URL must start with http://, https://, ws:// or wss:// and have a host")]
pub struct InvalidService;

impl Service {
    /// Server of a URL such as the configured `public_url`.
    pub fn parse(url: &str) -> Result<Self, InvalidService> {
        Self::of(url, &["http", "https", "ws", "wss"]).ok_or(InvalidService)
    }

    /// Server of an entry in a `clone` tag.
    pub fn of_clone(url: &str) -> Option<Self> {
        Self::of(url, &["http", "https"])
    }

    /// Server of an entry in a `relays` tag.
    pub fn of_relay(url: &str) -> Option<Self> {
        Self::of(url, &["ws", "wss"])
    }

    fn of(url: &str, schemes: &[&str]) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        // Credentials in a public URL are only there to mislead the reader.
        let plain = url.username().is_empty() && url.password().is_none();
        if !schemes.contains(&url.scheme()) || !plain {
            return None;
        }
        Some(Self { host: url.host()?.to_owned(), port: url.port_or_known_default()? })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_host_and_port_is_the_same_server() {
        let ours = Service::parse("https://git.example.org").unwrap();
        for clone in
            ["https://git.example.org/npub1x/a.git", "https://GIT.example.org:443/", "http://git.example.org:443/x"]
        {
            assert_eq!(Service::of_clone(clone), Some(ours.clone()), "{clone}");
        }
        for relay in ["wss://git.example.org", "wss://git.example.org/", "ws://git.example.org:443"] {
            assert_eq!(Service::of_relay(relay), Some(ours.clone()), "{relay}");
        }
    }

    #[test]
    fn what_only_looks_alike_is_another() {
        let ours = Some(Service::parse("https://git.example.org").unwrap());
        for clone in [
            "https://git.example.org.evil.net/a.git",
            "https://evil-git.example.org/a.git",
            "https://evil.net/git.example.org/a.git",
            "https://evil.net/?https://git.example.org",
            "https://git.example.org@evil.net/a.git",
            "https://x@git.example.org/a.git",
            "https://git.example.org:8443/a.git",
            "http://git.example.org/a.git",
            "https://example.org/a.git",
            "wss://git.example.org/",
            "ssh://git.example.org:443/a.git",
            "git@git.example.org:a.git",
            "git.example.org",
            "",
        ] {
            assert_ne!(Service::of_clone(clone), ours, "{clone}");
        }
        assert_ne!(Service::of_relay("https://git.example.org"), ours);
    }

    #[test]
    fn addresses_and_names_of_one_machine_are_different_servers() {
        let ours = Service::parse("http://127.0.0.1:17334").unwrap();
        assert_eq!(Service::of_clone("http://127.1:17334/x.git"), Some(ours.clone()), "one address, two spellings");
        assert_ne!(Service::of_clone("http://localhost:17334/x.git"), Some(ours));
        assert_eq!(Service::parse("ftp://x"), Err(InvalidService));
    }
}
