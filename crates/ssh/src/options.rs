//! Operator settings of the SSH server.

use abide_core::settings::value::SECOND;
use abide_core::settings::{count, duration};
use std::path::PathBuf;
use std::time::Duration;

abide_core::settings! {
    /// Limits of the SSH server. Connections beyond a limit are closed on arrival.
    #[derive(Debug, Clone)]
    pub struct Options in "ssh" {
        /// Maximum concurrent SSH connections.
        max_connections: usize = "500", count(1..);
        /// Maximum concurrent SSH connections per IP address (IPv6: per /64 network).
        per_ip: usize = "50", count(1..);
        /// New SSH connections per IP address (IPv6: per /64 network) per minute.
        per_minute: usize = "600", count(1..);
        /// Timeout for SSH authentication.
        handshake_timeout: Duration = "20s", duration(SECOND..);
        /// Idle timeout of an SSH connection.
        idle_timeout: Duration = "10m", duration(SECOND..);
    }
    with {
        /// Path of the host key; created on first start.
        host_key: PathBuf = PathBuf::new();
        /// Concurrent commands per connection.
        max_channels: usize = 8;
    }
}

impl Options {
    /// Default options.
    pub fn new(host_key: impl Into<PathBuf>) -> Self {
        Self { host_key: host_key.into(), ..Self::default() }
    }
}
