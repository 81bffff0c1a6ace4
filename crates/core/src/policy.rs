//! Permissions on repositories. The only place that decides them.
//!
//! Every use case calls [`can`], on every road. No other module compares owners, visibility or the archived mark.

use crate::UserId;
use crate::repo::{Role, Visibility};
use crate::words::words;

/// The requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Anonymous,
    /// The operator, on the command line.
    Operator,
    /// A logged-in account.
    User {
        id: UserId,
        /// May read everything that is not deleted.
        site_admin: bool,
        /// May not change anything.
        suspended: bool,
    },
}

impl Actor {
    /// Id of the account, if any.
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Anonymous | Self::Operator => None,
            Self::User { id, .. } => Some(*id),
        }
    }

    fn is_site_admin(&self) -> bool {
        matches!(self, Self::User { site_admin: true, .. })
    }

    fn is_suspended(&self) -> bool {
        matches!(self, Self::User { suspended: true, .. })
    }
}

/// Proof that the policy found an actor to be a site admin who may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteAdmin(UserId);

impl SiteAdmin {
    pub fn id(self) -> UserId {
        self.0
    }
}

/// The actor as a site admin. A suspended one may not act.
pub fn site_admin(actor: &Actor) -> Option<SiteAdmin> {
    match actor {
        Actor::User { id, site_admin: true, suspended: false } => Some(SiteAdmin(*id)),
        _ => None,
    }
}

/// Whether the actor may read every repository that is not deleted.
pub fn reads_everything(actor: &Actor) -> bool {
    *actor == Actor::Operator || actor.is_site_admin()
}

/// Facts about the repository that a decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepoFacts {
    pub owner: UserId,
    pub visibility: Visibility,
    pub archived: bool,
    /// Soft-deleted.
    pub deleted: bool,
}

impl RepoFacts {
    /// Whether it is served: it is not soft-deleted.
    pub fn is_live(&self) -> bool {
        !self.deleted
    }

    pub fn is_archived(&self) -> bool {
        self.archived
    }

    pub fn is_private(&self) -> bool {
        self.visibility == Visibility::Private
    }
}

/// Decides whether signed events may push to `repo`. The events are the authority there, so no actor is asked.
pub fn can_push_by_events(repo: &RepoFacts) -> Decision {
    match (repo.deleted, repo.archived) {
        (true, _) => deny(DenyCode::Deleted, true),
        (false, true) => deny(DenyCode::Archived(Action::GitPush), false),
        (false, false) => Decision::Allow,
    }
}

words! {
    /// Every action on a repository.
    Action {
        /// View, browse and fetch.
        RepoRead = "repo:read",
        GitPush = "git:push",
        StarCreate = "star:create",
        /// Set a watch level.
        WatchSet = "watch:set",
        ForkCreate = "fork:create",
        IssueCreate = "issue:create",
        IssueComment = "issue:comment",
        /// Label, assign, close.
        IssueTriage = "issue:triage",
        /// Edit others' texts; manage labels and milestones.
        IssueModerate = "issue:moderate",
        /// Edit description, topics and homepage.
        RepoEdit = "repo:edit",
        CollaboratorList = "collaborator:list",
        /// Add, change and remove collaborators.
        CollaboratorManage = "collaborator:manage",
        DefaultBranchSet = "default_branch:set",
        WatcherList = "watcher:list",
        /// List webhooks and their deliveries.
        WebhookList = "webhook:list",
        WebhookManage = "webhook:manage",
        AuditRead = "audit:read",
        /// Rename the repository.
        RepoAdmin = "repo:admin",
        /// Release an old name.
        RedirectRelease = "redirect:release",
        /// Offer it to another account.
        RepoTransfer = "repo:transfer",
        RepoArchive = "repo:archive",
        RepoUnarchive = "repo:unarchive",
        RepoVisibility = "repo:visibility",
        /// Soft-delete it.
        RepoDelete = "repo:delete",
        /// See that one's own repository is deleted, and until when it can be restored.
        TombstoneRead = "tombstone:read",
        /// Restore one's own repository.
        RepoRestore = "repo:restore",
        /// Remove it permanently.
        RepoPurge = "repo:purge",
        /// An action that this version does not know: admins only.
        Unknown = "unknown",
    }
}

