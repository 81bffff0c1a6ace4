//! Identities: integers that never change and are never given out twice.

use std::fmt;
use std::str::FromStr;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// Wraps a number that came from the database.
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
    /// A repository for its whole life, whatever it is called and whoever owns it.
    RepoId
}
id! {
    /// An account, whatever it is called.
    UserId
}
id! {
    /// One push, from its intent on.
    PushId
}
id! {
    /// One offer to hand a repository over.
    TransferId
}
id! {
    /// One old name of a repository.
    RedirectId
}
id! {
    /// One issue. People know it by its number in its repository.
    IssueId
}
id! {
    /// One comment on an issue.
    CommentId
}
id! {
    /// One label of a repository.
    LabelId
}
id! {
    /// One milestone of a repository. People know it by its number there.
    MilestoneId
}
id! {
    /// One webhook of a repository.
    HookId
}
id! {
    /// One delivery to a webhook.
    DeliveryId
}
id! {
    /// One thread that people are told about.
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
