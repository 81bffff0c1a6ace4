//! TOTP codes and recovery codes.

use crate::{Fault, Forge, sealed};
use abide_core::{Timestamp, UserId};
use abide_store::Tx;
use abide_store::accounts::totp;
use totp_rs::{Builder, Totp};

/// Bytes of a secret, as the standard recommends for SHA-1.
pub(super) const SECRET_LEN: usize = 20;
/// Number of recovery codes.
const RECOVERY_CODES: usize = 10;
/// Letters and digits that are not easily confused.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz123456789";

/// Purpose under which a secret is sealed. It includes the user, so that one account's secret cannot replace another's.
fn purpose(user: UserId) -> String {
    format!("totp secret of {user}")
}

pub(super) fn seal(forge: &Forge, user: UserId, secret: &[u8]) -> Vec<u8> {
    sealed::seal(forge, &purpose(user), secret)
}

/// The generator of a sealed secret: six digits every thirty seconds, with a tolerance of one step in both directions.
pub(super) fn generator(forge: &Forge, user: UserId, sealed: &[u8]) -> Result<Builder, Fault> {
    let damaged =
        || Fault::Internal(format!("the second factor of account {user} cannot be read with this secret.key"));
    let secret = sealed::open(forge, &purpose(user), sealed).ok_or_else(damaged)?;
    Ok(Builder::new().with_secret(secret).with_skew(1).with_account_name("account"))
}

/// The time step of a code, if the code is valid at this time.
pub(super) fn step_of(totp: &Totp, code: &str, now: Timestamp) -> Option<i64> {
    let digits: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let seconds = u64::try_from(now.micros().div_euclid(1_000_000)).ok()?;
    totp.check(&digits, seconds).and_then(|step| i64::try_from(step).ok())
}

pub(super) fn built(builder: Builder) -> Result<Totp, Fault> {
    builder.build().map_err(|error| Fault::Internal(format!("a second factor has unusable parameters: {error}")))
}

/// Uses up a TOTP code or a recovery code; `false` if it is wrong or was used.
pub(super) async fn use_up(tx: &mut Tx, forge: &Forge, user: UserId, code: &str) -> Result<bool, Fault> {
    let Some(found) = totp::lock(tx, user).await?.filter(|totp| totp.confirmed_at.is_some()) else {
        return Ok(false);
    };
    let generator = built(generator(forge, user, found.secret.expose())?)?;
    if let Some(step) = step_of(&generator, code, tx.now()) {
        return Ok(totp::advance(tx, user, step).await?);
    }
    Ok(totp::use_code(tx, user, &recovery_hash(forge, user, code)).await?)
}

/// New recovery codes with 80 random bits each: the codes to show, and the hashes to store.
pub(super) fn recovery_codes(forge: &Forge, user: UserId) -> (Vec<String>, Vec<[u8; 32]>) {
    let code = |_| {
        let mut random = [0; 16];
        forge.random().fill(&mut random);
        let letters: String = random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
        [&letters[..4], &letters[4..8], &letters[8..12], &letters[12..]].join("-")
    };
    let codes: Vec<String> = (0..RECOVERY_CODES).map(code).collect();
    let hashes = codes.iter().map(|code| recovery_hash(forge, user, code)).collect();
    (codes, hashes)
}

/// Keyed with the installation's secret, so that the table alone is useless. Ignores separators and case.
fn recovery_hash(forge: &Forge, user: UserId, code: &str) -> [u8; 32] {
    let plain: String = code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    sealed::sign(forge, &format!("recovery code of {user}"), plain.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn generator() -> Totp {
        built(Builder::new().with_secret(b"12345678901234567890".to_vec()).with_skew(1)).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// The last six digits of the test vectors in RFC 6238, appendix B.
    #[test]
    fn codes_are_those_of_the_standard() {
        for (seconds, code) in [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924")] {
            assert_eq!(step_of(&generator(), code, at(seconds)), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_is_right_one_step_early_or_late_and_however_it_is_spaced() {
        assert_eq!(step_of(&generator(), " 287 082 ", at(59)), Some(1));
        assert_eq!(step_of(&generator(), "287082", at(29)), Some(1));
        assert_eq!(step_of(&generator(), "287082", at(89)), Some(1));
        assert_eq!(step_of(&generator(), "287082", at(90)), None);
        assert_eq!(step_of(&generator(), "28708", at(59)), None);
        assert_eq!(step_of(&generator(), "", at(59)), None);
        assert_eq!(step_of(&generator(), "287082", Timestamp::from_micros(-1)), None);
    }

    proptest! {
        #[test]
        fn whatever_is_typed_for_a_code_is_right_or_wrong(code in "\\PC*|[0-9 ]{4,9}", seconds in 0_i64..5_000_000_000) {
            if let Some(step) = step_of(&generator(), &code, at(seconds)) {
                prop_assert!((seconds / 30 - 1..=seconds / 30 + 1).contains(&step));
            }
        }
    }
}