/// Effect of an action, as the decision needs it.
enum Effect {
    /// Reads only.
    Read,
    /// Changes the repository; refused while it is archived.
    Write,
    /// Changes the repository's lifecycle; allowed while it is archived.
    Life,
    /// Changes a reader's own data; needs a login but no role.
    Personal,
}

impl Action {
    fn effect(self) -> Effect {
        use Action::*;
        match self {
            RepoRead | CollaboratorList | WatcherList | WebhookList | AuditRead | TombstoneRead => Effect::Read,
            StarCreate | WatchSet | ForkCreate => Effect::Personal,
            RepoAdmin | RedirectRelease | RepoTransfer | RepoArchive | RepoUnarchive | RepoVisibility | RepoDelete
            | RepoRestore | RepoPurge => Effect::Life,
            GitPush | IssueCreate | IssueComment | IssueTriage | IssueModerate | RepoEdit | CollaboratorManage
            | DefaultBranchSet | WebhookManage | Unknown => Effect::Write,
        }
    }

    /// The feature that is disabled while a repository is archived, worded for the user.
    pub fn disabled(self) -> &'static str {
        use Action::*;
        match self {
            GitPush => "pushes are disabled",
            IssueCreate => "new issues are disabled",
            IssueComment => "comments and changes to them are disabled",
            IssueTriage => "labelling, assigning, closing and reopening issues are disabled",
            IssueModerate => "changes to labels, milestones and issue texts are disabled",
            RepoEdit => "changes to description and topics are disabled",
            CollaboratorManage => "changes to collaborators are disabled",
            DefaultBranchSet => "changes to the default branch are disabled",
            WebhookManage => "changes to webhooks are disabled",
            _ => "it is read-only",
        }
    }

    /// Minimum role on a live repository; `None`: any logged-in reader.
    fn minimum_role(self) -> Option<Role> {
        use Action::*;
        match self {
            RepoRead => Some(Role::Read),
            StarCreate | WatchSet | ForkCreate | IssueCreate | IssueComment => None,
            IssueTriage => Some(Role::Triage),
            GitPush | IssueModerate | CollaboratorList => Some(Role::Write),
            RepoEdit => Some(Role::Maintain),
            CollaboratorManage | DefaultBranchSet | WatcherList | WebhookList | WebhookManage | AuditRead
            | RepoAdmin | RedirectRelease | RepoTransfer | RepoArchive | RepoUnarchive | RepoVisibility
            | RepoDelete | TombstoneRead | RepoRestore | RepoPurge | Unknown => Some(Role::Admin),
        }
    }
}

/// Reason for a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyCode {
    Deleted,
    /// The account is suspended.
    Suspended,
    /// The repository is private and the actor has no role.
    Private,
    /// The repository is archived, and the action changes it.
    Archived(Action),
    LoginRequired,
    /// The actor's role is too low.
    RoleTooLow {
        /// The minimum role.
        needed: Role,
    },
    /// Only the other party of an offer may do this.
    OtherSide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny {
        code: DenyCode,
        /// The actor may not learn that the repository exists: respond exactly as if it did not.
        hidden: bool,
    },
}

impl Decision {
    pub fn is_allowed(self) -> bool {
        self == Self::Allow
    }
}

/// Effective role: the owner is always admin.
pub fn effective_role(actor: &Actor, repo: &RepoFacts, role: Option<Role>) -> Option<Role> {
    if actor.user_id() == Some(repo.owner) { Some(Role::Admin) } else { role }
}

