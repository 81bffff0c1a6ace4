//! Who may do what to a repository. The only place that decides.
//!
//! [`can`] is asked by every use case, on every road. No other module compares owners, visibility or the archived mark.

use crate::UserId;
use crate::repo::{Role, Visibility};
use crate::words::words;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Nobody in particular.
    Anonymous,
    /// Whoever runs the server, at its command line.
    Operator,
    /// A logged-in account.
    User {
        /// Which one.
        id: UserId,
        /// May read everything that is not deleted.
        site_admin: bool,
        /// May not change anything.
        suspended: bool,
    },
}

impl Actor {
    /// The account, if there is one.
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

/// What the decision needs to know of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepoFacts {
    /// Whose it is.
    pub owner: UserId,
    /// Who may read it without a role.
    pub visibility: Visibility,
    /// Read-only.
    pub archived: bool,
    /// Soft-deleted.
    pub deleted: bool,
}

words! {
    /// Everything that can be asked of a repository.
    Action {
        /// See it, browse it, fetch from it.
        RepoRead = "repo:read",
        /// Push to it.
        GitPush = "git:push",
        /// Star it.
        StarCreate = "star:create",
        /// Choose what to be told about it.
        WatchSet = "watch:set",
        /// Make a copy of one's own.
        ForkCreate = "fork:create",
        /// Open an issue.
        IssueCreate = "issue:create",
        /// Comment on an issue.
        IssueComment = "issue:comment",
        /// Label, assign, close.
        IssueTriage = "issue:triage",
        /// Change what others wrote; make labels and milestones.
        IssueModerate = "issue:moderate",
        /// Change description, topics, homepage.
        RepoEdit = "repo:edit",
        /// See who works on it.
        CollaboratorList = "collaborator:list",
        /// Add, change and remove collaborators.
        CollaboratorManage = "collaborator:manage",
        /// Choose the default branch.
        DefaultBranchSet = "default_branch:set",
        /// See who watches it.
        WatcherList = "watcher:list",
        /// See its webhooks and what they sent.
        WebhookList = "webhook:list",
        /// Manage webhooks.
        WebhookManage = "webhook:manage",
        /// Read its audit trail.
        AuditRead = "audit:read",
        /// Rename it.
        RepoAdmin = "repo:admin",
        /// Give an old name up.
        RedirectRelease = "redirect:release",
        /// Offer it to someone.
        RepoTransfer = "repo:transfer",
        /// Make it read-only.
        RepoArchive = "repo:archive",
        /// Make it writable again.
        RepoUnarchive = "repo:unarchive",
        /// Change who may read it.
        RepoVisibility = "repo:visibility",
        /// Soft-delete it.
        RepoDelete = "repo:delete",
        /// See that one's own repository is deleted and until when it can be restored.
        TombstoneRead = "tombstone:read",
        /// Bring one's own repository back.
        RepoRestore = "repo:restore",
        /// Remove it for good.
        RepoPurge = "repo:purge",
        /// Anything this version does not know: for admins only.
        Unknown = "unknown",
    }
}

/// What an action does, as far as the decision goes.
enum Effect {
    /// Looks only.
    Read,
    /// Changes the repository; refused while it is archived.
    Write,
    /// Changes the repository's life; possible while it is archived.
    Life,
    /// Changes what a logged-in reader keeps for themselves; no role needed.
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

    /// What is disabled while a repository is archived, for someone who tried it.
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

    /// The least role that may do it on a live repository; `None`: whoever may read, once logged in.
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

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyCode {
    /// It is deleted.
    Deleted,
    /// The account is suspended.
    Suspended,
    /// It is private and the actor has no role in it.
    Private,
    /// It is archived, and this changes it.
    Archived(Action),
    /// Nobody is logged in.
    LoginRequired,
    /// The role is not enough.
    RoleTooLow {
        /// The least that would be.
        needed: Role,
    },
    /// Only the other side of an offer may do this.
    OtherSide,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// No.
    Deny {
        /// Why.
        code: DenyCode,
        /// The actor may not learn that the repository exists: answer exactly as if it did not.
        hidden: bool,
    },
}

impl Decision {
    /// Whether it is [`Decision::Allow`].
    pub fn is_allowed(self) -> bool {
        self == Self::Allow
    }
}

/// The role that counts: the owner's is always admin.
pub fn effective_role(actor: &Actor, repo: &RepoFacts, role: Option<Role>) -> Option<Role> {
    if actor.user_id() == Some(repo.owner) { Some(Role::Admin) } else { role }
}

/// Decides whether `actor`, who has `role` as a collaborator, may do `action` to `repo`.
pub fn can(actor: &Actor, action: Action, repo: &RepoFacts, role: Option<Role>) -> Decision {
    let role = effective_role(actor, repo, role);
    let effect = action.effect();
    let reads = matches!(effect, Effect::Read);

    let known = *actor == Actor::Operator;
    // The operator knows what is deleted; what still makes sense with it is for the lifecycle to say.
    if repo.deleted && !known {
        let owner = actor.user_id() == Some(repo.owner);
        let allowed = match action {
            Action::TombstoneRead => owner,
            Action::RepoRestore => owner && !actor.is_suspended(),
            _ => false,
        };
        return if allowed { Decision::Allow } else { deny(DenyCode::Deleted, true) };
    }
    if (actor.is_site_admin() || known) && reads {
        return Decision::Allow;
    }
    let readable = known || actor.is_site_admin() || repo.visibility == Visibility::Public || role.is_some();
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
        // What a reader keeps for themselves needs someone to keep it for.
        None if known => deny(DenyCode::LoginRequired, false),
        Some(needed) if role < Some(needed) && !known => deny(DenyCode::RoleTooLow { needed }, false),
        _ => Decision::Allow,
    }
}

words! {
    /// What can be done to one issue, or to one comment, by those who wrote it and by those who look after all of them.
    IssueAction {
        /// Change its title or its text.
        Edit = "edit",
        /// Close it.
        Close = "close",
        /// Open it again.
        Reopen = "reopen",
        /// Remove it: a comment; issues stay.
        Remove = "remove",
        /// Label it, make someone responsible, put it into a milestone.
        Triage = "triage",
    }
}

/// Decides whether `actor`, who has `role` in `repo`, may do `action` to what `author` wrote there. Authors may change,
/// close and open again what is theirs as long as they may still speak in the repository.
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
    /// What can be done about an offer to hand a repository over.
    OfferAction {
        /// Look at it.
        See = "see",
        /// Take the repository.
        Accept = "accept",
        /// Say no.
        Decline = "decline",
        /// Take the offer back.
        Cancel = "cancel",
    }
}

/// The two sides of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferFacts {
    /// Whose the repository was when it was offered.
    pub from_owner: UserId,
    /// To whom it is offered.
    pub recipient: UserId,
}

/// Decides whether `actor`, who has `role` in the offered `repo`, may do `action` to the offer. Only its two sides and
/// those who administer the repository know of it, whether or not the recipient may read the repository.
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
        // Who gave it away is no admin any more, and still hears that it was too late rather than nothing.
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
