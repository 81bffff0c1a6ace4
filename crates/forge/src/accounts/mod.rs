//! Accounts: adding people, their tokens and keys, and finding out who someone is.

pub mod add_token;
pub mod add_user;
pub mod authenticate;
pub mod password;
pub mod ssh_keys;
pub mod suspend;
pub mod tokens;

use crate::{Fault, Forge};
use abide_core::{UserId, UserName};
use abide_store::users;

pub use abide_store::ssh_keys::SshKey;
pub use abide_store::tokens::Token;
pub use abide_store::users::User;

/// The account of that name.
pub async fn find(forge: &Forge, name: &UserName) -> Result<Option<User>, Fault> {
    Ok(users::by_name(&mut *forge.store().read().await?, name).await?)
}

/// The account with that id.
pub async fn by_id(forge: &Forge, id: UserId) -> Result<Option<User>, Fault> {
    Ok(users::by_id(&mut *forge.store().read().await?, id).await?)
}

/// A page of accounts by id.
pub async fn list(forge: &Forge, after: UserId, limit: i64) -> Result<Vec<User>, Fault> {
    Ok(users::list(&mut *forge.store().read().await?, after, limit).await?)
}
