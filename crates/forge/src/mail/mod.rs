//! Telling people by mail. A mail is a job, queued in the transaction of what it tells about; it goes to a mail server,
//! or becomes a file in `outbox/` if none is configured.
//!
//! [`letters`] has the words, `message.rs` makes the bytes.

pub mod letters;
mod message;
mod outbox;

use crate::jobs::{self, Job, Kind};
use crate::notify::mailing;
use crate::{Forge, sealed};
use abide_core::Timestamp;
use abide_store::{StoreError, Tx};
use letters::Letter;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use message::Unsendable;
use serde_json::{Value as Json, json};

/// What a queued mail is sealed for: it may hold a link that sets a password, and jobs are kept and shown.
const PURPOSE: &str = "queued mail";

/// The thread that a mail belongs to, for programs that sort mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    /// What people call it.
    pub name: String,
    /// What filters go by, without the host: for life.
    pub id: String,
    /// What all mails of the thread refer to, without the host.
    pub thread: String,
    /// Where it can be read.
    pub archive: String,
    /// Where a single POST ends it.
    pub unsubscribe: String,
}

/// A mail about a thread: to whom, about which event. It is written each time it is tried, from the rows as they are
/// then, so the queue keeps nothing that people wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Gate {
    /// Whom it is for.
    pub user: i64,
    /// What it is about.
    pub thread: i64,
    /// It tells of what happened out of the public's sight.
    pub private: bool,
    /// Place of the event in the log; 0 means the latest one of the thread.
    #[serde(default)]
    pub seq: i64,
    /// Number of events since the last mail.
    #[serde(default)]
    pub events: i64,
}

/// Queues a mail in the caller's transaction.
pub(crate) async fn enqueue(tx: &mut Tx, forge: &Forge, to: &str, letter: &Letter) -> Result<(), StoreError> {
    queue(tx, forge, &Queued { to: to.to_owned(), letter: Some(letter.clone()), gate: None }).await
}

/// Queues a mail about a thread, which is sent only to someone who may see it by then.
pub(crate) async fn enqueue_about(tx: &mut Tx, forge: &Forge, to: &str, gate: Gate) -> Result<(), StoreError> {
    queue(tx, forge, &Queued { to: to.to_owned(), letter: None, gate: Some(gate) }).await
}

async fn queue(tx: &mut Tx, forge: &Forge, mail: &Queued) -> Result<(), StoreError> {
    let payload = sealed::seal_payload(forge, PURPOSE, json!(mail).to_string().as_bytes());
    jobs::enqueue(tx, Kind::MailSend, payload, None).await
}

/// A queued mail: with its text, or with the event that it is about.
#[derive(serde::Serialize, serde::Deserialize)]
struct Queued {
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<Letter>,
    #[serde(default)]
    gate: Option<Gate>,
}

/// Why a mail was not delivered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// Trying again can help.
    #[error("{0}")]
    Later(String),
    /// It cannot.
    #[error("{0}")]
    Never(String),
}

impl From<Unsendable> for DeliveryError {
    fn from(error: Unsendable) -> Self {
        match error {
            // The operator can put that right.
            Unsendable::From(_) => Self::Later(error.to_string()),
            Unsendable::To | Unsendable::Build(_) => Self::Never(error.to_string()),
        }
    }
}

/// The job: delivers one mail.
pub(crate) async fn deliver(forge: &Forge, job: &Job, payload: &Json) -> Result<(), DeliveryError> {
    let plain = sealed::open_payload(forge, PURPOSE, payload);
    let queued = plain.and_then(|plain| serde_json::from_slice::<Queued>(&plain).ok());
    let unreadable = || DeliveryError::Never("the mail cannot be read with this secret.key".into());
    let Queued { to, letter, gate } = queued.ok_or_else(unreadable)?;
    let (letter, list) = match (gate, letter) {
        (Some(gate), _) => {
            let written = mailing::letter(forge, &gate, &to).await;
            match written.map_err(|error| DeliveryError::Later(error.to_string()))? {
                Some((letter, list)) => (letter, Some(list)),
                None => {
                    tracing::debug!(job = job.id, "mail not sent: its recipient lost access or opted out");
                    return Ok(());
                }
            }
        }
        (None, Some(letter)) => (letter, None),
        (None, None) => return Err(unreadable()),
    };
    let settings = &forge.settings().mail;
    let message = message::build(&settings.from, &to, &letter, list.as_ref(), job.created_at, job.id)?;
    match &settings.smtp_url {
        Some(url) => send(&url.0, settings.timeout, message).await,
        None => store(forge, job, message).await,
    }
}

async fn send(url: &str, timeout: std::time::Duration, message: Message) -> Result<(), DeliveryError> {
    let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
        .map_err(|error| DeliveryError::Later(format!("mail.smtp_url cannot be used: {error}")))?;
    let transport = transport.timeout(Some(timeout)).build();
    // The transport's own limit ends with the connection; a server that falls silent later would be waited for.
    match tokio::time::timeout(timeout, transport.send(message)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.is_permanent() && !is_about_us(&error) => {
            Err(DeliveryError::Never(format!("the mail server refused the mail: {error}")))
        }
        Ok(Err(error)) => Err(DeliveryError::Later(format!("the mail server did not accept the mail: {error}"))),
        Err(_) => Err(DeliveryError::Later(format!("the mail server did not accept the mail within {timeout:?}"))),
    }
}

/// Whether the server refuses us, not the mail: that is for the operator to put right, and the mail waits for it.
fn is_about_us(error: &lettre::transport::smtp::Error) -> bool {
    const LOGIN: [u16; 4] = [530, 534, 535, 538];
    error.status().is_some_and(|code| LOGIN.contains(&u16::from(code)))
}

async fn store(forge: &Forge, job: &Job, message: Message) -> Result<(), DeliveryError> {
    let folder = outbox::folder(forge.layout().data());
    let (at, id) = (job.created_at, job.id);
    let written = tokio::task::spawn_blocking(move || outbox::write(&folder, at, id, &message.formatted())).await;
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(DeliveryError::Later(format!("the mail could not be written to outbox/: {error}"))),
        Err(error) => Err(DeliveryError::Later(format!("writing the mail was interrupted: {error}"))),
    }
}

/// Removes mails from the outbox that were queued before an instant.
pub(crate) async fn prune(forge: &Forge, before: Timestamp) {
    let folder = outbox::folder(forge.layout().data());
    let pruned = tokio::task::spawn_blocking(move || outbox::prune(&folder, before)).await;
    if let Ok(Err(error)) = pruned {
        tracing::warn!(%error, "old mails could not be removed from outbox/");
    }
}

/// Whether that can be who mails are from; says the rule if not.
pub fn check_from(text: &str) -> Result<(), String> {
    message::sender(text).map(drop).map_err(|_| "it must be a mailbox such as Abide <abide@example.org>".into())
}

/// Whether mail can be handed over there; says the rule if not.
pub fn check_smtp_url(text: &str) -> Result<(), String> {
    let built = AsyncSmtpTransport::<Tokio1Executor>::from_url(text);
    built.map(drop).map_err(|_| "it must be a URL such as smtps://user:password@mail.example.org".into())
}
