//! Password hashing with argon2id. It runs off the async threads because it takes tens of milliseconds, and with
//! limited concurrency because each hash takes 19 MiB.

use crate::blocking::blocking;
use crate::{Fault, Forge};
use abide_core::Redacted;
use abide_core::account::PASSWORD_LEN;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::Arc;
use tokio::sync::Semaphore;

pub use crate::settings::Cost;

/// Minimum length of a password.
pub const MIN_LEN: usize = *PASSWORD_LEN.start();
/// Maximum length of a password.
pub const MAX_LEN: usize = *PASSWORD_LEN.end();

impl Cost {
    fn argon2(self) -> Argon2<'static> {
        let params = match self {
            Self::Full => Params::DEFAULT,
            Self::Least => Params::new(8, 1, 1, None).expect("the least that is allowed"),
        };
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
    }

    /// Hash for unknown accounts, so that they cost the same as known ones. It matches nothing, and has the parameters
    /// of all our hashes.
    fn nobodys(self) -> &'static str {
        match self {
            Self::Full => {
                "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            }
            Self::Least => {
                "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            }
        }
    }
}

/// Limits of parallel and waiting password hashes.
pub(crate) struct Hashing {
    cost: Cost,
    at_once: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Hashing {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    pub(crate) fn new(cost: Cost, at_once: usize, waiting: usize) -> Self {
        let at_once = at_once.max(1);
        Self { cost, at_once: Arc::new(Semaphore::new(at_once)), waiting: Arc::new(Semaphore::new(at_once + waiting)) }
    }

    /// Runs expensive work when a slot is free. A cancelled caller does not stop the work, so the slot is held until
    /// the work ends.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
        let slot = self.waiting.clone().try_acquire_owned().map_err(|_| Fault::Crowded)?;
        let turn = self.at_once.clone().acquire_owned().await.expect("the semaphore is never closed");
        blocking("hashing a password", move || {
            let done = work();
            drop((turn, slot));
            done
        })
        .await
    }
}

/// Hashes a password with a fresh salt.
pub(crate) async fn hash(forge: &Forge, password: Redacted<String>) -> Result<Redacted<String>, Fault> {
    let cost = Hashing::of(forge).cost;
    let hash = move || cost.argon2().hash_password(password.expose().as_bytes()).map(|hash| hash.to_string().into());
    let hashed = Hashing::of(forge).run(hash).await?;
    hashed.map_err(|error| Fault::Internal(format!("hashing a password failed: {error}")))
}

/// Whether the password matches the hash. A damaged hash matches nothing, and a missing hash costs the same time.
pub(crate) async fn verify(
    forge: &Forge,
    password: Redacted<String>,
    hash: Option<Redacted<String>>,
) -> Result<bool, Fault> {
    let hash = hash.unwrap_or_else(|| Hashing::of(forge).cost.nobodys().into());
    Hashing::of(forge).run(move || matches(password.expose(), hash.expose())).await
}

fn matches(password: &str, hash: &str) -> bool {
    // An over-long password cannot be right, and would only take longer to hash.
    let password = if password.chars().count() <= MAX_LEN { password } else { "" };
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_matches_its_password_only_and_is_argon2id() {
        for cost in [Cost::Full, Cost::Least] {
            let hash = cost.argon2().hash_password(b"correct horse").unwrap().to_string();
            assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
            assert!(matches("correct horse", &hash));
            assert!(!matches("wrong horse", &hash));
            assert!(!matches("anything", "damaged"));
            for password in ["", "correct horse", &"x".repeat(MAX_LEN + 1)] {
                assert!(!matches(password, cost.nobodys()), "{password:?}");
            }
        }
    }

    #[test]
    fn checking_nobodys_password_costs_what_checking_anybodys_does() {
        let shape = |hash: &str| {
            let hash = PasswordHash::new(hash).unwrap();
            (hash.algorithm.to_string(), hash.version, hash.params.to_string(), hash.hash.map(|hash| hash.len()))
        };
        for cost in [Cost::Full, Cost::Least] {
            let ours = cost.argon2().hash_password(b"correct horse").unwrap().to_string();
            assert_eq!(shape(cost.nobodys()), shape(&ours));
        }
    }

    #[test]
    fn unless_told_otherwise_a_hash_costs_what_is_advised() {
        let (params, advised) = (Cost::default().argon2().params().clone(), (19 * 1024, 2, 1));
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), advised);
    }

    #[tokio::test]
    async fn more_than_may_wait_are_sent_away() {
        let hashing = Hashing::new(Cost::Least, 1, 1);
        let (first, second) = (hashing.waiting.try_acquire(), hashing.waiting.try_acquire());
        assert!(first.is_ok() && second.is_ok(), "one runs and one waits");
        assert!(matches!(hashing.run(|| ()).await, Err(Fault::Crowded)));
        drop(first);
        assert!(hashing.run(|| ()).await.is_ok());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_nobody_waits_for_any_more_keeps_its_place_until_it_has_ended() {
        let hashing = Hashing::new(Cost::Least, 1, 0);
        let (begun, end) = (Arc::new(tokio::sync::Notify::new()), std::sync::mpsc::channel::<()>());
        let work = {
            let (begun, end) = (begun.clone(), end.1);
            hashing.run(move || {
                begun.notify_one();
                let _ = end.recv();
            })
        };
        tokio::select! {
            _ = work => panic!("it was not stopped"),
            () = begun.notified() => {}
        }
        assert!(matches!(hashing.run(|| ()).await, Err(Fault::Crowded)));
        drop(end.0);
        let _ended = hashing.at_once.acquire().await.expect("never closed");
    }
}
