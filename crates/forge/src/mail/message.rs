//! Builds the bytes of a mail from a letter.

use super::List;
use super::letters::Letter;
use abide_core::Timestamp;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};
use std::time::{Duration, UNIX_EPOCH};

/// Reason why a letter cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsendable {
    #[error("mail.from = {0:?} is not a mailbox such as Abide <abide@example.org>")]
    From(String),
    #[error("the recipient is not a valid e-mail address")]
    To,
    #[error("the mail cannot be written: {0}")]
    Build(#[from] lettre::error::Error),
}

/// Parses the sender.
pub(super) fn sender(from: &str) -> Result<Mailbox, Unsendable> {
    from.parse().map_err(|_| Unsendable::From(from.to_owned()))
}

/// Builds the message. The same job gives the same message, so a duplicate is recognised by its id.
pub(super) fn build(
    from: &str,
    to: &str,
    letter: &Letter,
    list: Option<&List>,
    at: Timestamp,
    id: i64,
) -> Result<Message, Unsendable> {
    let from = sender(from)?;
    let to = Mailbox::new(None, to.parse().map_err(|_| Unsendable::To)?);
    let date = UNIX_EPOCH + Duration::from_micros(u64::try_from(at.micros()).unwrap_or(0));
    let host = from.email.domain().to_owned();
    let id = format!("<abide-{id}-{}@{host}>", at.micros());
    let mut message = Message::builder()
        .from(from)
        .to(to)
        .date(date)
        .message_id(Some(id))
        .subject(letter.subject.as_str())
        // Suppresses automatic replies such as holiday notices.
        .raw_header(raw("Auto-Submitted", "auto-generated".into()));
    if let Some(list) = list {
        // No mail has the id that all refer to; mail readers group mails by their references.
        let thread = format!("<{}@{host}>", list.thread);
        message = message
            .in_reply_to(thread.clone())
            .references(thread)
            .raw_header(raw("List-ID", format!("\"{}\" <{}.{host}>", list.name, list.id)))
            .raw_header(raw("List-Archive", format!("<{}>", list.archive)))
            .raw_header(raw("List-Unsubscribe", format!("<{}>", list.unsubscribe)))
            .raw_header(raw("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".into()))
            .raw_header(raw("Precedence", "list".into()));
    }
    Ok(message.header(MIME_VERSION_1_0).header(ContentType::TEXT_PLAIN).body(letter.text.clone())?)
}

/// A header with ASCII content.
fn raw(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::account::EmailAddress;
    use mail_parser::MessageParser;
    use proptest::prelude::*;

    proptest! {
        /// Every address that an account may have can be written to, and a letter's text cannot add headers: one
        /// recipient, one subject, one text.
        #[test]
        fn nothing_typed_becomes_a_header(
            address in "[!-~]{1,20}@[a-z0-9-]{1,10}(\\.[a-z0-9-]{1,10}){1,2}",
            subject in "[ -~é\r\n]{1,60}",
            text in "[ -~é\n.]{1,200}",
        ) {
            let Ok(to) = address.parse::<EmailAddress>() else { return Ok(()) };
            let letter = Letter { subject, text: format!("{text}\nBcc: eve@example.org\n") };
            let built = build("Forge <forge@example.org>", to.as_str(), &letter, None, Timestamp::from_micros(1), 7);
            let bytes = built.map_err(|error| TestCaseError::fail(format!("{to}: {error}")))?.formatted();
            let mail = MessageParser::default().parse(&bytes).expect("a mail");
            let all: Vec<_> = mail.to().expect("a recipient").iter().filter_map(|to| to.address()).collect();
            prop_assert_eq!(all, [to.as_str()]);
            prop_assert!(mail.bcc().is_none() && mail.cc().is_none());
            let mut names: Vec<_> = mail.headers().iter().map(|header| header.name().to_ascii_lowercase()).collect();
            names.sort();
            prop_assert_eq!(names, [
                "auto-submitted", "content-transfer-encoding", "content-type", "date", "from", "message-id", "mime-version",
                "subject", "to",
            ]);
        }
    }
}
