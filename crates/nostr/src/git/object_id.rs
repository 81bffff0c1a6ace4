//! Object ids in events: SHA-1 or SHA-256.

use crate::hexadecimal;
use abide_core::Oid;
use std::fmt;
use std::str::FromStr;

/// An object id from an event. Repositories here hold only SHA-1 objects; the other variants parse but never match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectId {
    /// 40 digits.
    Sha1(Oid),
    /// 64 digits.
    Sha256([u8; 32]),
    /// Text that is no object id, so no repository has it.
    Unreadable,
}

impl ObjectId {
    /// The SHA-1 id, the only kind that repositories here use.
    pub fn sha1(self) -> Option<Oid> {
        match self {
            Self::Sha1(oid) => Some(oid),
            Self::Sha256(_) | Self::Unreadable => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnObjectId;

impl FromStr for ObjectId {
    type Err = NotAnObjectId;

    /// Refuses the zero id, which stands for "no object".
    fn from_str(text: &str) -> Result<Self, NotAnObjectId> {
        if text.bytes().all(|byte| byte == b'0') {
            return Err(NotAnObjectId);
        }
        match text.len() {
            40 => text.parse().map(Self::Sha1).map_err(|_| NotAnObjectId),
            _ => hexadecimal::decode(text).map(Self::Sha256).ok_or(NotAnObjectId),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha1(oid) => oid.fmt(f),
            Self::Sha256(bytes) => f.write_str(&hex::encode(bytes)),
            Self::Unreadable => f.write_str("unreadable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zeros_upper_case_and_other_lengths_are_none() {
        let bad = [
            "",
            "ab",
            &"0".repeat(40),
            &"0".repeat(64),
            &"A".repeat(40),
            &"A".repeat(64),
            &"a".repeat(41),
            &"g".repeat(64),
        ];
        for text in bad {
            assert_eq!(text.parse::<ObjectId>(), Err(NotAnObjectId), "{text:?}");
        }
        assert!("a".repeat(40).parse::<ObjectId>().unwrap().sha1().is_some());
        assert!("a".repeat(64).parse::<ObjectId>().unwrap().sha1().is_none());
    }

    proptest! {
        #[test]
        fn every_id_reads_back_what_it_prints(text in "[0-9a-f]{40}|[0-9a-f]{64}|[^0]{1,64}") {
            if let Ok(id) = text.parse::<ObjectId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
