//! Event kinds known by name, and the storage class of a kind.

/// User profile (NIP-01).
pub const METADATA: u16 = 0;
/// Deletion request for the author's own events (NIP-09).
pub const DELETION: u16 = 5;
/// A comment (NIP-22).
pub const COMMENT: u16 = 1111;
/// A patch (NIP-34).
pub const PATCH: u16 = 1617;
/// A pull request.
pub const PULL_REQUEST: u16 = 1618;
/// A new tip of a pull request.
pub const PULL_REQUEST_UPDATE: u16 = 1619;
/// An issue.
pub const ISSUE: u16 = 1621;
/// The status "open".
pub const STATUS_OPEN: u16 = 1630;
/// The status "applied", "merged" or "resolved".
pub const STATUS_APPLIED: u16 = 1631;
/// The status "closed".
pub const STATUS_CLOSED: u16 = 1632;
/// The status "draft".
pub const STATUS_DRAFT: u16 = 1633;
/// A user's relays (NIP-65).
pub const RELAY_LIST: u16 = 10_002;
/// A user's GRASP servers.
pub const GRASP_LIST: u16 = 10_317;
/// Proof of a key to a relay (NIP-42).
pub const RELAY_AUTH: u16 = 22_242;
/// Proof of a key to an HTTP server (NIP-98).
pub const HTTP_AUTH: u16 = 27_235;
/// Repository announcement.
pub const ANNOUNCEMENT: u16 = 30_617;
/// Repository state: its refs.
pub const STATE: u16 = 30_618;

/// Storage class of a kind (NIP-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every event is kept.
    Regular,
    /// Only the newest per author and kind is kept.
    Replaceable,
    /// Not stored, only forwarded.
    Ephemeral,
    /// Only the newest per author, kind and `d` tag is kept.
    Addressable,
}

/// The class of a kind.
pub fn class(kind: u16) -> Class {
    match kind {
        0 | 3 | 10_000..=19_999 => Class::Replaceable,
        20_000..=29_999 => Class::Ephemeral,
        30_000..=39_999 => Class::Addressable,
        _ => Class::Regular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_begin_and_end_where_nip_01_says() {
        let classes = |kinds: &[u16]| kinds.iter().map(|kind| class(*kind)).collect::<Vec<_>>();
        assert_eq!(classes(&[0, 3, 10_000, 19_999]), [Class::Replaceable; 4]);
        assert_eq!(classes(&[20_000, 29_999]), [Class::Ephemeral; 2]);
        assert_eq!(classes(&[30_000, 39_999]), [Class::Addressable; 2]);
        assert_eq!(classes(&[1, 2, 4, 9_999, 40_000, 65_535]), [Class::Regular; 6]);
    }

    #[test]
    fn every_kind_has_the_class_the_protocol_library_gives_it() {
        // The library still treats 41 as replaceable, as it once was.
        for number in (0..=u16::MAX).filter(|number| *number != 41) {
            let kind = nostr::event::Kind::from_u16(number);
            let expected = match class(number) {
                Class::Replaceable => kind.is_replaceable(),
                Class::Ephemeral => kind.is_ephemeral(),
                Class::Addressable => kind.is_addressable(),
                Class::Regular => !kind.is_replaceable() && !kind.is_ephemeral() && !kind.is_addressable(),
            };
            assert!(expected, "{number}");
        }
    }
}
