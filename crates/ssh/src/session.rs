//! One channel, from opening to end: a request, its answer, an exit status.

use crate::Command;
use crate::channel::{self, Gone, Output, Request};
use crate::conversation::{Conversation, Done, fail};
use crate::pace::Flushes;
use abide_forge::accounts::{self, authenticate};
use abide_forge::git::ProtocolVersion;
use abide_forge::{Caller, Forge};
use futures_util::FutureExt as _;
use russh::Channel;
use russh::server::Msg;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A backstop: the reader of the client's input has its own limits, and may take this long per chunk.
const STUCK: Duration = Duration::from_secs(900);

pub(crate) struct Session {
    pub(crate) forge: Forge,
    /// Fingerprint of the proved key.
    pub(crate) key: Arc<str>,
    pub(crate) ip: IpAddr,
    /// Cancelled when the connection must end; cancelling it ends the connection.
    pub(crate) cut: CancellationToken,
    /// Flush counter of the connection's socket.
    pub(crate) flushes: Flushes,
    /// Time for the client to send its request.
    pub(crate) request_timeout: Duration,
}

impl Session {
    pub(crate) async fn run(self, channel: Channel<Msg>) {
        let (mut read, write) = channel.split();
        let output = Output::new(write, self.flushes.clone(), self.forge.settings().git.idle_timeout);
        let asked = tokio::select! {
            () = self.cut.cancelled() => return,
            asked = timeout(self.request_timeout, channel::request(&mut read)) => asked,
        };
        let Ok(Some(request)) = asked else {
            let _ = output.close().await;
            return;
        };

        let (pipe, input) = channel::pipe();
        let answer = AssertUnwindSafe(self.answer(request, input, &output)).catch_unwind();
        let done = tokio::select! {
            () = self.cut.cancelled() => return,
            gone = channel::pump(&mut read, pipe, STUCK) => {
                tracing::debug!(ip = %self.ip, ?gone, "the client disconnected");
                count("gone");
                if gone == Gone::Closed {
                    return;
                }
                Done::Failed
            }
            answered = answer => match answered {
                Ok(done) => {
                    count(done.as_str());
                    done
                }
                Err(_) => {
                    tracing::error!(ip = %self.ip, "a command over SSH panicked");
                    count("panicked");
                    let _ = output.say("Abide: internal server error; try again later").await;
                    Done::Failed
                }
            },
        };
        if output.finish(done.exit_status()).await.is_err() {
            // The client reads no more bytes, so nothing else on this connection can progress.
            self.cut.cancel();
        }
    }

    async fn answer(&self, request: Request, input: impl AsyncRead + Unpin + Send, output: &Output) -> Done {
        // Looked up again for every command: the key may have lost its rights since the connection was opened.
        let caller = match authenticate::by_ssh_key(&self.forge, &self.key, Some(self.ip)).await {
            Ok(Some(caller)) => caller,
            Ok(None) => {
                let _ = output.say("Abide: this key is no longer accepted").await;
                return Done::Refused;
            }
            Err(fault) => {
                let _ = output.say(&format!("Abide: {}", fail(&fault))).await;
                return Done::Failed;
            }
        };
        match request {
            Request::Shell => self.greet(&caller, output).await,
            Request::Exec { command, version } => self.exec(&caller, &command, version, input, output).await,
        }
    }

    async fn exec(
        &self,
        caller: &Caller,
        command: &[u8],
        version: ProtocolVersion,
        input: impl AsyncRead + Unpin + Send,
        output: &Output,
    ) -> Done {
        match Command::parse(command) {
            Ok(command) => Conversation { forge: &self.forge, caller, version, output }.hold(&command, input).await,
            Err(error) => {
                let _ = output.say(&format!("Abide: {error}")).await;
                Done::NoCommand
            }
        }
    }

    async fn greet(&self, caller: &Caller, output: &Output) -> Done {
        let name = match caller.user_id() {
            Some(id) => accounts::by_id(&self.forge, id).await.ok().flatten().and_then(|user| user.name),
            None => None,
        };
        let greeting = name.map_or_else(|| "Hi!".to_owned(), |name| format!("Hi {name}!"));
        let text = format!(
            "{greeting} You've authenticated, but Abide does not provide shell access. \
             Use git: git clone {}/OWNER/NAME.git",
            self.forge.settings().ssh_url
        );
        let _ = output.say(&text).await;
        Done::Refused
    }
}

fn count(end: &'static str) {
    metrics::counter!("abide_ssh_commands_total", "end" => end).increment(1);
}
