//! Watching and following: watch levels, and whom a user may follow.

use crate::UserId;
use crate::policy::{self, Action, Actor, RepoFacts};
use crate::repo::{Role, Visibility};
use crate::words::words;

words! {
    /// Watch level of a user for a repository.
    WatchLevel {
        /// All activity.
        All = "all",
        /// Threads that the user takes part in or is mentioned in.
        Participating = "participating",
        Ignore = "ignore",
    }
}

impl WatchLevel {
    /// The effective level: the chosen one or the default.
    pub fn current(chosen: Option<Self>) -> Self {
        chosen.unwrap_or(Self::Participating)
    }

    /// Whether this level counts as watching.
    pub fn watches(self) -> bool {
        self != Self::Ignore
    }
}

words! {
    /// Sort order of a user's stars.
    StarOrder {
        /// Newest star first.
        Starred = "starred",
        /// Oldest star first.
        Oldest = "oldest",
        /// Most recently updated first.
        Updated = "updated",
        /// Most starred first.
        Stars = "stars",
        Name = "name",
    }
}

/// Decides whether `actor`, with `role` in `repo`, may now see an event of that repository. The actor must be able to
/// read the repository now. If the event was not public when it happened, the actor must also be able to read the
/// repository as if it were private.
pub fn event_visible(actor: &Actor, public_then: bool, repo: &RepoFacts, role: Option<Role>) -> bool {
    let reads = |facts: &RepoFacts| policy::can(actor, Action::RepoRead, facts, role).is_allowed();
    let private = RepoFacts { visibility: Visibility::Private, ..*repo };
    reads(repo) && (public_then || reads(&private))
}

/// Refusal of a follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowRefusal {
    #[error("sign in to do this")]
    LoginRequired,
    /// The actor is suspended.
    #[error("this account is suspended and read-only; ask the site administrator")]
    Suspended,
    #[error("you cannot follow yourself")]
    Oneself,
}

/// Decides whether `actor` may follow or unfollow an account. Returns the actor's id.
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
    fn an_event_is_seen_by_whom_the_repository_lets_in_now_and_let_in_then() {
        let owner = UserId::new(1);
        let user = |id, site_admin| Actor::User { id: UserId::new(id), site_admin, suspended: false };
        let actors = [Actor::Anonymous, Actor::Operator, user(1, false), user(2, false), user(3, true)];
        let roles = || std::iter::once(None).chain(Role::ALL.iter().copied().map(Some));
        let mut seen = 0;
        for actor in actors {
            for role in roles() {
                for deleted in [false, true] {
                    let facts = |visibility| RepoFacts { owner, visibility, archived: false, deleted };
                    let reads =
                        |visibility| policy::can(&actor, Action::RepoRead, &facts(visibility), role).is_allowed();
                    for &now in Visibility::ALL {
                        for then in [false, true] {
                            let visible = event_visible(&actor, then, &facts(now), role);
                            let all_of = match then {
                                true => vec![now],
                                false => vec![now, Visibility::Private],
                            };
                            assert_eq!(visible, all_of.into_iter().all(reads), "{actor:?} {role:?} {now:?} {then}");
                            seen += usize::from(visible);
                        }
                    }
                }
            }
        }
        assert!(seen > 0);
        let open = RepoFacts { owner, visibility: Visibility::Public, archived: false, deleted: false };
        assert!(event_visible(&Actor::Anonymous, true, &open, None));
        assert!(!event_visible(&Actor::Anonymous, false, &open, None), "it happened in private");
        let closed = RepoFacts { visibility: Visibility::Private, ..open };
        assert!(!event_visible(&user(2, false), true, &closed, None), "the repository is private now");
        assert!(event_visible(&user(2, false), false, &closed, Some(Role::Read)));
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
