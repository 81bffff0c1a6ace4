//! Links a key to the viewer's account, and unlinks it.

use super::merge::merge;
use super::{Answer, NostrError, Proved, check, is_barred, use_up};
use crate::accounts::confirm as ask;
use crate::accounts::sessions::Viewer;
use crate::emit::{AuditAction, Subject, Who, audit_account, emit};
use crate::{Fault, Forge};
use abide_core::UserId;
use abide_core::account::may_unlink;
use abide_core::event::{LinkedKey, Payload, Publicity};
use abide_macros::boxed;
use abide_store::accounts::{sessions, user_keys, users};
use abide_store::{StoreError, Tx};

/// Links the key that an answer proves to the viewer's account.
#[boxed]
pub async fn link(forge: &Forge, viewer: &Viewer, answer: &Answer, password: String) -> Result<(), NostrError> {
    let proved = check(forge, answer)?;
    ask::password(forge, viewer, password).await?;
    let unit = (proved, viewer.user.id, Who::from(&viewer.caller));
    forge.store().write(unit, |tx, (proved, user, who)| Box::pin(write_link(tx, proved, *user, who))).await
}

async fn write_link(tx: &mut Tx, proved: &Proved, user: UserId, who: &Who) -> Result<(), NostrError> {
    use_up(tx, proved).await?;
    let npub = proved.npub();
    let account = users::lock(tx, user).await?.ok_or_else(gone)?;
    if account.npub.is_some() {
        return Err(NostrError::HasKey);
    }
    if is_barred(tx, &npub).await? {
        return Err(NostrError::Suspended);
    }
    if let Some(other) = user_keys::by_npub(tx, &npub).await? {
        let other = users::lock(tx, other.id).await?.ok_or_else(gone)?;
        merge(tx, who, &other, user).await?;
    }
    user_keys::set(tx, user, Some(&npub)).await?;
    log(tx, who, true, user, &npub).await?;
    Ok(())
}

/// Fails unless an answer proves the viewer's own key; then renews the confirmation of the session.
#[boxed]
pub async fn confirm(forge: &Forge, viewer: &Viewer, answer: &Answer) -> Result<(), NostrError> {
    let proved = check(forge, answer)?;
    let account = users::by_id(&mut *forge.store().read().await?, viewer.user.id).await?;
    if account.and_then(|account| account.npub) != Some(proved.npub()) {
        return Err(NostrError::UnknownKey);
    }
    let unit = (proved, viewer.user.id, hex::decode(&viewer.session_id).unwrap_or_default());
    let noted = forge.store().write(unit, |tx, (proved, user, hash)| {
        Box::pin(async move {
            use_up(tx, proved).await?;
            Ok::<_, NostrError>(sessions::confirm(tx, *user, hash).await?)
        })
    });
    noted.await
}

/// Unlinks the viewer's key.
#[boxed]
pub async fn unlink(forge: &Forge, viewer: &Viewer, password: String) -> Result<(), NostrError> {
    ask::password(forge, viewer, password).await?;
    let unit = (viewer.user.id, Who::from(&viewer.caller));
    forge.store().write(unit, |tx, (user, who)| Box::pin(write_unlink(tx, *user, who))).await
}

async fn write_unlink(tx: &mut Tx, user: UserId, who: &Who) -> Result<(), NostrError> {
    let account = users::lock(tx, user).await?.ok_or_else(gone)?;
    let governs = user_keys::governs(tx, user).await?;
    may_unlink(account.npub.is_some(), account.password_hash.is_some(), governs)?;
    user_keys::set(tx, user, None).await?;
    log(tx, who, false, user, account.npub.as_deref().unwrap_or_default()).await?;
    Ok(())
}

fn gone() -> Fault {
    Fault::Internal("the account vanished".into())
}

/// Writes the audit row and the event of a key that was linked or unlinked.
async fn log(tx: &mut Tx, who: &Who, linked: bool, user: UserId, npub: &str) -> Result<(), StoreError> {
    let key = LinkedKey { user_id: user, npub: npub.to_owned() };
    let (action, payload) = match linked {
        true => (AuditAction::KeyLinked, Payload::KeyLinked(key)),
        false => (AuditAction::KeyUnlinked, Payload::KeyUnlinked(key)),
    };
    audit_account(tx, who, action, payload.details()).await?;
    emit(tx, who, Subject::User(user), Publicity::Public, payload).await
}
