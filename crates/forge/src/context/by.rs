//! The party that administers the site.

use super::Caller;
use crate::Access;
use abide_core::policy::SiteAdmin;

/// Proof that someone may administer the site. A use case for administrators takes it, so that a road cannot forget the
/// check: only the policy makes a [`SiteAdmin`].
#[derive(Debug, Clone)]
pub enum By {
    Admin(SiteAdmin, Caller),
    /// The operator at the command line.
    Operator,
}

impl By {
    /// Fails unless the caller is an active site admin; a token must have the admin scope.
    pub fn admin(caller: &Caller) -> Result<Self, Access> {
        Ok(Self::Admin(caller.ensure_admin()?, caller.clone()))
    }

    pub(crate) fn caller(&self) -> Caller {
        match self {
            Self::Admin(_, caller) => caller.clone(),
            Self::Operator => Caller::operator(),
        }
    }
}
