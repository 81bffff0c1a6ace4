//! Current status, title and tip of a thread.

use super::{ObjectId, PrEvent, PrKind, StatusEvent};
use crate::event::{Rank, first_value};
use crate::{Event, EventId, PublicKey};
use std::collections::BTreeSet;

/// Longest title, in characters.
const LONGEST: usize = 200;

/// Whether this key may set a thread's status: only its author and the repository's maintainers may.
pub fn may_say(key: &PublicKey, author: &PublicKey, maintainers: &BTreeSet<PublicKey>) -> bool {
    key == author || maintainers.contains(key)
}

/// The status event in force: the newest by an authorised key, and within one second the lowest id. Without one, a
/// thread is open.
pub fn standing<'a>(
    root: &EventId,
    author: &PublicKey,
    maintainers: &BTreeSet<PublicKey>,
    said: impl IntoIterator<Item = &'a StatusEvent>,
) -> Option<&'a StatusEvent> {
    said.into_iter()
        .filter(|status| status.root == *root && may_say(&status.author, author, maintainers))
        .max_by_key(|status| Rank { created_at: status.created_at, id: status.id })
}

/// Current tip of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Event that names the commit, which is pushed to `refs/nostr/<id>`.
    pub event: EventId,
    pub commit: Option<ObjectId>,
    pub merge_base: Option<ObjectId>,
}

/// The newest of a PR event and its updates. Only updates by its own author count.
pub fn tip(event: &Event, pr_event: &PrEvent, updates: &[(Rank, PrEvent)]) -> Tip {
    let own =
        |(_, update): &&(Rank, PrEvent)| update.kind == PrKind::Update(pr_event.id) && update.author == pr_event.author;
    let newest = updates.iter().filter(own).max_by_key(|(rank, _)| *rank).filter(|(rank, _)| *rank > Rank::of(event));
    let newest = newest.map_or(pr_event, |(_, update)| update);
    Tip { event: newest.id, commit: newest.commit, merge_base: newest.merge_base.or(pr_event.merge_base) }
}

/// Title of a thread: its subject tag, else the mail subject of a patch, else the first line of its text.
pub fn title(event: &Event) -> String {
    let subject = first_value(event, "subject").map(str::trim).filter(|text| !text.is_empty());
    let text = subject.or_else(|| mail_subject(&event.content)).or_else(|| first_line(&event.content));
    let text: String = text.unwrap_or("Untitled").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Mail subject of a patch as git writes it, without `[PATCH 1/2]`.
fn mail_subject(content: &str) -> Option<&str> {
    let headers = content.lines().take(40).take_while(|line| !line.is_empty());
    let subject = headers.filter_map(|line| line.strip_prefix("Subject:")).next()?.trim();
    let bare = match subject.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => rest.trim(),
        None => subject,
    };
    (!bare.is_empty()).then_some(bare)
}

fn first_line(content: &str) -> Option<&str> {
    content.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Status;
    use crate::testing::{event, key, sample};

    fn status(author: u8, kind: u16, at: i64, root: &Event) -> StatusEvent {
        StatusEvent::parse(&event(author, kind, at, &[&["e", &root.id.to_hex(), "", "root"]], "")).unwrap()
    }

    #[test]
    fn the_newest_word_of_the_author_or_a_maintainer_holds() {
        let issue = event(1, 1621, 0, &[], "x");
        let maintainers = BTreeSet::from([key(5), key(6)]);
        let said = |list: &[StatusEvent]| {
            standing(&issue.id, &issue.pubkey, &maintainers, list).map(|status| (status.status, status.author))
        };
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[status(9, 1632, 5, &issue)]), None, "a stranger's word counts nothing");
        let (closed, resolved) = (status(1, 1632, 1, &issue), status(6, 1631, 2, &issue));
        assert_eq!(
            said(&[resolved.clone(), closed.clone(), status(9, 1630, 9, &issue)]),
            Some((Status::Applied, key(6)))
        );
        assert_eq!(said(&[resolved, closed, status(1, 1630, 3, &issue)]), Some((Status::Open, key(1))));
    }

    #[test]
    fn of_one_second_the_lowest_id_holds_and_words_on_other_threads_do_not() {
        let (issue, other) = (event(1, 1621, 0, &[], "x"), event(1, 1621, 0, &[], "y"));
        let pair = [status(1, 1632, 1, &issue), status(1, 1631, 1, &issue)];
        let lowest = pair.iter().min_by_key(|status| status.id).unwrap().clone();
        for list in [pair.to_vec(), pair.iter().rev().cloned().collect()] {
            assert_eq!(standing(&issue.id, &issue.pubkey, &BTreeSet::new(), &list), Some(&lowest));
        }
        assert_eq!(standing(&other.id, &issue.pubkey, &BTreeSet::new(), &pair), None);
    }

    #[test]
    fn an_update_by_the_author_moves_the_tip_and_one_by_a_stranger_does_not() {
        let (pull, update) = (sample(1618), sample(1619));
        let pr_event = PrEvent::parse(&pull).unwrap();
        let newer = (Rank::of(&update), PrEvent::parse(&update).unwrap());
        assert_eq!(tip(&pull, &pr_event, &[]).event, pull.id);
        let moved = tip(&pull, &pr_event, std::slice::from_ref(&newer));
        assert_eq!((moved.event, moved.commit), (update.id, newer.1.commit));
        let stranger = (newer.0, PrEvent { author: key(9), ..newer.1.clone() });
        assert_eq!(tip(&pull, &pr_event, &[stranger]).event, pull.id);
        let older = (Rank { created_at: 0, ..newer.0 }, newer.1);
        assert_eq!(tip(&pull, &pr_event, &[older]).event, pull.id);
    }

    #[test]
    fn a_title_is_the_subject_or_the_first_words() {
        let titled = |tags: &[&[&str]], content: &str| title(&event(1, 1617, 0, tags, content));
        assert_eq!(titled(&[&["subject", "Bug"]], "text"), "Bug");
        assert_eq!(titled(&[&["subject", " "]], "\n\n## Broken\nmore"), "Broken");
        let mail = "From abc Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nSubject: [PATCH 2/3] Mend it\n\nBody";
        assert_eq!(titled(&[], mail), "Mend it");
        assert_eq!(titled(&[], "Subject: [PATCH]\n\nx"), "Subject: [PATCH]");
        assert_eq!(titled(&[], ""), "Untitled");
        assert_eq!(titled(&[&["subject", "a\u{7}b"]], ""), "a b");
        assert_eq!(titled(&[], &"ü".repeat(300)).chars().count(), LONGEST + 1);
    }
}
