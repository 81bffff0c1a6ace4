//! Accepts connections until the server stops.

use crate::connection::{self, Shared};
use crate::connection_slots::{ConnectionSlots, Full};
use crate::{Options, SshError, algorithms, load_or_create_host_key};
use abide_forge::{Forge, OsRandom};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause after a failed accept; usually the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for a connection to end after it was cut.
const CUT: Duration = Duration::from_secs(5);

/// Serves git over SSH until `stop` is cancelled. Then it accepts no connections, disconnects idle clients, and gives
/// running commands the `drain_timeout` of the settings.
pub async fn serve(
    forge: Forge,
    listener: TcpListener,
    options: Options,
    stop: CancellationToken,
) -> Result<(), SshError> {
    let key = load_or_create_host_key(&options.host_key, &OsRandom)?;
    let drain_timeout = forge.settings().drain_timeout;
    let slots = ConnectionSlots::new(options.max_connections, options.per_ip, options.per_minute);
    let shared = Arc::new(Shared {
        config: Arc::new(algorithms::config(key, &options)),
        forge,
        options,
        tasks: TaskTracker::new(),
        stop: stop.clone(),
        cut: CancellationToken::new(),
    });
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => welcome(&shared, &slots, stream, peer),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an SSH connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    shared.tasks.close();
    if timeout(drain_timeout, shared.tasks.wait()).await.is_err() {
        tracing::warn!(left = shared.tasks.len(), "SSH connections were closed: they did not end in time");
        shared.cut.cancel();
        let _ = timeout(CUT, shared.tasks.wait()).await;
    }
    Ok(())
}

fn welcome(shared: &Arc<Shared>, slots: &ConnectionSlots, stream: TcpStream, peer: SocketAddr) {
    let ip = peer.ip().to_canonical();
    let slot = match slots.enter(ip) {
        Ok(slot) => slot,
        Err(full) => {
            tracing::debug!(%ip, ?full, "an SSH connection was refused");
            return connection::count(match full {
                Full::Everywhere => "turned_away",
                Full::ForThisAddress => "turned_away_address",
                Full::TooOften => "turned_away_rate",
            });
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%ip, %error, "cannot set TCP_NODELAY");
    }
    let shared = shared.clone();
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        connection::serve(shared, stream, ip).await;
        drop(slot);
    });
}
