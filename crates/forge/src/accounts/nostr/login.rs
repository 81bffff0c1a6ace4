//! Login with a key: into its account, or into a new one if sign-up is open.

use super::{Answer, NostrError, Proved, check, is_barred, use_up};
use crate::accounts::login::{self, Outcome, SecondFactorTicket};
use crate::accounts::{sign_up, ticket};
use crate::disk::{self, Writer};
use crate::emit::emit_key_account;
use crate::{Fault, Forge, throttle};
use abide_core::account::{KeyAccount, KeyLogin, SignUpMode, key_login};
use abide_macros::boxed;
use abide_store::accounts::users::{self, User};
use abide_store::accounts::{totp, user_keys};
use abide_store::throttles::{self, Limit};
use abide_store::{StoreError, Tx, nostr};
use std::net::IpAddr;

/// Logs the owner of a key in, or asks for the second factor of the account.
#[boxed]
pub async fn login(forge: &Forge, answer: &Answer, agent: &str, ip: Option<IpAddr>) -> Result<Outcome, NostrError> {
    count(forge, ip).await?;
    let unit = Unit {
        proved: check(forge, answer)?,
        mode: forge.settings().signup.mode,
        sign_ups: throttle::limit(sign_up::SCOPE, forge.settings().signup.by_ip()),
        network: throttle::network(ip),
        full: full(forge),
        ip,
    };
    let known = match forge.store().write(unit.clone(), |tx, unit| Box::pin(admit(tx, unit))).await {
        // Another login of this key created the account at the same moment, so it exists now.
        Err(NostrError::KeyTaken) => forge.store().write(unit, |tx, unit| Box::pin(admit(tx, unit))).await?,
        admitted => admitted?,
    };
    if known.user.suspended_at.is_some() {
        return Err(NostrError::Suspended);
    }
    if known.needs_factor {
        return Ok(Outcome::SecondFactor(SecondFactorTicket(ticket::issue(forge, &known.user).into())));
    }
    match login::open_unchanged(forge, &known.user, agent, ip).await {
        Ok(cookie) => Ok(Outcome::In(cookie)),
        Err(login::LoginError::Fault(fault)) => Err(fault.into()),
        // Suspended between the two transactions.
        Err(_) => Err(NostrError::Suspended),
    }
}

/// Login works while the disk is nearly full, but a new account needs room.
fn full(forge: &Forge) -> Option<(u64, u64, &'static str)> {
    match disk::ensure_room(forge, Writer::Stranger) {
        Err(Fault::DiskFull { free_percent, reserve, setting }) => Some((free_percent, reserve, setting)),
        _ => None,
    }
}

/// Counts an attempt before any check, together with password attempts.
async fn count(forge: &Forge, ip: Option<IpAddr>) -> Result<(), NostrError> {
    let unit = (throttle::limit(login::BY_NETWORK, forge.settings().login.by_ip()), throttle::network(ip));
    let hit = forge.store().write(unit, |tx, (limit, network)| Box::pin(throttles::hit(tx, *limit, network)));
    match hit.await.map_err(|error: StoreError| NostrError::from(error))? {
        Some(retry_after) => Err(NostrError::Throttled { retry_after }),
        None => Ok(()),
    }
}

#[derive(Clone)]
struct Unit {
    proved: Proved,
    mode: SignUpMode,
    sign_ups: Limit,
    network: String,
    /// Free and required percentage of a disk that is too full for a new account.
    full: Option<(u64, u64, &'static str)>,
    ip: Option<IpAddr>,
}

struct Known {
    user: User,
    needs_factor: bool,
}

/// Uses up the proof and finds or creates the account.
async fn admit(tx: &mut Tx, unit: &Unit) -> Result<Known, NostrError> {
    use_up(tx, &unit.proved).await?;
    throttles::forgive(tx, login::BY_NETWORK, &unit.network).await?;
    let npub = unit.proved.npub();
    let found = user_keys::by_npub(tx, &npub).await?;
    let account = match &found {
        None if is_barred(tx, &npub).await? => return Err(NostrError::Suspended),
        None => KeyAccount::None,
        Some(user) if user.suspended_at.is_some() => KeyAccount::Suspended,
        Some(_) => KeyAccount::Live,
    };
    let user = match (key_login(account, unit.mode), found) {
        (KeyLogin::Make, _) => make(tx, unit, &npub).await?,
        (KeyLogin::NeedsInvite, _) => return Err(NostrError::NeedsInvite),
        (KeyLogin::Closed, _) => return Err(NostrError::Closed),
        (KeyLogin::Enter | KeyLogin::Suspended, Some(user)) => user,
        (KeyLogin::Enter | KeyLogin::Suspended, None) => return Err(NostrError::UnknownKey),
    };
    let factor = totp::get(tx, user.id).await?;
    Ok(Known { user, needs_factor: factor.is_some_and(|totp| totp.confirmed_at.is_some()) })
}

async fn make(tx: &mut Tx, unit: &Unit, npub: &str) -> Result<User, NostrError> {
    if let Some((free_percent, reserve, setting)) = unit.full {
        return Err(Fault::DiskFull { free_percent, reserve, setting }.into());
    }
    if let Some(retry_after) = throttles::hit(tx, unit.sign_ups, &unit.network).await? {
        return Err(NostrError::Throttled { retry_after });
    }
    let id = nostr::repos::user_for(tx, npub).await?;
    emit_key_account(tx, id, npub, unit.ip).await?;
    let gone = || Fault::Internal("a new account vanished".into());
    Ok(users::by_id(tx, id).await?.ok_or_else(gone)?)
}
