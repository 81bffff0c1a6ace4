//! Attention: stars, watches and follows, and the feeds and notifications that follow from them.

pub mod feeds;
pub mod follows;
pub mod inbox;
pub mod lists;
pub mod notification_mail;
pub mod notifications;
pub mod stars;
pub mod trending;
pub mod watches;
