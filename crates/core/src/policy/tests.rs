//! The whole matrix: every actor kind × repository state × action, from the enums themselves.
//!
//! The expectation is written independently of [`can`], as a table of minimum roles, so that the two can disagree.

use super::*;

const OWNER: UserId = UserId::new(1);
const OTHER: UserId = UserId::new(2);

fn user(id: UserId, site_admin: bool, suspended: bool) -> Actor {
    Actor::User { id, site_admin, suspended }
}

/// Every actor kind, with each possible collaborator role.
fn actors() -> Vec<(Actor, Option<Role>)> {
    let mut all = vec![(Actor::Anonymous, None), (Actor::Operator, None)];
    for suspended in [false, true] {
        for site_admin in [false, true] {
            all.push((user(OWNER, site_admin, suspended), None));
            all.push((user(OTHER, site_admin, suspended), None));
            all.extend(Role::ALL.iter().map(|&role| (user(OTHER, site_admin, suspended), Some(role))));
        }
    }
    all
}

fn repos() -> Vec<RepoFacts> {
    let mut all = Vec::new();
    for &visibility in Visibility::ALL {
        for archived in [false, true] {
            for deleted in [false, true] {
                all.push(RepoFacts { owner: OWNER, visibility, archived, deleted });
            }
        }
    }
    all
}

/// Expectation per action on a live repository: minimum role (`None`: login alone), whether it only reads, and whether
/// it works on an archived one.
fn expectations(action: Action) -> (Option<Role>, bool, bool) {
    use Action::*;
    let (role, looks, archived) = match action {
        RepoRead => (Some(Role::Read), true, true),
        GitPush => (Some(Role::Write), false, false),
        StarCreate | WatchSet | ForkCreate => (None, false, true),
        IssueCreate | IssueComment => (None, false, false),
        IssueTriage => (Some(Role::Triage), false, false),
        IssueModerate => (Some(Role::Write), false, false),
        RepoEdit => (Some(Role::Maintain), false, false),
        CollaboratorList => (Some(Role::Write), true, true),
        WatcherList | WebhookList | AuditRead | TombstoneRead => (Some(Role::Admin), true, true),
        CollaboratorManage | DefaultBranchSet | WebhookManage | Unknown => (Some(Role::Admin), false, false),
        RepoAdmin | RedirectRelease | RepoTransfer | RepoArchive | RepoUnarchive | RepoVisibility | RepoDelete
        | RepoRestore | RepoPurge => (Some(Role::Admin), false, true),
    };
    (role, looks, archived)
}

fn expected_to_be_allowed(actor: &Actor, action: Action, repo: &RepoFacts, role: Option<Role>) -> bool {
    let (least, looks, while_archived) = expectations(action);
    let is_owner = actor.user_id() == Some(OWNER);
    let (site_admin, suspended) = match actor {
        // The operator may do everything except personal actions, also to deleted repositories.
        Actor::Operator => return least.is_some() && (while_archived || !repo.archived),
        Actor::Anonymous => (false, false),
        Actor::User { site_admin, suspended, .. } => (*site_admin, *suspended),
    };
    if repo.deleted {
        return is_owner && (action == Action::TombstoneRead || (action == Action::RepoRestore && !suspended));
    }
    let role = if is_owner { Some(Role::Admin) } else { role };
    let reads = site_admin || role.is_some() || repo.visibility == Visibility::Public;
    let logged_in = *actor != Actor::Anonymous;
    let enough = match (action, least) {
        (Action::RepoRead, _) => true,
        (_, None) => logged_in,
        (_, Some(least)) => role.is_some_and(|role| role >= least) || (site_admin && looks),
    };
    reads && enough && (looks || !suspended) && (while_archived || !repo.archived)
}

