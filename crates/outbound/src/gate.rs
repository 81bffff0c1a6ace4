//! The gate itself: who is let through, and to where exactly.

use crate::address::{Address, Host};
use crate::guard::{self, Reason};
use crate::{AllowList, Resolver};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// How much going out may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until all is said, from the first look-up on.
    pub total: Duration,
    /// Bytes of an answer that are read.
    pub body: usize,
    /// Conversations at once.
    pub at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), total: Duration::from_secs(10), body: 16 << 10, at_once: 256 }
    }
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The guard says no.
    #[error("{ip} is {reason}; ask the administrator to add {host} to outbound.allow")]
    Refused {
        /// What was asked for.
        host: String,
        /// What it leads to.
        ip: IpAddr,
        /// Why that is refused.
        reason: Reason,
    },
    /// The name leads nowhere.
    #[error("DNS lookup of {host} failed: {reason}")]
    Lookup {
        /// What was asked for.
        host: String,
        /// Why.
        reason: String,
    },
    /// Nobody answers there.
    #[error("cannot connect to {host}: {error}")]
    Connect {
        /// Who was called.
        host: String,
        /// The last of the errors.
        error: io::Error,
    },
    /// They are not who they should be, or do not speak TLS.
    #[error("TLS handshake with {host} failed: {error}")]
    Tls {
        /// Who was called.
        host: String,
        /// What went wrong.
        error: io::Error,
    },
    /// The conversation broke off.
    #[error("{0}")]
    Http(String),
    /// So many conversations are under way that this one never began.
    #[error("too many outbound requests are running; the limit is outbound.at_once")]
    Crowded,
    /// It took too long.
    #[error("no response within {0:?}")]
    TimedOut(Duration),
}

impl GateError {
    /// Whether whoever gave the address must not learn more than that nothing was sent: a name that is not there and one
    /// that leads inside have to look alike in every way.
    pub fn hides_the_host(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Lookup { .. })
    }

    /// What whoever gave the address may be told: nothing about names and addresses inside the operator's network, and
    /// the same for a name that is not there and one that leads inside.
    pub fn told(&self) -> String {
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

/// A host that was looked up and may be talked to, at exactly these addresses.
#[derive(Debug, Clone)]
pub struct Vetted {
    host: String,
    addrs: Vec<SocketAddr>,
}

impl Vetted {
    /// What it is called.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where it is.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }
}

/// The only way out. Clones share it.
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

struct Inner {
    allow: AllowList,
    resolver: Box<dyn Resolver>,
    limits: Limits,
    turns: Semaphore,
    tls: TlsConnector,
}

impl Gate {
    /// A gate for the internet, with the exceptions that the operator makes.
    pub fn new(allow: AllowList, resolver: impl Resolver, limits: Limits) -> Self {
        let turns = Semaphore::new(limits.at_once.clamp(1, Semaphore::MAX_PERMITS));
        Self { inner: Arc::new(Inner { allow, resolver: Box::new(resolver), limits, turns, tls: tls() }) }
    }

    /// What going out may take.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn turns(&self) -> &Semaphore {
        &self.inner.turns
    }

    pub(crate) fn tls(&self) -> &TlsConnector {
        &self.inner.tls
    }

    /// What can be said about an address without looking anything up, for the moment when someone types it. Passing
    /// here is no promise: [`Gate::vet`] decides when something is sent.
    pub fn screen(&self, address: &Address) -> Result<(), GateError> {
        match address.host() {
            Host::Ip(ip) => self.judge(address, *ip),
            Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
                if self.inner.allow.names(address.host()) { Ok(()) } else { self.judge(address, LOOPBACK) }
            }
            Host::Name(_) => Ok(()),
        }
    }

    /// Looks a host up, once, and refuses it if any of its addresses is refused.
    pub async fn vet(&self, address: &Address) -> Result<Vetted, GateError> {
        let ips = match address.host() {
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
        if !self.inner.allow.names(address.host()) {
            for ip in &ips {
                self.judge(address, *ip)?;
            }
        }
        let addrs = ips.into_iter().map(|ip| SocketAddr::new(ip, address.port())).collect();
        Ok(Vetted { host: address.host().to_string(), addrs })
    }

    /// Connects to what was looked at, and to nothing else.
    #[expect(clippy::disallowed_methods, reason = "this is what everything else connects with")]
    pub async fn connect(&self, vetted: &Vetted) -> Result<TcpStream, GateError> {
        let failed = |error| GateError::Connect { host: vetted.host.clone(), error };
        match timeout(self.inner.limits.connect, TcpStream::connect(vetted.addrs())).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
        }
    }

    fn judge(&self, address: &Address, ip: IpAddr) -> Result<(), GateError> {
        match guard::refused(ip) {
            Some(reason) if !self.inner.allow.holds(ip) => {
                Err(GateError::Refused { host: address.host().to_string(), ip, reason })
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
