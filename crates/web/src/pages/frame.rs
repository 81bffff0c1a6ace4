//! What the layout around every page needs.

use super::visitor::Visitor;
use crate::App;
use crate::show::time::Now;
use abide_forge::accounts::sign_up::SignUpMode;
use abide_forge::notify::inbox::BADGE;

/// Who is logged in, as far as the layout shows it.
#[derive(Debug, Clone)]
pub(crate) struct Badge {
    /// What they go by in addresses.
    pub name: String,
    /// Whether they have yet to pick a name.
    pub nameless: bool,
    /// Whether they have a password to ask for.
    pub has_password: bool,
    pub site_admin: bool,
    /// How much they have not read, as far as it is counted.
    pub unread: i64,
}

impl Badge {
    /// The same as it is shown.
    pub(crate) fn waiting(&self) -> String {
        if self.unread < BADGE { self.unread.to_string() } else { format!("{}+", BADGE - 1) }
    }
}

/// What the layout around a page needs.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub title: String,
    pub badge: Option<Badge>,
    /// What every form carries.
    pub token: String,
    /// Where logging in leads back to.
    pub here: String,
    /// What was just done, to be told at the top.
    pub notice: Option<&'static str>,
    pub can_sign_up: bool,
    pub now: Now,
}

impl Frame {
    pub(crate) fn new(app: &App, visitor: &Visitor, title: impl Into<String>) -> Self {
        let badge = visitor.user().map(|user| Badge {
            name: user.handle().map(|handle| handle.to_string()).unwrap_or_default(),
            nameless: user.name.is_none(),
            has_password: user.password_hash.is_some(),
            site_admin: user.site_admin,
            unread: visitor.unread(),
        });
        let here = visitor.path_and_query();
        let query = here.split_once('?').map_or("", |(_, query)| query);
        let done = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "done");
        Self {
            title: title.into(),
            // Every page of someone logged in has at least the form that logs out.
            token: if badge.is_some() { visitor.form_token(app) } else { String::new() },
            badge,
            here: here.to_owned(),
            notice: done.and_then(|(_, what)| notice(&what)),
            can_sign_up: app.forge.settings().signup_mode == SignUpMode::Open,
            now: Now(app.forge.clock().now()),
        }
    }

    /// The same for a page with forms that strangers may send.
    pub(crate) fn with_forms(app: &App, visitor: &Visitor, title: impl Into<String>) -> Self {
        Self { token: visitor.form_token(app), ..Self::new(app, visitor, title) }
    }

    /// Where the log-in link leads: back here afterwards.
    pub(crate) fn login_link(&self) -> String {
        let next: String = form_urlencoded::byte_serialize(self.here.as_bytes()).collect();
        if self.here == "/" { "/login".into() } else { format!("/login?next={next}") }
    }

    /// Whether there is a password to ask for.
    pub(crate) fn has_password(&self) -> bool {
        self.badge.as_ref().is_none_or(|badge| badge.has_password)
    }

    /// Whose page it is, if someone is logged in.
    pub(crate) fn me(&self) -> &str {
        self.badge.as_ref().map_or("", |badge| &badge.name)
    }
}

/// The word for [`notice`] after a repository got a name: what its owner should know of the name, or else `plain`.
pub(crate) fn named(replaced: bool, folded: bool, plain: &'static str) -> &'static str {
    match (replaced, folded) {
        (true, true) => "replaced-folded",
        (true, false) => "replaced",
        (false, true) => "folded",
        (false, false) => plain,
    }
}

/// What a redirect after a form says was done. Only these words are ever shown.
fn notice(what: &str) -> Option<&'static str> {
    Some(match what {
        "saved" => "Saved.",
        "created" => "Created.",
        "replaced" => {
            "This name led to another repository until now. Whoever follows an old link to it comes here now."
        }
        "folded" => "Repository names are lower case, so it is spelt as the address says. It is found in any case.",
        "replaced-folded" => {
            "Repository names are lower case, so it is spelt as the address says. This name led to another repository \
             until now. Whoever follows an old link to it comes here now."
        }
        "archived" => "Archived. The repository is read-only until it is unarchived.",
        "unarchived" => "Unarchived. The repository can be pushed to again.",
        "public" => "The repository is public. Everyone can read it.",
        "private" => "The repository is private. It does not exist to anyone but its owner and collaborators.",
        "offered" => "The repository is offered. It stays here until the offer is accepted.",
        "accepted" => "The repository is yours. Its old address leads here.",
        "declined" => "The offer is declined. The repository stays where it is.",
        "canceled" => "The offer is cancelled. The repository stays where it is.",
        "deleted" => "The repository is deleted. Its owner can restore it for a while from the settings.",
        "restored" => "Restored, with everything that belonged to it.",
        "restored-folded" => {
            "Restored, with everything that belonged to it. Repository names are lower case, so it is spelt as the address \
             says. It is found in any case."
        }
        "old-name-released" => "The old name is released. It leads nowhere.",
        "removed" => "Removed.",
        "hook-added" => "Added. It is being pinged: reload to see whether anyone answers.",
        "sending" => "Queued. Reload to see what is answered.",
        "nothing-to-send" => "Nothing to send: there is no push to tell, or this webhook does not want pushes.",
        "added" => "Added.",
        "closed" => "Closed.",
        "reopened" => "Reopened.",
        "subscribed" => "You get notifications for this issue.",
        "unsubscribed" => "You get no more notifications for this issue.",
        "forked" => "Your copy is ready. It has its own objects and does not depend on the original.",
        "account-deleted" => "Your account is deleted.",
        "user-deleted" => "The account is deleted.",
        "logged-out" => "You are logged out.",
        "sessions-ended" => "All other sessions are ended.",
        "password" => "The password is changed. All other sessions are ended.",
        "named" => "That is your name now. Links by your key lead to it.",
        "key-linked" => "The key is linked. You can log in with it.",
        "key-unlinked" => "The key is unlinked. It opens nothing here any more.",
        "renamed" => "Renamed. The old name leads here.",
        "user-folded" => "Renamed. The old name leads here. User names are lower case, and found in any case.",
        "mail-sent" => "A mail is on its way.",
        "verified" => "The address is confirmed.",
        "welcome" => "Welcome. Confirm your address with the mail that was just sent.",
        "joined" => "Welcome. Your account is ready. If a mail asks you to confirm your address, open its link.",
        "ready" => "Welcome. The site is ready, and you administer it.",
        "reset-asked" => "If an account has that address, a mail with a link is on its way.",
        "new-password" => "The new password is set. Log in with it.",
        "everywhere" => "You are logged out everywhere.",
        "session-ended" => "That session is ended.",
        "two-factor-off" => "Two-factor login is off. The password alone is enough now.",
        "two-factor-reset" => "Two-factor login is off for this account. Its sessions are ended, and a mail was sent.",
        "revoked" => "Revoked. It opens nothing any more.",
        "released" => "The name is released. It leads nowhere, and anyone may take it.",
        "suspended" => "The account is suspended and its sessions are ended.",
        "unsuspended" => "The account may be used again.",
        "taken-in" => "The event is taken in.",
        "queued" => "The job will run soon.",
        _ => return None,
    })
}
