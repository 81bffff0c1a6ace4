//! One connection, from acceptance to its end.

use crate::Options;
use crate::handler::Handler;
use crate::pace::Flushes;
use crate::stream::Cuttable;
use abide_forge::Forge;
use abide_forge::accounts::standing::Standing;
use russh::server::{Config, Handle, run_stream};
use russh::{Disconnect, Error};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Time for a client to close the connection after our disconnect message.
const FAREWELL: Duration = Duration::from_secs(5);

/// Time for a client to close the connection itself after its last command. A disconnect message before that would make
/// it report the command as failed.
const COURTESY: Duration = Duration::from_secs(2);

/// State shared by all connections.
pub(crate) struct Shared {
    pub(crate) forge: Forge,
    pub(crate) options: Options,
    pub(crate) config: Arc<Config>,
    /// Connections and their commands.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the server stops accepting new work.
    pub(crate) stop: CancellationToken,
    /// Cancelled when running work must end.
    pub(crate) cut: CancellationToken,
}

/// Externally visible state of a connection.
#[derive(Debug, Default, Clone)]
pub(crate) struct State {
    pub(crate) authenticated: bool,
    /// Fingerprint of the last proved key.
    pub(crate) key: Option<Arc<str>>,
    /// Channels in use.
    pub(crate) open: usize,
}

/// Counts a channel as open until dropped.
pub(crate) struct OpenChannel(watch::Sender<State>);

impl OpenChannel {
    pub(crate) fn new(state: watch::Sender<State>) -> Self {
        state.send_modify(|state| state.open += 1);
        Self(state)
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.open -= 1);
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed it.
    Closed,
    /// The client never proved a key.
    Unauthenticated,
    /// The client took too long to prove a key.
    HandshakeTimeout,
    /// No command ran for too long.
    Idle,
    /// The key was removed, or its account suspended.
    Revoked,
    /// The client stopped answering or reading.
    Lost,
    /// The server is shutting down.
    Stopped,
    /// The client violated the protocol.
    Error,
    /// Our code panicked.
    Panicked,
}

impl End {
    fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Unauthenticated => "unauthenticated",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::Idle => "idle",
            Self::Revoked => "revoked",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
            Self::Error => "error",
            Self::Panicked => "panicked",
        }
    }
}

/// Counts connections by how they ended.
pub(crate) fn count(end: &'static str) {
    metrics::counter!("abide_ssh_connections_total", "end" => end).increment(1);
}

/// Serves a client until the connection ends.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, ip: IpAddr) {
    let end = run(shared, stream, ip).await;
    tracing::debug!(%ip, end = end.as_str(), "an SSH connection ended");
    count(end.as_str());
}

async fn run(shared: Arc<Shared>, stream: TcpStream, ip: IpAddr) -> End {
    let deadline = Instant::now() + shared.options.handshake_timeout;
    // Ends everything this task started, however the task ends.
    let cut = shared.cut.child_token();
    let _guard = cut.clone().drop_guard();
    let (sender, state) = watch::channel(State::default());
    let flushes = Flushes::new(0);
    let stream = Cuttable::new(stream, cut.clone(), flushes.clone());
    let handler = Handler::new(shared.clone(), ip, sender, cut.clone(), flushes);
    let greeting = run_stream(shared.config.clone(), stream, handler);
    let greeted = tokio::select! {
        greeted = timeout_at(deadline, greeting) => greeted,
        // Before the first message, stopping loses nothing.
        () = shared.stop.cancelled() => return End::Stopped,
    };
    let mut session = match greeted {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return judge(&error, false, ip),
        Err(_) => return End::HandshakeTimeout,
    };
    let handle = session.handle();
    let end = tokio::select! {
        ended = &mut session => {
            return match ended {
                Ok(()) if state.borrow().authenticated => End::Closed,
                Ok(()) => End::Unauthenticated,
                Err(error) => judge(&error, state.borrow().authenticated, ip),
            };
        }
        end = supervise(&shared, state.clone(), deadline) => end,
    };
    let leaving = async {
        if end == End::Stopped && timeout(COURTESY, &mut session).await.is_ok() {
            return;
        }
        dismiss(&handle, end).await;
        let _ = (&mut session).await;
    };
    match end {
        // The last bytes of a command may still be in transit; `Shared::cut` bounds the wait.
        End::Stopped => leaving.await,
        _ => drop(timeout(FAREWELL, leaving).await),
    }
    end
}

/// Returns when the client must be disconnected.
async fn supervise(shared: &Shared, mut state: watch::Receiver<State>, deadline: Instant) -> End {
    tokio::select! {
        authenticated = timeout_at(deadline, state.wait_for(|state| state.authenticated)) => {
            if authenticated.is_err() {
                return End::HandshakeTimeout;
            }
        }
        () = shared.stop.cancelled() => return End::Stopped,
    }
    let standing = state.borrow().key.clone().map_or(Standing::Anonymous, Standing::SshKey);
    let mut channels = state.clone();
    let revoked = async {
        standing.lost(&shared.forge).await;
        // Running commands notice the revocation themselves and report it to the client.
        let _ = timeout(FAREWELL, channels.wait_for(|state| state.open == 0)).await;
    };
    tokio::select! {
        end = until_idle(shared, state) => end,
        () = revoked => End::Revoked,
    }
}

/// Returns when no command has run on a connection for too long.
async fn until_idle(shared: &Shared, mut state: watch::Receiver<State>) -> End {
    loop {
        // An error means that the connection has ended; the caller notices that itself.
        if state.wait_for(|state| state.open == 0).await.is_err() {
            return std::future::pending().await;
        }
        tokio::select! {
            _ = state.wait_for(|state| state.open > 0) => {}
            () = sleep(shared.options.idle_timeout) => return End::Idle,
            () = shared.stop.cancelled() => return End::Stopped,
        }
    }
}

async fn dismiss(handle: &Handle, end: End) {
    let reason = match end {
        End::HandshakeTimeout => "authentication timed out",
        End::Idle => "idle timeout",
        End::Revoked => "this key is no longer accepted",
        _ => "the server is shutting down",
    };
    let _ = handle.disconnect(Disconnect::ByApplication, reason.into(), String::new()).await;
}

fn judge(error: &Error, authenticated: bool, ip: IpAddr) -> End {
    match error {
        Error::Join(_) => {
            tracing::error!(%ip, "an SSH connection panicked");
            End::Panicked
        }
        // Scanners, and clients without a common algorithm; not worth an info line each.
        error if !authenticated => {
            tracing::debug!(%ip, %error, "an SSH connection ended before authentication");
            End::Unauthenticated
        }
        Error::IO(_) | Error::HUP | Error::Disconnect => End::Closed,
        Error::KeepaliveTimeout | Error::InactivityTimeout => End::Lost,
        error => {
            tracing::info!(%ip, %error, "an SSH connection failed");
            End::Error
        }
    }
}
