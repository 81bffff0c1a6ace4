//! The accept loop.

mod connection_slots;
mod paced;
mod reserve;

use crate::forwarded;
use crate::slow::Patient;
use abide_core::settings::value::TICK;
use abide_core::settings::{count, duration};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::{Extension, Router};
use connection_slots::{ConnectionSlots, Entry};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

pub(crate) use connection_slots::ConnectionSlot;

abide_core::settings! {
    /// Settings of the accept loop.
    #[derive(Debug, Clone)]
    pub struct Options in "server" {
        /// Proxies whose X-Forwarded-For is trusted: IP addresses or networks, e.g. 127.0.0.1,10.0.0.0/8.
        [Common] trusted_proxies: Arc<[IpNet]> = "", forwarded::networks;
        /// Clients that may read /metrics: IP addresses or networks.
        metrics_allow: Arc<[IpNet]> = "127.0.0.0/8,::1", forwarded::networks;
        /// Maximum concurrent HTTP connections. Beyond it, only /healthz, /readyz and /metrics are served.
        max_connections: usize = "2000", count(1..);
        /// Maximum concurrent HTTP connections per IP address (IPv6: per /64 network), or requests behind a trusted proxy.
        connections_per_ip: usize = "200", count(1..);
        /// Idle timeout while a request body is received.
        body_timeout: Duration = "60s", duration(TICK..);
        /// Timeout for request headers, and idle timeout of keep-alive connections.
        header_timeout: Duration = "30s", duration(TICK..);
        /// Timeout for a client that reads less than 1 KiB per second of its response.
        write_timeout: Duration = "60s", duration(TICK..);
    }
    with {
        /// Time that running requests have once the server stops.
        drain_timeout: Duration = Duration::from_secs(30);
    }
}

/// IP address of a client.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Networks whose clients may read the metrics.
#[derive(Debug, Clone)]
pub(crate) struct MetricsAllow(pub Arc<[IpNet]>);

/// Connections and relay sockets, which the shutdown waits for.
#[derive(Debug, Clone)]
pub(crate) struct Sockets(pub TaskTracker);

/// State that all connections share.
struct Server {
    router: Router,
    options: Options,
    connection_slots: ConnectionSlots,
    sockets: Sockets,
    stop: CancellationToken,
}

/// Serves until the shutdown signal, then waits for running requests.
pub async fn serve(listener: TcpListener, router: Router, options: Options, stop: CancellationToken) {
    let trusted = options.trusted_proxies.clone();
    let router = router.layer(Extension(MetricsAllow(options.metrics_allow.clone())));
    let server = Arc::new(Server {
        connection_slots: ConnectionSlots::new(options.max_connections, options.connections_per_ip, trusted),
        router,
        options,
        sockets: Sockets(TaskTracker::new()),
        stop,
    });
    loop {
        let accepted = tokio::select! {
            () = server.stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => server.admit(stream, address.ip()),
            Err(error) => {
                // Probably no file descriptor is free: pause until connections end.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    server.sockets.0.close();
    if tokio::time::timeout(server.options.drain_timeout, server.sockets.0.wait()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

impl Server {
    /// Admits or refuses a connection.
    fn admit(self: &Arc<Self>, stream: TcpStream, ip: IpAddr) {
        // Responses are written in few large chunks, so Nagle's algorithm only adds delay.
        let _ = stream.set_nodelay(true);
        match self.connection_slots.enter(ip) {
            Entry::Guest(held) => self.spawn(stream, ip, held, false),
            Entry::Proxy(held) => self.spawn(stream, ip, held, true),
            Entry::Reserve(held) => {
                refused("reserve");
                let connection = reserve::serve(stream, Peer(ip), self.router.clone());
                self.sockets.0.spawn(async move {
                    let _held = held;
                    connection.await;
                });
            }
            Entry::Full => refused("closed"),
        }
    }

    fn spawn(self: &Arc<Self>, stream: TcpStream, ip: IpAddr, held: ConnectionSlot, by_proxy: bool) {
        let io = TokioIo::new(Patient::new(stream, self.options.write_timeout));
        let server = self.clone();
        let slot = held.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let (server, held) = (server.clone(), slot.clone());
            async move { server.answer(request, Peer(ip), held, by_proxy).await }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.header_timeout)
            .max_buf_size(64 * 1024)
            .half_close(false)
            .serve_connection(io, service)
            // WebSockets of the relay continue in their own tasks.
            .with_upgrades();
        let stop = self.stop.clone();
        self.sockets.0.spawn(async move {
            let _held = held;
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        mut held: ConnectionSlot,
        by_proxy: bool,
    ) -> Result<Response, Infallible> {
        let mut request = request.map(|body| paced::paced(body, self.options.body_timeout));
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(self.sockets.clone());
        forwarded::resolve(&self.options.trusted_proxies, &mut request);
        let counted = by_proxy && !reserve::is_health(&request);
        if counted {
            let client = request.extensions().get::<Peer>().map_or(peer.0, |client| client.0);
            let Some(own) = self.connection_slots.request(&held, client) else {
                refused("request");
                return Ok(reserve::too_many());
            };
            held = own;
        }
        request.extensions_mut().insert(held.clone());
        let response = self.router.clone().oneshot(request).await?;
        // The request lasts until its answer is sent.
        Ok(if counted { response.map(|body| Body::new(reserve::Holding::new(body, held))) } else { response })
    }
}

fn refused(how: &'static str) {
    metrics::counter!("abide_http_refused_total", "how" => how).increment(1);
}
