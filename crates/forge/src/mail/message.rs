//! From a letter to the bytes that mail servers and readers understand.

use super::letters::Letter;
use abide_core::Timestamp;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use std::time::{Duration, UNIX_EPOCH};

/// Why a letter cannot be sent, now or ever.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsendable {
    #[error("mail.from = {0:?} is no mailbox, e.g. Abide <abide@example.org>")]
    From(String),
    #[error("the recipient is no address that mail can be sent to")]
    To,
    #[error("the mail cannot be written: {0}")]
    Build(#[from] lettre::error::Error),
}

/// Reads who mails are from.
pub(super) fn sender(from: &str) -> Result<Mailbox, Unsendable> {
    from.parse().map_err(|_| Unsendable::From(from.to_owned()))
}

/// Builds the message. The same job gives the same message, so one that is sent twice is recognised by its id.
pub(super) fn build(from: &str, to: &str, letter: &Letter, at: Timestamp, id: i64) -> Result<Message, Unsendable> {
    let from = sender(from)?;
    let to = Mailbox::new(None, to.parse().map_err(|_| Unsendable::To)?);
    let date = UNIX_EPOCH + Duration::from_micros(u64::try_from(at.micros()).unwrap_or(0));
    let id = format!("<abide-{id}-{}@{}>", at.micros(), from.email.domain());
    let message = Message::builder()
        .from(from)
        .to(to)
        .date(date)
        .message_id(Some(id))
        .subject(letter.subject.as_str())
        .header(ContentType::TEXT_PLAIN)
        .body(letter.text.clone())?;
    Ok(message)
}
