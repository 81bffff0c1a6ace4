//! One WebSocket: frames in, frames out.

use crate::App;
use abide_forge::accounts::standing::ASK_EVERY;
use abide_forge::relay::Client;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::SinkExt as _;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// How long a client may take to hear that the connection ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// The largest message that is read at all. One that is over the relay's limit but not over this is answered.
pub(super) fn largest_message(app: &App) -> usize {
    app.forge.relay().settings().limits.message_bytes.saturating_mul(2)
}

/// Why a connection ends from our side.
struct End {
    code: u16,
    reason: String,
}

/// Serves a connection to its end.
pub(super) async fn serve(app: &App, mut socket: WebSocket, mut client: Client) {
    let Some(end) = talk(app, &mut socket, &mut client).await else { return };
    let frame = CloseFrame { code: end.code, reason: end.reason.into() };
    let _ = tokio::time::timeout(FAREWELL, socket.send(Message::Close(Some(frame)))).await;
}

/// `None` if the client is gone.
async fn talk(app: &App, socket: &mut WebSocket, client: &mut Client) -> Option<End> {
    let settings = app.forge.relay().settings();
    let mut ping = tokio::time::interval(settings.ping.max(Duration::from_millis(1)));
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    let mut heard = Instant::now();
    let mut ask = tokio::time::interval(ASK_EVERY);
    ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let ready = client.ready();
        let frames = tokio::select! {
            () = app.stop.cancelled() => {
                return Some(End { code: close_code::AWAY, reason: "the server is shutting down".into() });
            }
            received = socket.recv(), if ready => {
                heard = Instant::now();
                match received? {
                    Ok(Message::Text(text)) => client.on_text(text.as_str()).await,
                    Ok(Message::Binary(_)) => client.on_binary().await,
                    // The library answers pings.
                    Ok(Message::Ping(_) | Message::Pong(_)) => Vec::new(),
                    Ok(Message::Close(_)) => return None,
                    Err(error) => return broken(&error),
                }
            }
            came = client.next() => match came {
                Ok(frames) => frames,
                Err(end) => return Some(End { code: close_code::POLICY, reason: end.to_string() }),
            },
            _ = ask.tick() => match client.ensure_welcome().await {
                Ok(()) => Vec::new(),
                Err(end) => return Some(End { code: close_code::POLICY, reason: end.to_string() }),
            },
            _ = ping.tick() => {
                if heard.elapsed() > settings.idle_timeout {
                    return Some(End { code: close_code::AWAY, reason: "idle timeout".into() });
                }
                socket.send(Message::Ping(axum::body::Bytes::new())).await.ok()?;
                Vec::new()
            }
        };
        send(socket, frames).await?;
    }
}

/// A message that is too large to be read, or not a WebSocket's at all.
fn broken(error: &axum::Error) -> Option<End> {
    let text = error.to_string();
    let (code, reason) = match text.contains("too long") {
        true => (close_code::SIZE, "message too large"),
        false => (close_code::PROTOCOL, "invalid WebSocket message"),
    };
    Some(End { code, reason: reason.into() })
}

/// Sends frames in one go.
async fn send(socket: &mut WebSocket, frames: Vec<String>) -> Option<()> {
    if frames.is_empty() {
        return Some(());
    }
    for frame in frames {
        socket.feed(Message::Text(frame.into())).await.ok()?;
    }
    socket.flush().await.ok()
}
