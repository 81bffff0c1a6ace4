//! The rule against its specification.

use super::*;
use crate::UserId;
use crate::WatchLevel::{All, Ignore};
use crate::event::tests::samples;
use crate::event::{Kind, RoleChange};
use crate::repo::Role;

fn roles() -> impl Iterator<Item = Option<Role>> {
    std::iter::once(None).chain(Role::ALL.iter().copied().map(Some))
}

/// Kinds that notify somebody whatever their details are.
const KINDS: &[Kind] = &[
    Kind::IssueCreated,
    Kind::IssueCommentCreated,
    Kind::IssueClosed,
    Kind::IssueReopened,
    Kind::PrOpened,
    Kind::PrCommentCreated,
    Kind::PrSynchronized,
    Kind::PrClosed,
    Kind::PrMerged,
    Kind::PrReopened,
    Kind::IssueEdited,
    Kind::IssueCommentEdited,
    Kind::IssueAssigned,
    Kind::ReviewRequested,
    Kind::RepoRenamed,
    Kind::RepoArchived,
    Kind::RepoUnarchived,
    Kind::RepoVisibilityChanged,
    Kind::RepoTransferAccepted,
    Kind::RepoRestored,
    Kind::RepoTransferRequested,
    Kind::RepoTransferDeclined,
    Kind::RepoTransferCanceled,
    Kind::RepoTransferExpired,
    Kind::RepoSoftDeleted,
    Kind::RepoHardDeleted,
    Kind::RepoRedirectReleased,
    Kind::WebhookSuspended,
    Kind::WebhookResumed,
    Kind::CollaboratorAdded,
    Kind::CollaboratorRemoved,
];

/// Everyone there can be.
fn people() -> Vec<Person> {
    let mut all = Vec::new();
    let hearings = [Hearing::Unsaid, Hearing::Muted].into_iter();
    let hearings: Vec<_> = hearings.chain(Reason::ALL.iter().map(|&why| Hearing::Subscribed(why))).collect();
    for &sight in Sight::ALL {
        for &level in WatchLevel::ALL {
            for &hearing in &hearings {
                for bits in 0..16_u8 {
                    let bit = |n: u8| bits & (1 << n) != 0;
                    let (actor, suspended, named, concerned) = (bit(0), bit(1), bit(2), bit(3));
                    all.push(Person { actor, suspended, sight, level, hearing, named, concerned });
                }
            }
        }
    }
    all
}

#[test]
fn people_are_mailed_about_their_own_doing_only_where_it_cannot_be_undone_or_hands_something_away() {
    let mailed = [
        Kind::RepoTransferRequested,
        Kind::RepoTransferAccepted,
        Kind::RepoSoftDeleted,
        Kind::RepoHardDeleted,
        Kind::RepoRedirectReleased,
    ];
    for body in samples() {
        let Some(change) = RepoChange::of(&body.payload) else { continue };
        let kind = body.payload.kind();
        if change.collaborator().is_none() {
            assert_eq!(change.is_mailed_to_actor(), mailed.contains(&kind), "{kind}");
        }
    }
    for role in roles() {
        let changed = RoleChange { user_id: UserId::new(2), user: "bob".into(), before: None, after: role };
        for change in [RepoChange::CollaboratorAdded(&changed), RepoChange::CollaboratorChanged(&changed)] {
            assert_eq!(change.is_mailed_to_actor(), role == Some(Role::Admin));
        }
        assert!(RepoChange::CollaboratorRemoved(&changed).is_mailed_to_actor());
    }
}

#[test]
fn every_event_with_the_repository_as_its_topic_is_a_change_of_it_and_no_other() {
    for body in samples() {
        let topic = topic(body.payload.kind(), Some(Role::Admin));
        let about_repo = topic.is_some_and(|topic| topic.subject == Subject::Repo);
        assert_eq!(RepoChange::of(&body.payload).is_some(), about_repo, "{}", body.payload.kind());
    }
}

