//! Accounts: creation, login, settings, and authentication.
//!
//! * Creation: [`sign_up`], [`setup`] (the first admin), [`add_user`] (the operator), [`invites`].
//! * Login: [`login`], [`sessions`], [`totp`]; by token or SSH key: [`authenticate`]; by nostr key: [`nostr`].
//! * Settings: [`change_password`], [`emails`], [`verify`], [`profile`], [`rename`], [`tokens`], [`ssh_keys`].
//! * Forgotten password: [`reset`]. Other accounts: [`admin`], [`suspend`].

pub mod add_token;
pub mod add_user;
pub mod admin;
pub mod authenticate;
pub mod change_password;
pub mod confirm;
pub mod delete;
pub mod emails;
pub mod invites;
pub mod login;
pub mod new_account;
pub mod nostr;
mod one_time;
pub mod password;
pub mod profile;
pub mod rename;
pub mod reset;
pub mod reset_factor;
mod second_factor;
pub mod sessions;
pub mod setup;
pub mod sign_up;
pub mod ssh_keys;
pub mod suspend;
mod ticket;
pub mod tokens;
pub mod totp;
pub mod verify;

use crate::{Fault, Forge};
use abide_core::{UserId, UserName};
use abide_macros::boxed;
use abide_store::accounts::users;

pub use crate::context::standing;
pub use abide_store::accounts::ssh_keys::SshKey;
pub use abide_store::accounts::tokens::Token;
pub use abide_store::accounts::users::User;
pub use sessions::Viewer;

/// The account with this name.
#[boxed]
pub async fn find(forge: &Forge, name: &UserName) -> Result<Option<User>, Fault> {
    Ok(users::by_name(&mut *forge.store().read().await?, name).await?)
}

/// The account that has or had this name. Its current name differs if it was renamed.
#[boxed]
pub async fn find_by_any_name(forge: &Forge, name: &UserName) -> Result<Option<User>, Fault> {
    Ok(users::by_any_name(&mut *forge.store().read().await?, name).await?)
}

/// The account with this id.
#[boxed]
pub async fn by_id(forge: &Forge, id: UserId) -> Result<Option<User>, Fault> {
    Ok(users::by_id(&mut *forge.store().read().await?, id).await?)
}

/// A page of accounts by id.
#[boxed]
pub async fn list(forge: &Forge, after: UserId, limit: i64) -> Result<Vec<User>, Fault> {
    Ok(users::list(&mut *forge.store().read().await?, after, limit).await?)
}
