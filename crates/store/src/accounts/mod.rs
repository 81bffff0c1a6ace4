//! Accounts: who someone is and how they sign in.

pub mod emails;
pub mod links;
pub mod retire;
pub mod sessions;
pub mod ssh_keys;
pub mod tokens;
pub mod totp;
pub mod user_keys;
pub mod user_merge;
pub mod user_redirects;
pub mod users;