/// Decides whether `actor`, with the collaborator role `role`, may do `action` to `repo`.
pub fn can(actor: &Actor, action: Action, repo: &RepoFacts, role: Option<Role>) -> Decision {
    let role = effective_role(actor, repo, role);
    let effect = action.effect();
    let reads = matches!(effect, Effect::Read);

    let known = *actor == Actor::Operator;
    // The operator may see deleted repositories; the lifecycle decides what is still valid for them.
    if repo.deleted && !known {
        let owner = actor.user_id() == Some(repo.owner);
        let allowed = match action {
            Action::TombstoneRead => owner,
            Action::RepoRestore => owner && !actor.is_suspended(),
            _ => false,
        };
        return if allowed { Decision::Allow } else { deny(DenyCode::Deleted, true) };
    }
    if reads_everything(actor) && reads {
        return Decision::Allow;
    }
    let readable = reads_everything(actor) || repo.visibility == Visibility::Public || role.is_some();
    if actor.is_suspended() && !reads {
        return deny(DenyCode::Suspended, !readable);
    }
    if !readable {
        return deny(DenyCode::Private, true);
    }
    if action == Action::RepoRead {
        return Decision::Allow;
    }
    if repo.archived && matches!(effect, Effect::Write) {
        return deny(DenyCode::Archived(action), false);
    }
    if *actor == Actor::Anonymous {
        return deny(DenyCode::LoginRequired, false);
    }
    match action.minimum_role() {
        // A reader's own data needs an account.
        None if known => deny(DenyCode::LoginRequired, false),
        Some(needed) if role < Some(needed) && !known => deny(DenyCode::RoleTooLow { needed }, false),
        _ => Decision::Allow,
    }
}

words! {
    /// Actions on one issue or comment, by its author or by moderators.
    IssueAction {
        /// Change its title or text.
        Edit = "edit",
        Close = "close",
        Reopen = "reopen",
        /// Remove a comment; issues cannot be removed.
        Remove = "remove",
        /// Set labels, assignees and milestone.
        Triage = "triage",
    }
}

/// Decides whether `actor`, with `role` in `repo`, may do `action` to an issue or comment of `author`. Authors may
/// edit, close and reopen their own as long as they may comment in the repository.
pub fn can_issue(
    actor: &Actor,
    action: IssueAction,
    author: Option<UserId>,
    repo: &RepoFacts,
    role: Option<Role>,
) -> Decision {
    let theirs = author.is_some() && actor.user_id() == author;
    let needed = match action {
        IssueAction::Triage => Action::IssueTriage,
        _ if theirs => Action::IssueComment,
        IssueAction::Close | IssueAction::Reopen => Action::IssueTriage,
        IssueAction::Edit | IssueAction::Remove => Action::IssueModerate,
    };
    can(actor, needed, repo, role)
}

words! {
    /// Actions on a transfer offer.
    OfferAction {
        See = "see",
        Accept = "accept",
        Decline = "decline",
        Cancel = "cancel",
    }
}

/// The two parties of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferFacts {
    /// Owner of the repository at the time of the offer.
    pub from_owner: UserId,
    pub recipient: UserId,
}

/// Decides whether `actor`, with `role` in the offered `repo`, may do `action` to the offer. Only its two parties and
/// admins of the repository know of it, even if the recipient cannot read the repository.
pub fn can_offer(
    actor: &Actor,
    action: OfferAction,
    offer: &OfferFacts,
    repo: &RepoFacts,
    role: Option<Role>,
) -> Decision {
    let is = |user: UserId| actor.user_id() == Some(user);
    let (gives, takes) = (is(offer.from_owner), is(offer.recipient));
    let administers = can(actor, Action::RepoTransfer, repo, role);
    let knows = gives || takes || administers.is_allowed() || *actor == Actor::Operator || actor.is_site_admin();
    if !knows {
        return deny(DenyCode::Private, true);
    }
    if action == OfferAction::See {
        return Decision::Allow;
    }
    if actor.is_suspended() {
        return deny(DenyCode::Suspended, false);
    }
    let allowed = match action {
        OfferAction::See => true,
        OfferAction::Accept | OfferAction::Decline => takes,
        // The previous owner is no admin any more, but gets "too late" instead of "not found".
        OfferAction::Cancel => gives || administers.is_allowed(),
    };
    match allowed {
        true => Decision::Allow,
        false => deny(DenyCode::OtherSide, false),
    }
}

fn deny(code: DenyCode, hidden: bool) -> Decision {
    Decision::Deny { code, hidden }
}

#[cfg(test)]
mod tests;
