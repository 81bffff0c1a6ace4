//! Object ids.

use std::fmt;
use std::str::FromStr;

/// A SHA-1 object id: twenty bytes, written as forty lower-case hexadecimal digits.
///
/// Repositories use SHA-1 only; a SHA-256 id is refused by name rather than misread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid([u8; 20]);

impl Oid {
    /// The id that stands for "no object" in ref updates.
    pub const ZERO: Self = Self([0; 20]);

    /// Wraps raw bytes.
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Whether this is [`Oid::ZERO`].
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Parses forty hexadecimal digits; refuses upper case, because git never writes it on the wire.
    pub fn from_hex(hex: &[u8]) -> Result<Self, InvalidOid> {
        if hex.len() != 40 {
            return Err(InvalidOid);
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn digit(byte: u8) -> Result<u8, InvalidOid> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(InvalidOid),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an object id must have 40 lowercase hexadecimal digits (SHA-1)")]
pub struct InvalidOid;

impl FromStr for Oid {
    type Err = InvalidOid;

    fn from_str(text: &str) -> Result<Self, InvalidOid> {
        Self::from_hex(text.as_bytes())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 40];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&hex).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_id_reads_back_what_it_prints(bytes: [u8; 20]) {
            let oid = Oid::from_bytes(bytes);
            prop_assert_eq!(oid.to_string().parse(), Ok(oid));
        }

        #[test]
        fn arbitrary_bytes_never_panic_and_only_forty_hex_digits_pass(bytes: Vec<u8>) {
            let hex = bytes.len() == 40 && bytes.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            prop_assert_eq!(Oid::from_hex(&bytes).is_ok(), hex);
        }
    }

    #[test]
    fn sha256_and_upper_case_are_refused() {
        assert_eq!("a".repeat(64).parse::<Oid>(), Err(InvalidOid));
        assert_eq!("A".repeat(40).parse::<Oid>(), Err(InvalidOid));
    }
}
