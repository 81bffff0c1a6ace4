//! Ids: integers that never change and are never reused.

use std::fmt;
use std::str::FromStr;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(i64);

        impl $name {
            /// Wraps a number from the database.
            pub const fn new(raw: i64) -> Self {
                Self(raw)
            }

            /// The number, for SQL, paths and JSON.
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Accepts exactly what [`fmt::Display`] prints for a positive id: no sign, no leading zero.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let plain = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
                match text.parse() {
                    Ok(raw) if plain => Ok(Self(raw)),
                    _ => Err(InvalidId),
                }
            }
        }
    };
}

/// The text is not a positive decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id must be a positive decimal number")]
pub struct InvalidId;

id! {
    /// Id of a repository, stable through renames and transfers.
    RepoId
}
id! {
    /// Id of an account, stable through renames.
    UserId
}
id! {
    /// Id of one push, from its intent on.
    PushId
}
id! {
    /// Id of one transfer offer.
    TransferId
}
id! {
    /// Id of one redirect (old name of a repository).
    RedirectId
}
id! {
    /// Id of one issue. Users see its number within the repository.
    IssueId
}
id! {
    CommentId
}
id! {
    LabelId
}
id! {
    /// Id of one milestone. Users see its number within the repository.
    MilestoneId
}
id! {
    HookId
}
id! {
    /// Id of one delivery to a webhook.
    DeliveryId
}
id! {
    /// Id of one notification thread.
    ThreadId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_what_it_prints_and_nothing_else() {
        assert_eq!("42".parse(), Ok(RepoId::new(42)));
        for bad in ["", "0", "-1", "+1", "01", "1 ", "9999999999999999999", "٣", "1.0"] {
            assert_eq!(bad.parse::<RepoId>(), Err(InvalidId), "{bad:?}");
        }
    }
}
