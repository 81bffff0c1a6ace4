//! Operator settings of the SSH server.

use crate::SshError;
use std::path::PathBuf;
use std::time::Duration;

/// Upper bound for `max_channels`.
const MOST_CHANNELS: usize = 64;

/// The SSH server's limits.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the host key; created on first start.
    pub host_key: PathBuf,
    /// Concurrent connections. Further ones are closed on arrival.
    pub max_connections: usize,
    /// Concurrent connections per address (IPv6: per /64 network). Further ones are closed on arrival.
    pub per_ip: usize,
    /// New connections per minute and address (IPv6: /64 network). Further ones are closed on arrival.
    pub per_minute: usize,
    /// Time from connecting to a proved key.
    pub handshake_timeout: Duration,
    /// Time that a connection may stay open without a running command.
    pub idle_timeout: Duration,
    /// Concurrent commands per connection.
    pub max_channels: usize,
}

impl Options {
    /// Default options.
    pub fn new(host_key: impl Into<PathBuf>) -> Self {
        Self {
            host_key: host_key.into(),
            max_connections: 512,
            per_ip: 32,
            per_minute: 600,
            handshake_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(300),
            max_channels: 8,
        }
    }

    /// Checks the ranges of all options.
    pub(crate) fn check(&self) -> Result<(), SshError> {
        let rules = [
            (self.max_connections == 0, "max_connections: must be at least 1".to_owned()),
            (self.per_ip == 0, "per_ip: must be at least 1".to_owned()),
            (self.per_minute == 0, "per_minute: must be at least 1".to_owned()),
            (
                self.handshake_timeout < Duration::from_secs(1),
                "handshake_timeout: must be at least one second".to_owned(),
            ),
            (self.idle_timeout < Duration::from_secs(1), "idle_timeout: must be at least one second".to_owned()),
            (
                self.max_channels == 0 || self.max_channels > MOST_CHANNELS,
                format!("max_channels: must be between 1 and {MOST_CHANNELS}"),
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, rule)) => Err(SshError::Option(format!("ssh.{rule}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new("key");
        change(&mut options);
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_fine_and_so_are_the_bounds() {
        Options::new("key").check().unwrap();
        let second = Duration::from_secs(1);
        let least = Options {
            max_connections: 1,
            per_ip: 1,
            per_minute: 1,
            handshake_timeout: second,
            idle_timeout: second,
            max_channels: 1,
            ..Options::new("key")
        };
        least.check().unwrap();
        Options { max_channels: MOST_CHANNELS, ..least }.check().unwrap();
    }

    #[test]
    fn an_option_out_of_bounds_is_named() {
        assert!(refusal(|options| options.max_connections = 0).contains("ssh.max_connections"));
        assert!(refusal(|options| options.per_ip = 0).contains("ssh.per_ip"));
        assert!(refusal(|options| options.handshake_timeout = Duration::ZERO).contains("ssh.handshake_timeout"));
        assert!(refusal(|options| options.idle_timeout = Duration::from_millis(999)).contains("ssh.idle_timeout"));
        assert!(refusal(|options| options.max_channels = 0).contains("ssh.max_channels"));
        assert!(refusal(|options| options.max_channels = 65).contains("ssh.max_channels"));
    }
}