#[test]
fn the_whole_matrix_holds() {
    let mut cells = 0;
    for (actor, role) in actors() {
        for repo in repos() {
            for &action in Action::ALL {
                let decision = can(&actor, action, &repo, role);
                assert_eq!(
                    decision.is_allowed(),
                    expected_to_be_allowed(&actor, action, &repo, role),
                    "{actor:?} with {role:?} asks {action} of {repo:?}: {decision:?}"
                );
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 30 * 8 * Action::ALL.len());
}

#[test]
fn a_denial_is_hidden_exactly_when_the_actor_may_not_read() {
    for (actor, role) in actors() {
        for repo in repos() {
            let may_read = can(&actor, Action::RepoRead, &repo, role).is_allowed();
            for &action in Action::ALL {
                if let Decision::Deny { hidden, code } = can(&actor, action, &repo, role) {
                    assert_eq!(hidden, !may_read, "{actor:?} {role:?} {action} {repo:?} {code:?}");
                }
            }
        }
    }
}

#[test]
fn the_archived_answer_is_given_only_to_readers() {
    for (actor, role) in actors() {
        for repo in repos() {
            for &action in Action::ALL {
                if let Decision::Deny { code: DenyCode::Archived(_), .. } = can(&actor, action, &repo, role) {
                    assert!(can(&actor, Action::RepoRead, &repo, role).is_allowed());
                }
            }
        }
    }
}

#[test]
fn a_higher_role_never_takes_anything_away() {
    for repo in repos() {
        for &action in Action::ALL {
            let mut allowed = false;
            for role in std::iter::once(None).chain(Role::ALL.iter().copied().map(Some)) {
                let now = can(&user(OTHER, false, false), action, &repo, role).is_allowed();
                assert!(now || !allowed, "{action} lost at {role:?} on {repo:?}");
                allowed = now;
            }
        }
    }
}

#[test]
fn roles_are_ordered_as_the_words_say() {
    assert!(None < Some(Role::Read) && Role::Read < Role::Triage && Role::Triage < Role::Write);
    assert!(Role::Write < Role::Maintain && Role::Maintain < Role::Admin);
}

#[test]
fn what_someone_wrote_is_theirs_to_change_and_everything_is_for_those_who_look_after_it() {
    let mut cells = 0;
    for (actor, role) in actors() {
        for repo in repos() {
            for author in [None, Some(OWNER), Some(OTHER), Some(UserId::new(3))] {
                for &action in IssueAction::ALL {
                    let decision = can_issue(&actor, action, author, &repo, role);
                    let (id, suspended, site_admin) = match actor {
                        Actor::User { id, suspended, site_admin } => (Some(id), suspended, site_admin),
                        _ => (None, false, false),
                    };
                    let theirs = author.is_some() && id == author;
                    let role = if id == Some(OWNER) { Some(Role::Admin) } else { role };
                    let reads =
                        !repo.deleted && (repo.visibility == Visibility::Public || role.is_some() || site_admin);
                    let least = match action {
                        IssueAction::Close | IssueAction::Reopen | IssueAction::Triage => Role::Triage,
                        IssueAction::Edit | IssueAction::Remove => Role::Write,
                    };
                    let enough = role >= Some(least) || (theirs && action != IssueAction::Triage);
                    let expected = match actor {
                        Actor::Operator => !repo.archived,
                        _ => reads && enough && !suspended && !repo.archived,
                    };
                    assert_eq!(decision.is_allowed(), expected, "{actor:?} {role:?} {action} {author:?} {repo:?}");
                    if let Decision::Deny { hidden, .. } = decision {
                        let may_read = can(&actor, Action::RepoRead, &repo, role).is_allowed();
                        assert_eq!(hidden, !may_read, "{actor:?} {role:?} {action} {author:?} {repo:?}");
                    }
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 30 * 8 * 4 * IssueAction::ALL.len());
}

#[test]
fn an_offer_is_known_to_its_two_sides_and_to_admins_and_answered_by_the_right_one() {
    const GIVER: UserId = OWNER;
    const TAKER: UserId = UserId::new(3);
    let offer = OfferFacts { from_owner: GIVER, recipient: TAKER };
    let mut cells = 0;
    for owner in [GIVER, TAKER] {
        for repo in repos().into_iter().map(|repo| RepoFacts { owner, ..repo }) {
            for (actor, role) in actors().into_iter().chain([(user(TAKER, false, false), None)]) {
                for &action in OfferAction::ALL {
                    let decision = can_offer(&actor, action, &offer, &repo, role);
                    let (id, suspended, site_admin) = match actor {
                        Actor::User { id, suspended, site_admin } => (Some(id), suspended, site_admin),
                        _ => (None, false, actor == Actor::Operator),
                    };
                    let admin = actor == Actor::Operator
                        || (!repo.deleted && !suspended && (id == Some(owner) || role == Some(Role::Admin)));
                    let side = id == Some(GIVER) || id == Some(TAKER);
                    let expected = match action {
                        OfferAction::See => side || admin || site_admin,
                        OfferAction::Accept | OfferAction::Decline => id == Some(TAKER) && !suspended,
                        OfferAction::Cancel => (id == Some(GIVER) && !suspended) || admin,
                    };
                    assert_eq!(decision.is_allowed(), expected, "{actor:?} {role:?} {action} {repo:?}");
                    if let Decision::Deny { hidden, .. } = decision {
                        assert_eq!(hidden, !(side || admin || site_admin), "{actor:?} {role:?} {action} {repo:?}");
                    }
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 2 * 8 * 31 * OfferAction::ALL.len());
}

#[test]
fn an_archived_repository_says_what_of_it_is_disabled() {
    let actor = Actor::User { id: UserId::new(1), site_admin: false, suspended: false };
    let repo = RepoFacts { owner: UserId::new(1), visibility: Visibility::Public, archived: true, deleted: false };
    let texts = [
        (Action::GitPush, "pushes are disabled"),
        (Action::IssueCreate, "new issues are disabled"),
        (Action::IssueComment, "comments and changes to them are disabled"),
        (Action::IssueTriage, "labelling, assigning, closing and reopening issues are disabled"),
        (Action::IssueModerate, "changes to labels, milestones and issue texts are disabled"),
        (Action::RepoEdit, "changes to description and topics are disabled"),
        (Action::CollaboratorManage, "changes to collaborators are disabled"),
        (Action::DefaultBranchSet, "changes to the default branch are disabled"),
        (Action::WebhookManage, "changes to webhooks are disabled"),
        (Action::Unknown, "it is read-only"),
    ];
    let mut refused = 0;
    for &action in Action::ALL {
        if let Decision::Deny { code: DenyCode::Archived(of), .. } = can(&actor, action, &repo, None) {
            assert_eq!(of, action);
            refused += 1;
            let text = texts.iter().find(|(known, _)| *known == action).map(|(_, text)| *text);
            assert_eq!(text, Some(action.disabled()), "{action:?}");
        }
    }
    assert_eq!(refused, texts.len(), "an archived repository refuses nothing else");
}

#[test]
fn signed_events_push_to_live_repositories_that_are_not_archived() {
    for visibility in [Visibility::Public, Visibility::Private] {
        let facts = |archived, deleted| RepoFacts { owner: UserId::new(1), visibility, archived, deleted };
        assert_eq!(can_push_by_events(&facts(false, false)), Decision::Allow);
        assert_eq!(can_push_by_events(&facts(true, false)), deny(DenyCode::Archived(Action::GitPush), false));
        for archived in [false, true] {
            assert_eq!(can_push_by_events(&facts(archived, true)), deny(DenyCode::Deleted, true));
        }
    }
}

#[test]
fn a_site_admin_acts_unless_suspended_and_reads_everything_anyway() {
    let account = |site_admin, suspended| Actor::User { id: UserId::new(7), site_admin, suspended };
    assert_eq!(site_admin(&account(true, false)).map(SiteAdmin::id), Some(UserId::new(7)));
    for actor in [account(true, true), account(false, false), account(false, true), Actor::Operator, Actor::Anonymous] {
        assert_eq!(site_admin(&actor), None, "{actor:?}");
    }
    for (actor, reads) in [
        (Actor::Operator, true),
        (account(true, false), true),
        (account(true, true), true),
        (account(false, false), false),
        (Actor::Anonymous, false),
    ] {
        assert_eq!(reads_everything(&actor), reads, "{actor:?}");
    }
}
