//! SSH keys: adding, listing, removing.

use crate::emit::{AuditAction, Who, audit_account};
use crate::{Caller, Fault, Forge};
use abide_core::{InputError, UserId};
use abide_macros::boxed;
use abide_store::StoreError;
use abide_store::accounts::ssh_keys::{self, NewSshKey, SshKey};
use abide_store::accounts::users;
use serde_json::json;
use ssh_key::public::KeyData;
use ssh_key::{HashAlg, PublicKey};

/// Why the key was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddKeyError {
    /// Not a public key line.
    #[error("a public key is needed, the content of a .pub file such as ssh-ed25519 AAAA…; never send a private key")]
    Malformed,
    /// The algorithm is too weak or unknown.
    #[error("use ed25519, ecdsa, or rsa with at least 2048 bits; create one with ssh-keygen -t ed25519")]
    Weak,
    /// The title breaks a rule.
    #[error("must have at most 200 characters and no control characters")]
    Title,
    /// An account has this key already.
    #[error("this key is already in use")]
    Taken,
    /// The account has reached its key limit.
    #[error("an account can have at most {0} keys; remove one first")]
    TooMany(i64),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for AddKeyError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Malformed | Self::Weak | Self::Taken | Self::TooMany(_) => Some("key"),
            Self::Title => Some("title"),
            Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for AddKeyError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unique => Self::Taken,
            other => Self::Fault(other.into()),
        }
    }
}

/// Adds a key to an account.
#[boxed]
pub async fn add(forge: &Forge, who: &Caller, user: UserId, title: &str, line: &str) -> Result<SshKey, AddKeyError> {
    let key = parse(line)?;
    let title = if title.trim().is_empty() { key.comment().as_str_lossy().to_owned() } else { title.trim().to_owned() };
    if title.chars().count() > 200 || title.chars().any(char::is_control) {
        return Err(AddKeyError::Title);
    }
    let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
    let mut bare = key;
    bare.set_comment("");
    let public_key = bare.to_openssh().map_err(|_| AddKeyError::Malformed)?.trim().to_owned();
    let new = NewSshKey { user_id: user, title, fingerprint, public_key };
    let input = (new, Who::from(who), forge.settings().accounts.ssh_keys);
    let id = forge
        .store()
        .write(input, |tx, (new, who, most)| {
            Box::pin(async move {
                // The lock on the account serialises parallel requests, so that the limit cannot be exceeded.
                users::lock(tx, new.user_id).await?;
                if ssh_keys::count(tx, new.user_id).await? >= *most {
                    return Err(AddKeyError::TooMany(*most));
                }
                let id = ssh_keys::insert(tx, new).await?;
                let meta = json!({ "key_id": id, "user_id": new.user_id.get(), "fingerprint": new.fingerprint });
                audit_account(tx, who, AuditAction::SshKeyAdded, meta).await?;
                Ok::<_, AddKeyError>(id)
            })
        })
        .await?;
    get(forge, user, id).await?.ok_or_else(|| Fault::Internal("a key vanished right after it was added".into()).into())
}

fn parse(line: &str) -> Result<PublicKey, AddKeyError> {
    let line = line.trim();
    if line.len() > 16 * 1024 || line.lines().count() != 1 {
        return Err(AddKeyError::Malformed);
    }
    let key = PublicKey::from_openssh(line).map_err(|_| AddKeyError::Malformed)?;
    let strong = match key.key_data() {
        KeyData::Ed25519(_) | KeyData::SkEd25519(_) => true,
        KeyData::Rsa(rsa) => rsa.key_size() >= 2048,
        _ => key.algorithm().as_str().contains("ecdsa"),
    };
    if strong { Ok(key) } else { Err(AddKeyError::Weak) }
}

/// A user's key.
#[boxed]
pub async fn get(forge: &Forge, user: UserId, id: i64) -> Result<Option<SshKey>, Fault> {
    Ok(ssh_keys::by_id(&mut *forge.store().read().await?, user, id).await?)
}

/// A page of a user's keys, and their total number.
#[boxed]
pub async fn list(forge: &Forge, user: UserId, limit: i64, offset: i64) -> Result<(Vec<SshKey>, i64), Fault> {
    let mut conn = forge.store().read().await?;
    let keys = ssh_keys::list(&mut conn, user, limit, offset).await?;
    Ok((keys, ssh_keys::count(&mut conn, user).await?))
}

/// Removes a user's key; `false` if the user has no such key.
#[boxed]
pub async fn remove(forge: &Forge, who: &Caller, user: UserId, id: i64) -> Result<bool, Fault> {
    forge
        .store()
        .write((user, id, Who::from(who)), |tx, (user, id, who)| {
            Box::pin(async move {
                let removed = ssh_keys::remove(tx, *user, *id).await?;
                if removed {
                    audit_account(tx, who, AuditAction::SshKeyRemoved, json!({ "key_id": id, "user_id": user.get() }))
                        .await?;
                }
                Ok(removed)
            })
        })
        .await
}
