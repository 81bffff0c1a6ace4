//! What people keep an eye on: how much they are told about a repository, and whom they may follow.

use crate::UserId;
use crate::policy::Actor;
use crate::words::words;

words! {
    /// How much someone is told about a repository.
    WatchLevel {
        /// Everything that happens.
        All = "all",
        /// What they take part in, or are mentioned in.
        Participating = "participating",
        /// Nothing.
        Ignore = "ignore",
    }
}

impl WatchLevel {
    /// The level that holds, given the one that was chosen: nobody has to choose.
    pub fn current(chosen: Option<Self>) -> Self {
        chosen.unwrap_or(Self::Participating)
    }

    /// Whether someone who chose it counts as a watcher.
    pub fn watches(self) -> bool {
        self != Self::Ignore
    }
}

words! {
    /// In which order someone's stars are shown.
    StarOrder {
        /// The latest star first.
        Starred = "starred",
        /// The first star first.
        Oldest = "oldest",
        /// What changed last comes first.
        Updated = "updated",
        /// What most people star comes first.
        Stars = "stars",
        /// By name.
        Name = "name",
    }
}

/// Why someone is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowRefusal {
    /// Nobody is logged in.
    #[error("this needs a login")]
    LoginRequired,
    /// The one who asks is suspended.
    #[error("this account is suspended and cannot change anything; ask the site's administrator")]
    Suspended,
    /// It is oneself.
    #[error("nobody can follow themselves")]
    Oneself,
}

/// Decides whether `actor` may follow an account, or stop to. Returns who they are.
pub fn may_follow(actor: &Actor, followed: UserId) -> Result<UserId, FollowRefusal> {
    match *actor {
        Actor::Anonymous | Actor::Operator => Err(FollowRefusal::LoginRequired),
        Actor::User { suspended: true, .. } => Err(FollowRefusal::Suspended),
        Actor::User { id, .. } if id == followed => Err(FollowRefusal::Oneself),
        Actor::User { id, .. } => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_chose_nothing_is_told_what_concerns_them() {
        assert_eq!(WatchLevel::current(None), WatchLevel::Participating);
        for &level in WatchLevel::ALL {
            assert_eq!(WatchLevel::current(Some(level)), level);
            assert_eq!(level.watches(), level != WatchLevel::Ignore);
        }
    }

    #[test]
    fn only_someone_in_good_standing_follows_and_only_others() {
        let user = |id, suspended| Actor::User { id: UserId::new(id), site_admin: true, suspended };
        let bob = UserId::new(2);
        assert_eq!(may_follow(&user(1, false), bob), Ok(UserId::new(1)));
        assert_eq!(may_follow(&user(2, false), bob), Err(FollowRefusal::Oneself));
        assert_eq!(may_follow(&user(1, true), bob), Err(FollowRefusal::Suspended));
        for nobody in [Actor::Anonymous, Actor::Operator] {
            assert_eq!(may_follow(&nobody, bob), Err(FollowRefusal::LoginRequired));
        }
    }
}
