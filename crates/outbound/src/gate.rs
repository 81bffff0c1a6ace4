//! The gate: decides which outbound connections are allowed, and to which addresses.

use crate::address::{Endpoint, Host, OutboundUrl};
use crate::guard::{self, Reason};
use crate::{AllowList, Resolver};
use abide_core::settings::duration;
use abide_core::settings::value::TICK;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// A webhook delivery must end well before its hold on the webhook does.
const LONGEST: Duration = Duration::from_secs(30);

abide_core::settings! {
    /// OutboundLimits of outbound requests.
    #[derive(Debug, Clone)]
    pub struct OutboundLimits in "outbound" {
        /// Timeout for DNS lookup and connection of outbound requests.
        connect as connect_timeout: Duration = "5s", duration(TICK..);
        /// Timeout for the response to an outbound request.
        total as timeout: Duration = "10s", duration(TICK..=LONGEST);
    }
    with {
        /// Bytes read of a response body.
        body: usize = 16 << 10;
        /// Concurrent exchanges of [`Gate::post`].
        at_once: usize = 256;
        /// Concurrent responses of [`Gate::open`]. Each may take minutes, so they leave the slots of webhooks alone.
        streams: usize = 64;
        /// Concurrent WebSockets. They stay open for days.
        sockets: usize = 256;
    }
}

/// Failure of an outbound request.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The guard refuses an address of the host.
    #[error("{ip} is {reason}; ask the administrator to add {host} to outbound.allow")]
    Refused { host: String, ip: IpAddr, reason: Reason },
    /// The name look-up failed.
    #[error("DNS lookup of {host} failed: {reason}")]
    Lookup { host: String, reason: String },
    /// The TCP connection failed.
    #[error("cannot connect to {host}: {error}")]
    Connect {
        host: String,
        /// The last error of all addresses.
        error: io::Error,
    },
    /// The TLS handshake failed.
    #[error("TLS handshake with {host} failed: {error}")]
    Tls { host: String, error: io::Error },
    /// The HTTP exchange failed.
    #[error("{0}")]
    Http(String),
    /// All slots were taken for as long as the request could wait.
    #[error("too many outbound requests are running; try again later")]
    Crowded,
    #[error("no response within {0:?}")]
    TimedOut(Duration),
}

impl GateError {
    /// Whether the user who entered the URL may learn only that nothing was sent. A name that does not exist and one
    /// that resolves to an internal address must be indistinguishable.
    pub fn hides_the_host(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Lookup { .. })
    }

    /// Message for the user who entered the URL. It reveals no internal names or addresses, and is the same for a name
    /// that does not exist and one that resolves to an internal address.
    pub fn public_message(&self) -> String {
        match self {
            _ if self.hides_the_host() => {
                "the host has no public IP address; check its name, or ask the administrator to add it to \
                outbound.allow"
                    .into()
            }
            Self::Connect { error, .. } => format!("cannot connect: {}", error.kind()),
            Self::Tls { .. } => "TLS handshake failed: check the certificate".into(),
            Self::Http(_) => "the response was cut off or is not HTTP".into(),
            _ => self.to_string(),
        }
    }
}

/// A host with its checked addresses.
#[derive(Debug, Clone)]
pub struct Vetted {
    host: String,
    addrs: Vec<SocketAddr>,
}

impl Vetted {
    /// Host name or address, as text.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The checked socket addresses.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }
}

/// The only way to make outbound connections. Clones share one gate.
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

struct Inner {
    allow: AllowList,
    resolver: Box<dyn Resolver>,
    limits: OutboundLimits,
    exchanges: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    sockets: Arc<Semaphore>,
    tls: TlsConnector,
}

/// Kinds of connections that have slots of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slots {
    Exchanges,
    Streams,
    Sockets,
}

impl Gate {
    /// A gate to public addresses, with the operator's exceptions.
    pub fn new(allow: AllowList, resolver: impl Resolver, limits: OutboundLimits) -> Self {
        let slots = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        let (exchanges, streams, sockets) = (slots(limits.at_once), slots(limits.streams), slots(limits.sockets));
        let resolver = Box::new(resolver);
        Self { inner: Arc::new(Inner { allow, resolver, limits, exchanges, streams, sockets, tls: tls() }) }
    }

    /// OutboundLimits of outbound requests.
    pub fn limits(&self) -> &OutboundLimits {
        &self.inner.limits
    }

    /// Takes a slot. Waits at most as long as an exchange may take.
    pub(crate) async fn slot(&self, of: Slots) -> Result<OwnedSemaphorePermit, GateError> {
        let slots = match of {
            Slots::Exchanges => &self.inner.exchanges,
            Slots::Streams => &self.inner.streams,
            Slots::Sockets => &self.inner.sockets,
        };
        let slot = timeout(self.inner.limits.total, slots.clone().acquire_owned()).await;
        Ok(slot.map_err(|_| GateError::Crowded)?.expect("these semaphores are never closed"))
    }

    pub(crate) fn tls(&self) -> &TlsConnector {
        &self.inner.tls
    }

    /// Checks a URL without a look-up, when a user enters it. Passing is no guarantee: [`Gate::vet`] decides at send
    /// time.
    pub fn screen(&self, address: &OutboundUrl) -> Result<(), GateError> {
        let host = address.host();
        match host {
            Host::Ip(ip) => self.judge(host, *ip),
            Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
                if self.inner.allow.names(host) {
                    Ok(())
                } else {
                    self.judge(host, LOOPBACK)
                }
            }
            Host::Name(_) => Ok(()),
        }
    }

    /// Looks a host up once, and refuses it if any of its addresses is refused.
    pub async fn vet(&self, endpoint: &Endpoint) -> Result<Vetted, GateError> {
        let Endpoint { host, port, .. } = endpoint;
        let ips = match host {
            Host::Ip(ip) => vec![*ip],
            Host::Name(name) => {
                let lookup = |reason| GateError::Lookup { host: name.clone(), reason };
                let found = timeout(self.inner.limits.connect, self.inner.resolver.resolve(name)).await;
                let found = found.map_err(|_| lookup("timed out".into()))?;
                let ips = found.map_err(|error| lookup(error.to_string()))?;
                if ips.is_empty() {
                    return Err(lookup("no IP address found".into()));
                }
                ips
            }
        };
        if !self.inner.allow.names(host) {
            for ip in &ips {
                self.judge(host, *ip)?;
            }
        }
        let addrs = ips.into_iter().map(|ip| SocketAddr::new(ip, *port)).collect();
        Ok(Vetted { host: host.to_string(), addrs })
    }

    /// Connects to the checked addresses only.
    #[expect(clippy::disallowed_methods, reason = "this is what everything else connects with")]
    pub async fn connect(&self, vetted: &Vetted) -> Result<TcpStream, GateError> {
        let failed = |error| GateError::Connect { host: vetted.host.clone(), error };
        match timeout(self.inner.limits.connect, TcpStream::connect(vetted.addrs())).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
        }
    }

    fn judge(&self, host: &Host, ip: IpAddr) -> Result<(), GateError> {
        match guard::refused(ip) {
            Some(reason) if !self.inner.allow.holds(ip) => {
                Err(GateError::Refused { host: host.to_string(), ip, reason })
            }
            _ => Ok(()),
        }
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn tls() -> TlsConnector {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}
