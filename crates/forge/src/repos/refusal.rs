//! Errors of the lifecycle operations: one enum for all of them, so that each front end maps it in one place.

use crate::{Access, Fault};
use abide_core::names::InvalidName;
use abide_core::{InputError, lifecycle, transfer};
use abide_store::StoreError;
use std::time::Duration;

/// Why a lifecycle operation was refused.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// The caller lacks permission, or the repository or offer does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// The lifecycle state does not allow it.
    #[error(transparent)]
    Refused(#[from] lifecycle::Refusal),
    /// The offer does not allow it.
    #[error(transparent)]
    Offer(#[from] transfer::Refusal),
    /// The name breaks a rule.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The owner has a live repository with this name.
    #[error("the owner already has a repository with this name; choose another name")]
    NameTaken,
    /// The repository has this name already.
    #[error("the repository already has this name")]
    SameName,
    /// The repository has reached its rename limit.
    #[error("a repository can be renamed at most {limit} times in {}; try again later", days(*.window))]
    RenameRateLimited {
        /// Renames within `window`.
        limit: usize,
        window: Duration,
        /// Time until the next rename is allowed.
        wait: Duration,
    },
    /// No account with this name can take the repository.
    #[error("no such account, or it cannot own repositories")]
    UnknownRecipient,
    /// The future owner has reached the repository limit.
    #[error("the account owns {0} repositories, the limit (repos.per_user)")]
    TooMany(i64),
    /// The owner's key deleted the repository.
    #[error("its nostr key deleted it; publish a new announcement that lists this server to restore it")]
    DeletedByKey,
    /// A push or maintenance is running.
    #[error("the repository is busy; try again in a moment")]
    Busy,
}

/// Class of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The input is wrong; carries the field, if one can be named.
    Invalid(Option<&'static str>),
    /// The request conflicts with the current state.
    Conflict,
    /// It was possible earlier.
    Gone,
    /// It will be possible after this time.
    TooOften(Duration),
    /// As [`Access`] says.
    Access,
}

impl LifeError {
    /// The class of the answer.
    pub fn class(&self) -> Class {
        use lifecycle::Refusal;
        match self {
            Self::Access(_) => Class::Access,
            Self::Refused(Refusal::PastGrace) => Class::Gone,
            Self::Refused(Refusal::NostrGoverned) => Class::Invalid(None),
            Self::Refused(_) | Self::NameTaken | Self::TooMany(_) | Self::DeletedByKey | Self::Busy => Class::Conflict,
            Self::Offer(transfer::Refusal::ToSelf) | Self::UnknownRecipient => Class::Invalid(Some("new_owner")),
            Self::Offer(_) => Class::Conflict,
            Self::InvalidName(_) | Self::SameName => Class::Invalid(Some("name")),
            Self::RenameRateLimited { wait, .. } => Class::TooOften(*wait),
        }
    }
}

impl InputError for LifeError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::InvalidName(_) | Self::NameTaken | Self::SameName | Self::RenameRateLimited { .. } => Some("name"),
            Self::UnknownRecipient => Some("new_owner"),
            Self::Access(_)
            | Self::Refused(_)
            | Self::Offer(_)
            | Self::TooMany(_)
            | Self::DeletedByKey
            | Self::Busy => None,
        }
    }
}

impl From<StoreError> for LifeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unique => Self::NameTaken,
            other => Self::Access(other.into()),
        }
    }
}

impl From<Fault> for LifeError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}

fn days(window: Duration) -> String {
    match window.as_secs() {
        seconds if seconds >= 86_400 && seconds % 86_400 == 0 => format!("{} days", seconds / 86_400),
        seconds => format!("{seconds} seconds"),
    }
}
