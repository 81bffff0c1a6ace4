//! Stars, watches, follows, notifications and the event log.

use super::Rate;
use abide_core::settings::duration;
use abide_core::settings::value::TICK;
use std::time::Duration;

abide_core::settings! {
    /// Stars, watches, follows, notifications and the event log.
    #[derive(Debug, Clone)]
    pub struct AttentionSettings in "attention" {
        /// Stars and unstars per account per hour.
        stars as star_limit_per_hour: Rate = "100", Rate::hourly;
        /// Changes of watch level per account per hour.
        watches as watch_limit_per_hour: Rate = "100", Rate::hourly;
        /// Follows and unfollows per account per hour.
        follows as follow_limit_per_hour: Rate = "100", Rate::hourly;
        /// Mails per hour from one account to one other about transfers and new collaborators. The inbox gets all of them.
        mails_to_one as mails_to_one_per_hour: Rate = "5", Rate::hourly;
        /// Retention of the event log. Events that notifications or webhooks have not processed yet are kept longer.
        [Common] event_retention: Duration = "400d", duration(TICK..);
        /// Minimum time between two mails about one thread to one person; later events are collected in the next mail.
        mail_window: Duration = "10m", duration(..);
    }
    with {
        /// Attempts of a consumer at an event before the event is marked as failed.
        event_tries: i64 = 5;
    }
}
