//! Errors of commands: a message, hints with the next steps, and an exit code.

use abide_core::InputError as _;
use abide_core::lifecycle::Refusal;
use abide_forge::repos::LifeError;
use abide_forge::repos::find::FindError;
use abide_forge::{Access, Fault};
use std::process::ExitCode;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hints: Vec<String>,
}

impl Failure {
    /// Failure of the command, exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into(), hints: Vec::new() }
    }

    /// Wrong usage, exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::failed(message) }
    }

    /// The object that the command names does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { code: 3, ..Self::failed(message) }
    }

    /// A rule forbids it.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { code: 4, ..Self::failed(message) }
    }

    /// Next step for the user.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Prints the error and exits with its code.
    pub(crate) fn exit(self) -> ExitCode {
        eprintln!("error: {}", self.message);
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::failed(fault.to_string())
    }
}

impl From<Access> for Failure {
    fn from(access: Access) -> Self {
        match access {
            Access::NotFound => Self::not_found("repository not found"),
            Access::Denied(_) | Access::Scope(_) => Self::refused(access.to_string()),
            Access::Fault(fault) => fault.into(),
        }
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let said = error.to_string();
        match error {
            FindError::Nothing(_) => Self::not_found(said).hint("`abide repo list` shows all repositories"),
            FindError::Several { .. } => Self::refused(said).hint("use the id instead of the name"),
            FindError::Fault(fault) => fault.into(),
        }
    }
}

impl From<LifeError> for Failure {
    fn from(error: LifeError) -> Self {
        let said = error.with_field();
        match error {
            LifeError::Access(access) => access.into(),
            LifeError::Refused(Refusal::AlreadyDeleted) => {
                Self::refused(said).hint("`abide repo restore` restores it, `abide repo purge` deletes it permanently")
            }
            LifeError::Refused(Refusal::NotDeleted) => Self::refused(said).hint("`abide repo delete` deletes it"),
            _ => Self::refused(said),
        }
    }
}
