//! The message loop of one relay client.

use super::socket::{Broken, Socket};
use crate::App;
use abide_core::patience::Patience;
use abide_forge::accounts::standing::ASK_EVERY;
use abide_forge::admit::{Client, Frames};
use abide_forge::relay::Relay;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tungstenite::Message;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;

/// Time to send the close frame.
const FAREWELL: Duration = Duration::from_secs(2);

/// Time that a client may read nothing, and its minimum rate in bytes per second.
const SILENCE: Duration = Duration::from_secs(60);
const RATE: u64 = 1024;

/// Close code and reason when the server ends a connection.
struct End {
    code: CloseCode,
    reason: String,
}

/// Serves a connection until it closes.
pub(super) async fn serve(app: &App, mut socket: Socket, mut client: Client) {
    let Some(end) = talk(app, &mut socket, &mut client).await else { return };
    let frame = CloseFrame { code: end.code, reason: end.reason.into() };
    let _ = tokio::time::timeout(FAREWELL, socket.send(Message::Close(Some(frame)))).await;
}

/// `None` if the client disconnected.
async fn talk(app: &App, socket: &mut Socket, client: &mut Client) -> Option<End> {
    let settings = Relay::of(&app.forge).settings();
    let mut ping = tokio::time::interval(settings.ping.max(Duration::from_millis(1)));
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    let mut heard = Instant::now();
    let mut ask = tokio::time::interval(ASK_EVERY);
    ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut patience = Patience::new(SILENCE, RATE);
    loop {
        let ready = client.ready();
        let frames = tokio::select! {
            () = app.stop.cancelled() => {
                return Some(End { code: CloseCode::Away, reason: "the server is shutting down".into() });
            }
            received = socket.recv(), if ready => {
                heard = Instant::now();
                match received? {
                    Ok(Message::Text(text)) => client.on_text(text.as_str()).await,
                    Ok(Message::Binary(_)) => client.on_binary().await,
                    // The library answers pings.
                    Ok(Message::Ping(_) | Message::Pong(_)) => Frames::default(),
                    Ok(Message::Close(_) | Message::Frame(_)) => return None,
                    Err(broken) => return Some(end_of(broken)),
                }
            }
            came = client.next() => match came {
                Ok(frames) => frames,
                Err(end) => return Some(End { code: CloseCode::Policy, reason: end.to_string() }),
            },
            _ = ask.tick() => match client.ensure_welcome().await {
                Ok(()) => Frames::default(),
                Err(end) => return Some(End { code: CloseCode::Policy, reason: end.to_string() }),
            },
            _ = ping.tick() => {
                if heard.elapsed() > settings.idle_timeout {
                    return Some(End { code: CloseCode::Away, reason: "idle timeout".into() });
                }
                let sending = Sending { app, client, ask: &mut ask, patience: &mut patience };
                match sending.one(socket, Message::Ping(tungstenite::Bytes::new())).await {
                    Sent::Taken => Frames::default(),
                    Sent::Gone => return None,
                    Sent::Ended(end) => return Some(end),
                }
            }
        };
        let sending = Sending { app, client, ask: &mut ask, patience: &mut patience };
        match sending.all(socket, frames).await {
            Sent::Taken => socket.release_buffers().await,
            Sent::Gone => return None,
            Sent::Ended(end) => return Some(end),
        }
    }
}

fn end_of(broken: Broken) -> End {
    let (code, reason) = match broken {
        Broken::TooLong => (CloseCode::Size, "message too large".into()),
        Broken::Refused(reason) => (CloseCode::Policy, reason),
        Broken::Protocol => (CloseCode::Protocol, "invalid WebSocket message".into()),
    };
    End { code, reason }
}

/// Result of sending.
enum Sent {
    Taken,
    Gone,
    Ended(End),
}

/// Sends frames to a client, and checks meanwhile that its access is still valid and that it reads fast enough.
struct Sending<'a> {
    app: &'a App,
    client: &'a Client,
    ask: &'a mut Interval,
    patience: &'a mut Patience,
}

impl Sending<'_> {
    /// Sends frames together. Their bytes stay counted until the client has read all of them.
    async fn all(mut self, socket: &mut Socket, mut frames: Frames) -> Sent {
        // A frame is fed after the client has read the previous one.
        let mut before = 0;
        for text in std::mem::take(&mut frames.texts) {
            let bytes = text.len();
            match self.wait(before, socket.feed(Message::Text(text.into()))).await {
                Sent::Taken => before = bytes,
                other => return other,
            }
        }
        self.wait(before, socket.flush()).await
    }

    async fn one(mut self, socket: &mut Socket, message: Message) -> Sent {
        self.wait(0, socket.send(message)).await
    }

    /// Waits until the client has read the bytes: as long as the minimum rate allows for them, and the time of silence
    /// that is left.
    async fn wait(&mut self, bytes: usize, taking: impl Future<Output = Result<(), tungstenite::Error>>) -> Sent {
        let bytes = bytes as u64;
        let begun = Instant::now();
        let enough = self.patience.left_for(bytes);
        let mut taking = std::pin::pin!(taking);
        loop {
            tokio::select! {
                biased;
                taken = &mut taking => {
                    self.patience.waited(begun.elapsed(), bytes);
                    return if taken.is_ok() { Sent::Taken } else { Sent::Gone };
                }
                () = self.app.stop.cancelled() => {
                    return Sent::Ended(End { code: CloseCode::Away, reason: "the server is stopping".into() });
                }
                _ = self.ask.tick() => {
                    if let Err(end) = self.client.ensure_welcome().await {
                        return Sent::Ended(End { code: CloseCode::Policy, reason: end.to_string() });
                    }
                }
                () = tokio::time::sleep_until(begun + enough) => {
                    let reason = format!("a client has to take {RATE} bytes a second");
                    return Sent::Ended(End { code: CloseCode::Policy, reason });
                }
            }
        }
    }
}
