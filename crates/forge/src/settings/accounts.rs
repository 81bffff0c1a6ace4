//! Sign-up, sign-in, sessions, and limits per account.

use super::Rate;
use abide_core::account::SignUpMode;
use abide_core::settings::value::{DAY, TICK};
use abide_core::settings::{count, duration, window, word};
use std::time::Duration;

/// Cost of hashing a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cost {
    /// 19 MiB and two passes.
    #[default]
    Full,
    /// The minimum of argon2id. For tests, which create accounts by the thousand.
    Least,
}

abide_core::settings! {
    /// Sign-up and invitations.
    #[derive(Debug, Clone)]
    pub struct SignUpSettings in "signup" {
        /// Who may sign up: open (everyone), invite (with an invitation) or closed (no one).
        [Common] mode: SignUpMode = "invite", word;
        /// Sign-ups per IP address in signup.window.
        per_ip: i64 = "20", count(1..);
        /// Window for signup.per_ip.
        window: Duration = "1h", window;
        /// Expiry of an invitation.
        invite_ttl: Duration = "7d", duration(TICK..);
    }
    with {
        /// Invitations that are neither accepted nor expired.
        open_invites: i64 = 1000;
        /// Expiry of the link that creates the first administrator. A restart prints a new link.
        setup_ttl: Duration = DAY * 7;
    }
}

impl SignUpSettings {
    /// Limit of `signup.per_ip`.
    pub fn by_ip(&self) -> Rate {
        Rate { times: self.per_ip, window: self.window }
    }
}

abide_core::settings! {
    /// Sign-in.
    #[derive(Debug, Clone)]
    pub struct LoginSettings in "login" {
        /// Wrong passwords per account and IP address in login.window.
        per_account: i64 = "10", count(1..);
        /// Failed sign-ins per IP address in login.window.
        [Common] per_ip: i64 = "50", count(1..);
        /// Wrong two-factor codes per account in login.window.
        second_factor: i64 = "10", count(1..);
        /// Window for the login limits.
        window: Duration = "15m", window;
    }
    with {
        password_cost: Cost = Cost::default();
        /// Passwords hashed concurrently. Each takes 19 MiB and one core.
        hashes_at_once: usize = 4;
        /// Passwords queued for hashing; further sign-ins are refused with a retry hint.
        hashes_waiting: usize = 64;
    }
}

impl LoginSettings {
    /// Limit of `login.per_account`.
    pub fn by_account(&self) -> Rate {
        Rate { times: self.per_account, window: self.window }
    }

    /// Limit of `login.per_ip`.
    pub fn by_ip(&self) -> Rate {
        Rate { times: self.per_ip, window: self.window }
    }

    /// Limit of `login.second_factor`.
    pub fn by_factor(&self) -> Rate {
        Rate { times: self.second_factor, window: self.window }
    }
}

abide_core::settings! {
    /// Sessions of browsers.
    #[derive(Debug, Clone)]
    pub struct SessionSettings in "session" {
        /// Expiry of an unused session.
        [Common] ttl: Duration = "30d", duration(TICK..);
        /// Maximum sessions per account. Beyond it, the least recently used session ends.
        per_user: i64 = "50", count(1..);
    }
}

abide_core::settings! {
    /// Password resets.
    #[derive(Debug, Clone)]
    pub struct ResetSettings in "reset" {
        /// Password resets requested per IP address in reset.window.
        per_ip: i64 = "20", count(1..);
        /// Password resets requested per e-mail address in reset.window.
        per_email: i64 = "3", count(1..);
        /// Window for reset.per_ip and reset.per_email.
        window: Duration = "1h", window;
        /// Expiry of a password reset link.
        ttl: Duration = "1h", duration(TICK..);
    }
}

impl ResetSettings {
    /// Limit of `reset.per_ip`.
    pub fn by_ip(&self) -> Rate {
        Rate { times: self.per_ip, window: self.window }
    }

    /// Limit of `reset.per_email`.
    pub fn by_email(&self) -> Rate {
        Rate { times: self.per_email, window: self.window }
    }
}

abide_core::settings! {
    /// Items per account.
    #[derive(Debug, Clone)]
    pub struct AccountSettings in "accounts" {
        /// Maximum active access tokens per account.
        tokens: i64 = "200", count(1..);
        /// Access tokens created per account per hour.
        tokens_made as token_limit_per_hour: Rate = "100", Rate::hourly;
        /// Maximum SSH keys per account.
        ssh_keys: i64 = "200", count(1..);
    }
    with {
        /// E-mail addresses per account.
        emails: i64 = 10;
        /// Old names reserved per account. Further renames are refused.
        old_names: i64 = 5;
    }
}
