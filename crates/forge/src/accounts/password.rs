//! Passwords: hashed with argon2id, off the async threads because that takes tens of milliseconds.

use crate::Fault;
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};

/// Shortest password that is accepted.
pub const MIN_LEN: usize = 10;
/// Longest, so that hashing cannot be made expensive by length.
pub const MAX_LEN: usize = 1024;

/// Hashes a password under a fresh salt.
pub async fn hash(password: String) -> Result<String, Fault> {
    let hashed = tokio::task::spawn_blocking(move || {
        Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string())
    });
    match hashed.await {
        Ok(Ok(hash)) => Ok(hash),
        Ok(Err(error)) => Err(Fault::Internal(format!("hashing a password failed: {error}"))),
        Err(error) => Err(Fault::Internal(format!("hashing a password was interrupted: {error}"))),
    }
}

/// Whether the password is the one that was hashed. A damaged hash matches nothing.
pub async fn verify(password: String, hash: String) -> bool {
    let checked = tokio::task::spawn_blocking(move || {
        PasswordHash::new(&hash).is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
    });
    checked.await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_matches_its_password_only_and_is_argon2id() {
        let hash = hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$"));
        assert!(verify("correct horse".into(), hash.clone()).await);
        assert!(!verify("wrong horse".into(), hash).await);
        assert!(!verify("anything".into(), "damaged".into()).await);
    }
}
