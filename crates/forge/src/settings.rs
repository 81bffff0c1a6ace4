//! Settings of the use cases. The command line reads them from the configuration.
//!
//! One file per area.

mod accounts;
mod attention;
mod grasp;
mod issues;
mod mail;
mod relay;
mod repos;
mod sync;
mod webhooks;

use abide_core::account::Announce;
use abide_core::settings::count;
use abide_core::settings::value::HOUR;
use std::time::Duration;

pub use accounts::{AccountSettings, Cost, LoginSettings, ResetSettings, SessionSettings, SignUpSettings};
pub use attention::AttentionSettings;
pub use grasp::GraspSettings;
pub use issues::IssueSettings;
pub use mail::{MailSettings, SmtpUrl};
pub use relay::RelaySettings;
pub use repos::{Browsing, DiskSettings, JobSettings, LifecycleSettings, PushSettings, RepoSettings};
pub use sync::SyncSettings;
pub use webhooks::{OutboundSettings, WebhookSettings};

abide_core::settings! {
    /// Settings of all use cases.
    #[derive(Debug, Clone)]
    pub struct Settings
    with {
        /// URL of this server, without a slash at the end.
        public_url: String = "http://127.0.0.1:7464".into();
        /// Prefix of SSH clone URLs, without a slash at the end.
        ssh_url: String = "ssh://git@127.0.0.1:7465".into();
        /// Time that a stopping server waits for running work.
        drain_timeout: Duration = Duration::from_secs(30);
    }
    sections {
        disk: DiskSettings;
        git: PushSettings;
        repos: RepoSettings;
        lifecycle: LifecycleSettings;
        attention: AttentionSettings;
        browse: Browsing;
        signup: SignUpSettings;
        login: LoginSettings;
        session: SessionSettings;
        reset: ResetSettings;
        accounts: AccountSettings;
        mail: MailSettings;
        issues: IssueSettings;
        outbound: OutboundSettings;
        webhooks: WebhookSettings;
        grasp: GraspSettings;
        relay: RelaySettings;
        sync: SyncSettings;
        jobs: JobSettings;
    }
}

impl Settings {
    /// Keys that may announce repositories: as set, or as sign-up is.
    pub fn announce(&self) -> Announce {
        let follows = || Announce::default_for(self.signup.mode, !self.grasp.allow.is_empty());
        self.grasp.announce.unwrap_or_else(follows)
    }
}

/// A number of actions in a window of time.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    pub times: i64,
    pub window: Duration,
}

impl Rate {
    /// Parses the number of actions per hour, at least one.
    fn hourly(text: &str) -> Result<Self, String> {
        count(1..)(text).map(|times| Self { times, window: HOUR })
    }
}