#[test]
fn raising_a_collaborator_to_admin_is_told_like_adding_one() {
    for role in roles() {
        let added = topic(Kind::CollaboratorAdded, role);
        assert!(added.is_some_and(|topic| topic.audience == Audience::Concerned));
        let raised = topic(Kind::CollaboratorChanged, role);
        assert_eq!(raised, added.filter(|_| role == Some(Role::Admin)), "{role:?}");
        assert_eq!(topic(Kind::CollaboratorRemoved, role), added, "and so is removing one");
    }
}

#[test]
fn who_is_told_and_why() {
    for &kind in KINDS {
        let topic = topic(kind, None).expect("a topic");
        for person in people() {
            let reason = super::reason(topic, &person);
            let say = format!("{kind} {person:?} -> {reason:?}");
            let Person { named, concerned, level, hearing, sight, .. } = person;
            let concerned = concerned && topic.subject == Subject::Repo;
            let spoken_to = named && matches!(topic.naming, Reason::Mention | Reason::ReviewRequested);
            let sees = sight == Sight::Event || (sight == Sight::Repo && concerned);

            // People who never get a notification.
            if person.actor || person.suspended || !sees {
                assert_eq!(reason, None, "{say}");
                continue;
            }
            if spoken_to {
                assert_eq!(reason, Some(topic.naming), "{say}");
                continue;
            }
            if level == Ignore || hearing == Hearing::Muted {
                assert_eq!(reason, None, "{say}");
                continue;
            }
            // People who get a notification, by the strongest of their reasons.
            let mut reasons = Vec::new();
            if named {
                reasons.push(topic.naming);
            }
            if concerned {
                reasons.push(Reason::Lifecycle);
            }
            if let (Audience::Everyone, Hearing::Subscribed(why)) = (topic.audience, hearing) {
                reasons.push(why);
            }
            if level == All && !matches!(topic.audience, Audience::Concerned | Audience::Named) {
                reasons.push(Reason::Watching);
            }
            assert_eq!(reason, reasons.iter().copied().min(), "{say}");
        }
    }
}

#[test]
fn nobody_is_told_of_pushes_and_stars() {
    use Kind::{Follow, IssueLabeled, IssueUnassigned, Push, RepoCreated, Star, Unstar};
    for kind in [Push, Star, Unstar, Follow, RepoCreated, IssueLabeled, IssueUnassigned] {
        assert_eq!(topic(kind, None), None, "{kind}");
    }
}

#[test]
fn offers_are_told_to_their_two_sides_alone() {
    for &kind in KINDS.iter().filter(|kind| kind.as_str().starts_with("repo_transfer_")) {
        let alone = kind != Kind::RepoTransferAccepted;
        assert_eq!(topic(kind, None).expect("a topic").audience == Audience::Concerned, alone, "{kind}");
    }
}

#[test]
fn a_stronger_reason_stays_until_it_is_read() {
    assert_eq!(Reason::Watching.over(Some(Reason::Mention)), Reason::Mention);
    assert_eq!(Reason::Mention.over(Some(Reason::Watching)), Reason::Mention);
    assert_eq!(Reason::Watching.over(None), Reason::Watching);
    for &one in Reason::ALL {
        for &other in Reason::ALL {
            assert_eq!(one.over(Some(other)), other.over(Some(one)));
        }
    }
}

#[test]
fn a_mail_stays_unsent_to_whom_it_is_hidden_from_and_to_who_said_no_since() {
    let at = Timestamp::from_micros;
    for &sight in Sight::ALL {
        for muted in [None, Some(at(9)), Some(at(10)), Some(at(11))] {
            for ignored in [None, Some(at(9)), Some(at(10)), Some(at(11))] {
                let no = sight != Sight::Event || [muted, ignored].contains(&Some(at(11)));
                assert_eq!(still_mailed(at(10), sight, muted, ignored), !no, "{sight} {muted:?} {ignored:?}");
            }
        }
    }
}
