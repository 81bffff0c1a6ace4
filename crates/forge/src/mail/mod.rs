//! Mail. A mail is a job, enqueued in the transaction of its cause. It goes to a mail server, or becomes a file in
//! `outbox/` if none is configured.
//!
//! [`letters`] has the texts, `message.rs` builds the bytes.

pub mod letters;
mod message;
mod outbox;

use crate::blocking::blocking;
use crate::jobs::{self, Job, JobError, Kind};
use crate::sealed::SealedPayload;
use crate::{Fault, Forge};
use abide_core::Timestamp;
use abide_store::{StoreError, Tx};
use futures_util::future::BoxFuture;
use letters::Letter;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use message::Unsendable;
use serde_json::json;
use std::path::PathBuf;

/// Purpose for sealing queued mails: a mail may contain a password reset link, and jobs are kept and shown.
const PURPOSE: &str = "queued mail";

/// Thread of a mail, for mail programs that sort by list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    /// Display name.
    pub name: String,
    /// List id without the host; never changes.
    pub id: String,
    /// Reference of all mails of the thread, without the host.
    pub thread: String,
    /// URL of the thread.
    pub archive: String,
    /// URL for one-click unsubscribe by POST.
    pub unsubscribe: String,
}

/// A mail about a thread: recipient and event. It is written at each attempt from the current rows, so the queue
/// contains no user texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ThreadMail {
    pub user: i64,
    pub thread: i64,
    /// The event was not public.
    pub private: bool,
    /// Position of the event in the log; 0 means the latest one of the thread.
    #[serde(default)]
    pub seq: i64,
    /// Number of events since the last mail.
    #[serde(default)]
    pub events: i64,
}

/// Enqueues a mail in the caller's transaction.
pub(crate) async fn enqueue(tx: &mut Tx, forge: &Forge, to: &str, letter: &Letter) -> Result<(), StoreError> {
    queue(tx, forge, &Queued { to: to.to_owned(), letter: Some(letter.clone()), thread: None }).await
}

/// Enqueues a mail about a thread, which is sent only if the recipient may still see it.
pub(crate) async fn enqueue_about(tx: &mut Tx, forge: &Forge, to: &str, thread: ThreadMail) -> Result<(), StoreError> {
    queue(tx, forge, &Queued { to: to.to_owned(), letter: None, thread: Some(thread) }).await
}

async fn queue(tx: &mut Tx, forge: &Forge, mail: &Queued) -> Result<(), StoreError> {
    let payload = SealedPayload::new(forge, PURPOSE, json!(mail).to_string().as_bytes());
    jobs::enqueue(tx, Kind::MailSend, &payload, None).await
}

/// A queued mail: with its text, or with the event that it is about.
#[derive(serde::Serialize, serde::Deserialize)]
struct Queued {
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<Letter>,
    #[serde(default, rename = "gate")]
    thread: Option<ThreadMail>,
}

/// Failure to deliver a mail.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// A retry can help.
    #[error("{0}")]
    Later(String),
    /// A retry cannot help.
    #[error("{0}")]
    Never(String),
}

impl From<Unsendable> for DeliveryError {
    fn from(error: Unsendable) -> Self {
        match error {
            // The operator can correct the setting.
            Unsendable::From(_) => Self::Later(error.to_string()),
            Unsendable::To | Unsendable::Build(_) => Self::Never(error.to_string()),
        }
    }
}

impl From<DeliveryError> for JobError {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Later(reason) => Self::Fault(Fault::Internal(reason)),
            DeliveryError::Never(reason) => Self::Final(reason),
        }
    }
}

/// A mail about a thread, or `None` if it is not sent.
pub(crate) type Written = Result<Option<(Letter, List)>, StoreError>;

/// The job: delivers one mail. `write` makes the text of a mail about a thread at the time of sending; `None` if the
/// mail may not be sent to that address any more.
pub(crate) async fn deliver(
    forge: &Forge,
    job: &Job,
    write: impl for<'a> FnOnce(&'a Forge, &'a ThreadMail, &'a str) -> BoxFuture<'a, Written>,
) -> Result<(), DeliveryError> {
    let plain = jobs::payload(job).and_then(|payload: SealedPayload| payload.open(forge, PURPOSE));
    let queued = plain.and_then(|plain| serde_json::from_slice::<Queued>(&plain).ok());
    let unreadable = || DeliveryError::Never("the mail cannot be read with this secret.key".into());
    let Queued { to, letter, thread } = queued.ok_or_else(unreadable)?;
    let (letter, list) = match (thread, letter) {
        (Some(thread), _) => {
            let written = write(forge, &thread, &to).await;
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
        Some(url) => send(url.0.expose(), settings.timeout, message).await,
        None => store(forge, job, message).await,
    }
}

async fn send(url: &str, timeout: std::time::Duration, message: Message) -> Result<(), DeliveryError> {
    let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
        .map_err(|error| DeliveryError::Later(format!("mail.smtp_url cannot be used: {error}")))?;
    let transport = transport.timeout(Some(timeout)).build();
    // The transport's own limit covers connecting only; without this, a server that stalls later would block forever.
    match tokio::time::timeout(timeout, transport.send(message)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.is_permanent() && !is_about_us(&error) => {
            Err(DeliveryError::Never(format!("the mail server refused the mail: {error}")))
        }
        Ok(Err(error)) => Err(DeliveryError::Later(format!("the mail server did not accept the mail: {error}"))),
        Err(_) => Err(DeliveryError::Later(format!("the mail server did not accept the mail within {timeout:?}"))),
    }
}

/// Whether the server refuses our login, not the mail: the operator must correct that, and the mail waits.
fn is_about_us(error: &lettre::transport::smtp::Error) -> bool {
    const LOGIN: [u16; 4] = [530, 534, 535, 538];
    error.status().is_some_and(|code| LOGIN.contains(&u16::from(code)))
}

async fn store(forge: &Forge, job: &Job, message: Message) -> Result<(), DeliveryError> {
    let folder = outbox::folder(forge.layout().data());
    let (at, id) = (job.created_at, job.id);
    let written = blocking("writing a mail", move || outbox::write(&folder, at, id, &message.formatted())).await;
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(DeliveryError::Later(format!("the mail could not be written to outbox/: {error}"))),
        Err(fault) => Err(DeliveryError::Later(fault.to_string())),
    }
}

/// Folder of mails that no mail server takes; `None` if one is configured.
pub fn outbox(forge: &Forge) -> Option<PathBuf> {
    forge.settings().mail.smtp_url.is_none().then(|| outbox::folder(forge.layout().data()))
}

/// Removes mails from the outbox that were queued before an instant.
pub(crate) async fn prune(forge: &Forge, before: Timestamp) {
    let folder = outbox::folder(forge.layout().data());
    let pruned = blocking("removing old mails", move || outbox::prune(&folder, before)).await;
    if let Ok(Err(error)) = pruned {
        tracing::warn!(%error, "old mails could not be removed from outbox/");
    }
}
