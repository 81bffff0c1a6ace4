//! The accept loop.

use crate::forwarded;
use crate::slow::Patient;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// Bounds of the accept loop.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at once; further ones wait in the kernel's queue.
    pub max_connections: usize,
    /// How long a request's head may take to arrive, and how long a kept connection may stay silent.
    pub header_timeout: Duration,
    /// How long a client may take no byte of its answer.
    pub write_timeout: Duration,
    /// How long running requests may take once the server stops.
    pub drain_timeout: Duration,
    /// Proxies that are believed when they say who their client is.
    pub trusted_proxies: Arc<[IpNet]>,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub IpAddr);

/// Connections and the relay's sockets, so that the server can wait for their ends.
#[derive(Debug, Clone)]
pub(crate) struct Sockets(pub TaskTracker);

/// Serves until told to stop, then lets running requests finish.
pub async fn serve(listener: TcpListener, router: Router, options: Options, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(options.max_connections.max(1)));
    let sockets = Sockets(TaskTracker::new());
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = places.clone().acquire_owned() => place,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                spawn(stream, Peer(address.ip()), &sockets, &router, &options, &stop, place);
            }
            Err(error) => {
                // Out of file descriptors, most likely: a pause lets connections end.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    sockets.0.close();
    if tokio::time::timeout(options.drain_timeout, sockets.0.wait()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

fn spawn(
    stream: TcpStream,
    peer: Peer,
    sockets: &Sockets,
    router: &Router,
    options: &Options,
    stop: &CancellationToken,
    place: OwnedSemaphorePermit,
) {
    // Answers are written in few large pieces; waiting to join them only costs time.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(Patient::new(stream, options.write_timeout));
    let router = router.clone();
    let (open, stop) = (sockets.clone(), stop.clone());
    let trusted = options.trusted_proxies.clone();
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(open.clone());
        forwarded::resolve(&trusted, &mut request);
        router.clone().oneshot(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(64 * 1024)
        .half_close(false)
        .serve_connection(io, service)
        // Sockets of the relay go on by themselves.
        .with_upgrades();
    sockets.0.spawn(async move {
        let _place = place;
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
