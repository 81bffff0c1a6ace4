//! Outgoing mail.

use super::Rate;
use abide_core::Redacted;
use abide_core::settings::value::TICK;
use abide_core::settings::{count, duration, window};
use lettre::message::Mailbox;
use lettre::{AsyncSmtpTransport, Tokio1Executor};
use std::time::Duration;

abide_core::settings! {
    /// Outgoing mail.
    #[derive(Debug, Clone)]
    pub struct MailSettings in "mail" {
        /// SMTP server, e.g. smtps://user:password@mail.example.org. Empty: mails are written to outbox/.
        [Common, Password] smtp_url: Option<SmtpUrl> = "", SmtpUrl::parse;
        /// Sender of all mails.
        [Common] from: String = "Abide <abide@localhost>", sender;
        /// Timeout for sending one mail.
        timeout: Duration = "60s", duration(TICK..);
        /// Expiry of an e-mail verification link.
        verify_ttl: Duration = "3d", duration(TICK..);
        /// Mails that an account may have sent to its own addresses in mail.window.
        per_account: i64 = "10", count(1..);
        /// Window for mail.per_account.
        window: Duration = "1h", window;
    }
}

impl MailSettings {
    /// Limit of `mail.per_account`.
    pub fn by_account(&self) -> Rate {
        Rate { times: self.per_account, window: self.window }
    }
}

fn sender(text: &str) -> Result<String, String> {
    let rule = || "it must be a mailbox such as Abide <abide@example.org>".to_owned();
    text.parse::<Mailbox>().map(|_| text.to_owned()).map_err(|_| rule())
}

/// URL of the mail server. It may contain a password.
#[derive(Debug, Clone)]
pub struct SmtpUrl(pub Redacted<String>);

impl SmtpUrl {
    fn parse(text: &str) -> Result<Option<Self>, String> {
        match text {
            "" => Ok(None),
            url => {
                let rule = || "it must be a URL such as smtps://user:password@mail.example.org".to_owned();
                let checked = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| rule());
                checked.map(|_| Some(Self(url.into())))
            }
        }
    }
}
