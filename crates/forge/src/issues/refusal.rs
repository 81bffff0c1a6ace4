//! Why an issue did not change: one enum for every operation, so that each road maps it in one place.

use crate::{Access, Fault};
use abide_core::InputError;
use abide_core::issues::filter::InvalidFilter;
use abide_core::issues::text::InvalidText;
use abide_store::StoreError;
use std::time::Duration;

/// Why an issue, a comment, a label or a milestone did not change, or was not found.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The caller may not, or there is no such repository.
    #[error(transparent)]
    Access(#[from] Access),
    /// There is no such thing in this repository.
    #[error("this {0} does not exist")]
    NotFound(&'static str),
    /// A text breaks a rule.
    #[error("{rule}")]
    Invalid {
        /// Where.
        field: &'static str,
        /// Which rule.
        rule: InvalidText,
    },
    /// The filter breaks a rule.
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    /// The reason belongs to the other state.
    #[error("must be completed or not_planned when closing, and empty when reopening")]
    Reason,
    /// A label of that name is not there, and the caller may not make one.
    #[error("there is no label {0:?} in this repository")]
    UnknownLabel(String),
    /// Nobody of that name can be made responsible.
    #[error("{0:?} is neither the owner nor a collaborator of this repository")]
    UnknownAssignee(String),
    /// No such milestone.
    #[error("there is no milestone {0} in this repository")]
    UnknownMilestone(i64),
    /// A label or milestone of that name is there already.
    #[error("this name is already taken")]
    Taken {
        /// Where.
        field: &'static str,
    },
    /// As many as there may be.
    #[error("the limit is {limit}")]
    TooMany {
        /// Of what.
        field: &'static str,
        /// How many.
        limit: i64,
    },
    /// Too often of late.
    #[error("too many requests; try again in {} minutes", .0.as_secs().div_ceil(60).max(1))]
    TooOften(Duration),
}

/// Class of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The named field is invalid.
    Invalid(&'static str),
    /// One of that name is there; where.
    Taken(&'static str),
    /// There is nothing.
    NotFound,
    /// It will be possible after so long.
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
