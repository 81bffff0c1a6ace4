//! Errors of issues: one enum for every operation, so that each road maps it in one place.

use crate::{Access, Fault};
use abide_core::InputError;
use abide_core::issues::filter::InvalidFilter;
use abide_core::issues::text::InvalidText;
use abide_store::StoreError;
use std::time::Duration;

/// Why an issue, a comment, a label or a milestone was not changed, or not found.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The caller lacks permission, or the repository does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// The repository has no such issue, comment, label or milestone.
    #[error("this {0} does not exist")]
    NotFound(&'static str),
    /// A text breaks a rule.
    #[error("{rule}")]
    Invalid { field: &'static str, rule: InvalidText },
    /// The filter breaks a rule.
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    /// The reason does not fit the new state.
    #[error("must be completed or not_planned when closing, and empty when reopening")]
    Reason,
    /// The label does not exist, and the caller may not create it.
    #[error("there is no label {0:?} in this repository")]
    UnknownLabel(String),
    /// The account cannot be an assignee.
    #[error("{0:?} is neither the owner nor a collaborator of this repository")]
    UnknownAssignee(String),
    #[error("there is no milestone {0} in this repository")]
    UnknownMilestone(i64),
    /// A label or milestone with this name exists.
    #[error("this name is already taken")]
    Taken { field: &'static str },
    /// The limit is reached.
    #[error("the limit is {limit}")]
    TooMany { field: &'static str, limit: i64 },
    #[error("too many requests; try again in {} minutes", .0.as_secs().div_ceil(60).max(1))]
    TooOften(Duration),
}

/// Class of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The named field is invalid.
    Invalid(&'static str),
    /// The name in this field is taken.
    Taken(&'static str),
    NotFound,
    /// It will be possible after this time.
    TooOften(Duration),
    /// As [`Access`] says.
    Access,
}

impl IssueError {
    /// Class of the response.
    pub fn class(&self) -> Class {
        match self {
            Self::Access(_) => Class::Access,
            Self::NotFound(_) => Class::NotFound,
            Self::Invalid { field, .. } | Self::TooMany { field, .. } => Class::Invalid(field),
            Self::Filter(_) => Class::Invalid("q"),
            Self::Reason => Class::Invalid("state_reason"),
            Self::UnknownLabel(_) => Class::Invalid("labels"),
            Self::UnknownAssignee(_) => Class::Invalid("assignees"),
            Self::UnknownMilestone(_) => Class::Invalid("milestone"),
            Self::Taken { field } => Class::Taken(field),
            Self::TooOften(wait) => Class::TooOften(*wait),
        }
    }

    /// Error of a field whose text breaks a rule.
    pub(super) fn at(field: &'static str) -> impl Fn(InvalidText) -> Self {
        move |rule| Self::Invalid { field, rule }
    }

    /// A unique index refused a name.
    pub(super) fn taken(field: &'static str) -> impl Fn(StoreError) -> Self {
        move |error| match error {
            StoreError::Unique => Self::Taken { field },
            other => other.into(),
        }
    }
}

impl InputError for IssueError {
    fn field(&self) -> Option<&'static str> {
        match self.class() {
            Class::Invalid(field) | Class::Taken(field) => Some(field),
            Class::NotFound | Class::TooOften(_) | Class::Access => None,
        }
    }
}

impl From<StoreError> for IssueError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

impl From<Fault> for IssueError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}
