//! Data of the layout around every page.

use super::visitor::Visitor;
use crate::App;
use crate::show::time::Now;
use abide_forge::accounts::sign_up::SignUpMode;
use abide_forge::notify::inbox::BADGE;

/// Account of the visitor, as the layout shows it.
#[derive(Debug, Clone)]
pub(crate) struct Badge {
    /// Name in URLs.
    pub name: String,
    /// Whether the account has no name yet.
    pub nameless: bool,
    pub has_password: bool,
    pub site_admin: bool,
    /// Unread notifications, counted up to a limit.
    pub unread: i64,
}

impl Badge {
    /// Number of unread notifications as text.
    pub(crate) fn waiting(&self) -> String {
        if self.unread < BADGE { self.unread.to_string() } else { format!("{}+", BADGE - 1) }
    }
}

/// Data of the layout around a page.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub title: String,
    pub badge: Option<Badge>,
    /// CSRF token of every form.
    pub token: String,
    /// URL that the sign-in returns to.
    pub here: String,
    /// Message about the last action, shown at the top.
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
            // Pages of signed-in visitors always have a form: the one that signs out.
            token: if badge.is_some() { visitor.form_token(app) } else { String::new() },
            badge,
            here: here.to_owned(),
            notice: done.and_then(|(_, what)| notice(&what)),
            can_sign_up: app.forge.settings().signup.mode == SignUpMode::Open,
            now: Now(app.forge.clock().now()),
        }
    }

    /// Layout of a page with forms for visitors who are not signed in.
    pub(crate) fn with_forms(app: &App, visitor: &Visitor, title: impl Into<String>) -> Self {
        Self { token: visitor.form_token(app), ..Self::new(app, visitor, title) }
    }

    /// URL of the sign-in page, which returns here.
    pub(crate) fn login_link(&self) -> String {
        let next: String = form_urlencoded::byte_serialize(self.here.as_bytes()).collect();
        if self.here == "/" { "/login".into() } else { format!("/login?next={next}") }
    }

    /// Whether the visitor's account has a password.
    pub(crate) fn has_password(&self) -> bool {
        self.badge.as_ref().is_none_or(|badge| badge.has_password)
    }

    /// Name of the visitor, or empty.
    pub(crate) fn me(&self) -> &str {
        self.badge.as_ref().map_or("", |badge| &badge.name)
    }
}

/// Key of the [`notice`] after a repository got a name: a hint about the name, or else `plain`.
pub(crate) fn named(replaced: bool, folded: bool, plain: &'static str) -> &'static str {
    match (replaced, folded) {
        (true, true) => "replaced-folded",
        (true, false) => "replaced",
        (false, true) => "folded",
        (false, false) => plain,
    }
}

/// Message after a form's redirect. The URL has only its key, so that links cannot put other texts on a page.
fn notice(what: &str) -> Option<&'static str> {
    Some(match what {
        "saved" => "Saved.",
        "created" => "Created.",
        "replaced" => {
            "This name redirected to another repository until now. Old links with this name now open this repository."
        }
        "folded" => "Repository names are lowercase, so the name was converted. Links work in any case.",
        "replaced-folded" => {
            "Repository names are lowercase, so the name was converted. This name redirected to another repository until \
             now. Old links with this name now open this repository."
        }
        "archived" => "Archived. The repository is read-only until it is unarchived.",
        "unarchived" => "Unarchived. The repository accepts pushes again.",
        "public" => "The repository is public. Everyone can read it.",
        "private" => "The repository is private. Only its owner and collaborators can see it.",
        "offered" => "Transfer offered. The repository stays here until the new owner accepts.",
        "accepted" => "You own this repository now. Its old URL redirects here.",
        "declined" => "Transfer declined. The repository does not move.",
        "canceled" => "Transfer cancelled. The repository does not move.",
        "deleted" => {
            "Repository deleted. Its owner can restore it until the grace period ends, under Settings, Deleted repositories."
        }
        "restored" => "Repository restored with all its data.",
        "restored-folded" => {
            "Repository restored with all its data. Repository names are lowercase, so the name was converted. Links work \
             in any case."
        }
        "old-name-released" => "Old name released. It no longer redirects.",
        "removed" => "Removed.",
        "hook-added" => "Webhook added. A ping was sent; reload to see the response.",
        "sending" => "Delivery queued. Reload to see the response.",
        "nothing-to-send" => "Nothing to send: there is no push yet, or this webhook is not subscribed to push events.",
        "added" => "Added.",
        "closed" => "Closed.",
        "reopened" => "Reopened.",
        "subscribed" => "You get notifications for this issue.",
        "unsubscribed" => "You no longer get notifications for this issue.",
        "forked" => "Fork created. It does not depend on the original.",
        "account-deleted" => "Account deleted.",
        "user-deleted" => "Account deleted.",
        "logged-out" => "You are signed out.",
        "sessions-ended" => "All other sessions have ended.",
        "password" => "Password changed. All other sessions have ended.",
        "named" => "User name saved. Links with your key redirect to it.",
        "key-linked" => "Nostr key linked. You can sign in with it.",
        "key-unlinked" => "Nostr key unlinked. You can no longer sign in with it.",
        "renamed" => "Renamed. The old name redirects here.",
        "user-folded" => "Renamed. The old name redirects here. User names are lowercase; links work in any case.",
        "mail-sent" => "Mail sent.",
        "verified" => "E-mail address verified.",
        "welcome" => "Welcome. Open the link in the mail we just sent to verify your address.",
        "joined" => {
            "Welcome. Your account is ready. An address that an invitation was sent to is verified; for any other, open the link in the mail."
        }
        "ready" => "Welcome. The site is ready, and you are its administrator.",
        "reset-asked" => "If an account has this address, we sent a mail with a reset link to it.",
        "new-password" => "Password set. Sign in with it.",
        "everywhere" => "You are signed out everywhere.",
        "session-ended" => "Session ended.",
        "two-factor-off" => "Two-factor authentication is off. You sign in with your password alone.",
        "two-factor-reset" => {
            "Two-factor authentication is off for this account. Its sessions have ended, and a mail was sent."
        }
        "revoked" => "Token revoked.",
        "released" => "Name released. It no longer redirects, and anyone may take it.",
        "suspended" => "Account suspended. Its sessions have ended.",
        "unsuspended" => "Suspension lifted.",
        "taken-in" => "Event processed.",
        "queued" => "Job queued.",
        _ => return None,
    })
}
