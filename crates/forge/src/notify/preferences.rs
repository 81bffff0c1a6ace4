//! E-mail preferences: one choice per reason.

use super::Reason;
use super::inbox::account;
use crate::{Access, Caller, Forge};
use abide_macros::boxed;
use abide_store::attention::notification_mail;

/// Every reason that is mailed, and whether the caller wants it.
#[boxed]
pub async fn mails(forge: &Forge, caller: &Caller) -> Result<Vec<(Reason, bool)>, Access> {
    let user = account(caller)?;
    let unwanted = notification_mail::opted_out(&mut *forge.store().read().await?, user).await?;
    let mailed = Reason::ALL.iter().copied().filter(|reason| reason.is_mailed());
    Ok(mailed.map(|reason| (reason, !unwanted.contains(&reason))).collect())
}

/// Sets the reasons for which the caller gets mail.
#[boxed]
pub async fn set_mails(forge: &Forge, caller: &Caller, wanted: &[Reason]) -> Result<(), Access> {
    let unit = (account(caller)?, wanted.to_vec());
    forge
        .store()
        .write(unit, |tx, (user, wanted)| {
            Box::pin(async move {
                for &reason in Reason::ALL.iter().filter(|reason| reason.is_mailed()) {
                    notification_mail::set_wanted(tx, *user, reason, wanted.contains(&reason)).await?;
                }
                Ok(())
            })
        })
        .await
}
