//! Why a repository's life did not change: one enum for every operation, so that each road maps it in one place.

use crate::{Access, Fault};
use abide_core::names::InvalidName;
use abide_core::{lifecycle, transfer};
use abide_store::StoreError;
use std::time::Duration;

/// Why a repository's life did not change.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// The caller may not, or there is no such repository or offer.
    #[error(transparent)]
    Access(#[from] Access),
    /// Its state does not allow it.
    #[error(transparent)]
    Refused(#[from] lifecycle::Refusal),
    /// The offer does not allow it.
    #[error(transparent)]
    Offer(#[from] transfer::Refusal),
    /// The name breaks a rule.
    #[error("name: {0}")]
    InvalidName(#[from] InvalidName),
    /// The owner has a live repository of that name.
    #[error("name: the owner already has a repository with this name; choose another name")]
    NameTaken,
    /// It is the name already.
    #[error("name: this is already the name")]
    SameName,
    /// Renamed too often of late.
    #[error("name: a repository can be renamed at most {limit} times in {}; try again later", days(*.window))]
    RenameRateLimited {
        /// So often.
        limit: usize,
        /// In so long.
        window: Duration,
        /// How long to wait.
        wait: Duration,
    },
    /// There is nobody of that name who could take it.
    #[error("new_owner: no such account, or it cannot own repositories")]
    UnknownRecipient,
    /// Whoever would own it owns as many as they may.
    #[error("the account owns {0} repositories, the limit (repos.per_user)")]
    TooMany(i64),
    /// The key that it belongs to wants it gone.
    #[error("its nostr key deleted it; publish a new announcement that lists this server to restore it")]
    DeletedByKey,
    /// Someone pushes to it or tidies it at this moment.
    #[error("the repository is busy; try again in a moment")]
    Busy,
}

/// What kind of answer it deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What was sent is wrong; the field, if one can be named.
    Invalid(Option<&'static str>),
    /// It does not fit what is so now.
    Conflict,
    /// It was possible once.
    Gone,
    /// It will be possible after so long.
    TooOften(Duration),
    /// As [`Access`] says.
    Access,
}

impl LifeError {
    /// What kind of answer it deserves.
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
