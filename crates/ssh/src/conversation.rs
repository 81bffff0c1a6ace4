//! Fetch and push over a channel.
//!
//! A refusal goes to git as an `ERR` packet in place of the advertisement; git shows it as one line, `fatal: remote
//! error: …`. On standard error, git would add its own guess that the connection is broken.

use crate::channel::Output;
use crate::{Command, Service};
use abide_forge::git::{ProtocolVersion, Transport, drain, error_packet, fetch, push};
use abide_forge::repos::open::RepoLocator;
use abide_forge::{Access, Caller, Fault, Forge};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::io::InspectWriter;

/// Answers of a push queued for the client.
const ANSWERS: usize = 16;

/// Time that a refused client may continue to write. A client that waits for our end waits this long.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// The conversation completed; the report of a push has the result of each ref.
    Well,
    /// The caller lacks permission, or the repository does not exist.
    Refused,
    /// The command does not exist.
    NoCommand,
    /// An internal failure, or git gave up.
    Failed,
}

impl Done {
    pub(crate) fn exit_status(self) -> u32 {
        match self {
            Self::Well => 0,
            Self::Refused | Self::Failed => 1,
            Self::NoCommand => 128,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Refused => "refused",
            Self::NoCommand => "no_command",
            Self::Failed => "failed",
        }
    }
}

/// One conversation with git.
pub(crate) struct Conversation<'a> {
    pub(crate) forge: &'a Forge,
    pub(crate) caller: &'a Caller,
    pub(crate) version: ProtocolVersion,
    pub(crate) output: &'a Output,
}

impl Conversation<'_> {
    pub(crate) async fn hold(&self, command: &Command, input: impl AsyncRead + Unpin + Send) -> Done {
        let held = match command.service {
            // Boxed: both futures are large, and without optimisation each layer above would copy them onto the stack.
            Service::Fetch => Box::pin(self.fetch(&command.locator, input)).await,
            Service::Push => Box::pin(self.push(&command.locator, input)).await,
        };
        match held {
            Ok(done) => done,
            Err(access) => self.refuse(&access).await,
        }
    }

    async fn fetch(&self, locator: &RepoLocator, mut input: impl AsyncRead + Unpin + Send) -> Result<Done, Access> {
        let admission = fetch::admit(self.forge, self.caller, locator, Transport::Ssh).await?;
        self.hint(admission.hint.as_deref()).await;
        let spoke = AtomicBool::new(false);
        let output = InspectWriter::new(self.output.writer(), |_: &[u8]| spoke.store(true, Ordering::Relaxed));
        match fetch::converse(self.forge, &admission, self.version, &mut input, output).await {
            Ok(()) => Ok(Done::Well),
            Err(Fault::Revoked) => {
                let _ = self.output.say(&format!("Abide: {}", Fault::Revoked)).await;
                Ok(Done::Refused)
            }
            Err(fault) if fault.is_clients() => {
                tracing::debug!(?locator, error = %fault, "a client ended its fetch");
                Ok(Done::Failed)
            }
            // git has sent its error to the client. A client that is still writing would see a closed channel instead of
            // that message.
            Err(fault) if spoke.load(Ordering::Relaxed) => {
                tracing::warn!(?locator, error = %fault, "a fetch ended early");
                let _ = timeout(LAST_WORDS, drain(self.forge, self.caller.client(), &mut input)).await;
                Ok(Done::Failed)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    async fn push(&self, locator: &RepoLocator, input: impl AsyncRead + Unpin + Send) -> Result<Done, Access> {
        let admission = push::admit(self.forge, self.caller, locator, Transport::Ssh).await?;
        self.hint(admission.hint.as_deref()).await;
        let advertisement = push::advertisement(self.forge, &admission, self.version).await?;
        let held = advertisement.hold(self.caller.client()).map_err(Fault::from)?;
        for piece in advertisement {
            if self.output.send(piece).await.is_err() {
                return Ok(Done::Failed);
            }
        }
        drop(held);
        let (answers, waiting) = mpsc::channel(ANSWERS);
        // When `forward` ends, it closes the answers, which ends the push: the client is gone.
        let ((), forwarded) =
            tokio::join!(push::receive(self.forge, admission, Box::new(input), answers), self.forward(waiting));
        Ok(if forwarded { Done::Well } else { Done::Failed })
    }

    async fn forward(&self, mut answers: mpsc::Receiver<Bytes>) -> bool {
        while let Some(bytes) = answers.recv().await {
            if self.output.send(bytes).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Prints a line for the user, in git's format for remote messages.
    async fn hint(&self, hint: Option<&str>) {
        if let Some(hint) = hint {
            // If the client is gone, the conversation notices it.
            let _ = self.output.say(&format!("remote: {hint}")).await;
        }
    }

    async fn refuse(&self, access: &Access) -> Done {
        let (reason, done) = match access {
            Access::Fault(fault) => (fail(fault), Done::Failed),
            access => (access.to_string(), Done::Refused),
        };
        // A client that is gone needs no answer.
        let _ = self.output.send(error_packet(&reason)).await;
        done
    }
}

/// Logs a fault and returns its message for the client.
pub(crate) fn fail(fault: &Fault) -> String {
    tracing::error!(error = %fault, "a command over SSH failed");
    fault.public_message()
}
