//! The accounts behind many keys at once, for the rules.

use crate::{Fault, Forge};
use abide_nostr::grasp::signer::{KeyAccount, Signer};
use abide_nostr::{PublicKey, nip19};
use abide_store::accounts::user_keys;
use abide_store::{Conn, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// The signers behind some keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signers(BTreeMap<PublicKey, Signer>);

impl Signers {
    /// Looks the keys up in two statements, however many there are. A key stays suspended if its account was deleted
    /// while suspended.
    pub(crate) async fn load(conn: &mut Conn, keys: impl IntoIterator<Item = PublicKey>) -> Result<Self, StoreError> {
        let keys: BTreeSet<PublicKey> = keys.into_iter().collect();
        let npubs: Vec<String> = keys.iter().map(nip19::npub).collect();
        let accounts = user_keys::accounts(conn, &npubs).await?;
        let strangers: Vec<String> = npubs.iter().filter(|npub| !accounts.contains_key(*npub)).cloned().collect();
        let barred = user_keys::barred(conn, &strangers).await?;
        let signer = |npub: &String| {
            let account = accounts.get(npub);
            let account = account.map(|found| KeyAccount { named: found.named, suspended: found.suspended });
            Signer::of(
                account.or_else(|| barred.contains(npub).then_some(KeyAccount { named: false, suspended: true })),
            )
        };
        Ok(Self(keys.iter().copied().zip(npubs.iter().map(signer)).collect()))
    }

    /// The signer behind a key. A key that was not looked up counts as a stranger.
    pub(crate) fn of(&self, key: &PublicKey) -> Signer {
        self.0.get(key).copied().unwrap_or(Signer::Stranger)
    }

    /// Whether the account of a key is suspended.
    pub(crate) fn is_suspended(&self, key: &PublicKey) -> bool {
        self.of(key) == Signer::Suspended
    }
}

/// The signer behind one key.
pub(crate) async fn signer(conn: &mut Conn, key: PublicKey) -> Result<Signer, StoreError> {
    Ok(Signers::load(conn, [key]).await?.of(&key))
}

/// Whether the account of a key is suspended, or was suspended when it was deleted. Any other key without an account is
/// a stranger's.
pub(crate) async fn is_suspended(forge: &Forge, key: &PublicKey) -> Result<bool, Fault> {
    Ok(signer(&mut *forge.store().read().await?, *key).await? == Signer::Suspended)
}
