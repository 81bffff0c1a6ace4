//! Connections to checked addresses, in TLS where the URL asks for it.

use crate::address::{Endpoint, Host, Scheme};
use crate::{Gate, GateError};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;

/// An open connection. It holds a slot of the gate until it is dropped.
pub struct Connection {
    io: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    peer: IpAddr,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
    /// Address of the server.
    pub fn peer(&self) -> IpAddr {
        self.peer
    }
}

impl Gate {
    /// Connects to a server after checking its addresses.
    pub(crate) async fn dial(&self, endpoint: &Endpoint, slot: OwnedSemaphorePermit) -> Result<Connection, GateError> {
        let vetted = self.vet(endpoint).await?;
        let stream = self.connect(&vetted).await?;
        let connect = |error| GateError::Connect { host: vetted.host().to_owned(), error };
        let peer = stream.peer_addr().map_err(connect)?.ip();
        // A request is written at once, so waiting to fill a packet gains nothing.
        let _ = stream.set_nodelay(true);
        let io = match endpoint.scheme {
            Scheme::Http => Either::Left(stream),
            Scheme::Https => {
                let tls = |error| GateError::Tls { host: vetted.host().to_owned(), error };
                let name = server_name(&endpoint.host).map_err(tls)?;
                Either::Right(Box::new(self.tls().connect(name, stream).await.map_err(tls)?))
            }
        };
        Ok(Connection { io, peer, _slot: slot })
    }
}

fn server_name(host: &Host) -> io::Result<ServerName<'static>> {
    match host {
        Host::Ip(ip) => Ok(ServerName::from(*ip)),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other),
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, out)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}
