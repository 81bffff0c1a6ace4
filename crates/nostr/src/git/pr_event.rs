//! PR events to change a repository: patches, pull requests and their updates.

use super::reference::repos;
use super::{Coordinate, Invalid, ObjectId};
use crate::event::{first_value, tags, values};
use crate::{Event, EventId, PublicKey, hexadecimal, kinds};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrKind {
    /// 1617: the event contains the change. With a `c` tag, its commit is expected as git data too.
    Patch,
    /// 1618: the change is a commit.
    PullRequest,
    /// 1619: a new commit for the pull request in its `E` tag.
    Update(EventId),
}

/// A patch, a pull request or an update of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrEvent {
    /// Event id; its commit is pushed to `refs/nostr/<id>`.
    pub id: EventId,
    pub author: PublicKey,
    pub kind: PrKind,
    /// Target repositories.
    pub repos: Vec<Coordinate>,
    /// The proposed commit; `None` only for a patch.
    pub commit: Option<ObjectId>,
    pub merge_base: Option<ObjectId>,
    pub subject: Option<String>,
    /// Branch name chosen by the author.
    pub branch: Option<String>,
    /// Other clone URLs with the commit, as written.
    pub clone: Vec<String>,
    pub labels: Vec<String>,
}

impl PrEvent {
    /// Parses a patch, a pull request or an update of one.
    pub fn parse(event: &Event) -> Result<Self, Invalid> {
        let kind = match event.kind.as_u16() {
            kinds::PATCH => PrKind::Patch,
            kinds::PULL_REQUEST => PrKind::PullRequest,
            kinds::PULL_REQUEST_UPDATE => {
                let parent = first_value(event, "E").and_then(hexadecimal::decode);
                PrKind::Update(EventId::from_byte_array(parent.ok_or(Invalid::Missing("E"))?))
            }
            _ => return Err(Invalid::Kind),
        };
        let has_commit = tags(event).any(|(name, _)| name == "c");
        let commit = match first_value(event, "c") {
            Some(text) => Some(text.parse().map_err(|_| Invalid::ObjectId("c".to_owned()))?),
            None if has_commit || kind != PrKind::Patch => return Err(Invalid::Missing("c")),
            None => None,
        };
        let text = |name| first_value(event, name).filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Self {
            id: event.id,
            author: event.pubkey,
            kind,
            repos: repos(event),
            commit,
            merge_base: first_value(event, "merge-base").and_then(|text| text.parse().ok()),
            subject: text("subject"),
            branch: text("branch-name"),
            clone: tags(event).filter(|(name, _)| *name == "clone").flat_map(|(_, urls)| urls).cloned().collect(),
            labels: values(event, "t").map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, key, sample};

    #[test]
    fn a_published_clients_pull_request_and_update_are_read() {
        let pull = PrEvent::parse(&sample(1618)).unwrap();
        assert_eq!(pull.kind, PrKind::PullRequest);
        assert_eq!(pull.repos, [Coordinate::repo(sample(30_617).pubkey, "flow-1794706958")]);
        assert_eq!(pull.commit.unwrap().to_string(), "f533b9ed6d8d28b4d651d6832262dc33e8545c92");
        assert_eq!((pull.subject.as_deref(), pull.branch.as_deref()), (Some("MyPR"), Some("feature")));
        let update = PrEvent::parse(&sample(1619)).unwrap();
        assert_eq!(update.kind, PrKind::Update(pull.id));
        assert_ne!(update.commit, pull.commit);
    }

    #[test]
    fn a_commit_is_required_but_for_patches_and_must_be_one() {
        let repo = Coordinate::repo(key(1), "x").to_string();
        let commit = |kind: u16, c: &[&str]| {
            let parent = "ab".repeat(32);
            PrEvent::parse(&event(2, kind, 0, &[&["a", &repo], &["E", &parent], c], "")).map(|pr_event| pr_event.commit)
        };
        let oid = "c".repeat(40);
        for kind in [1617, 1618, 1619] {
            assert_eq!(commit(kind, &["c", &oid]), Ok(Some(oid.parse().unwrap())));
            assert_eq!(commit(kind, &["c", "main"]), Err(Invalid::ObjectId("c".to_owned())));
            assert_eq!(commit(kind, &["c"]), Err(Invalid::Missing("c")));
        }
        assert_eq!(commit(1617, &["t", "x"]), Ok(None));
        assert_eq!(commit(1618, &["t", "x"]), Err(Invalid::Missing("c")));
        assert_eq!(commit(1619, &["t", "x"]), Err(Invalid::Missing("c")));
        assert_eq!(commit(1621, &["c", &oid]), Err(Invalid::Kind));
    }

    #[test]
    fn an_update_names_what_it_updates() {
        let update = event(2, 1619, 0, &[&["c", &"c".repeat(40)], &["E", "x"]], "");
        assert_eq!(PrEvent::parse(&update), Err(Invalid::Missing("E")));
    }

    #[test]
    fn only_repositories_are_repositories() {
        let issue = format!("30618:{}:x", key(1));
        let patch =
            event(2, 1617, 0, &[&["a", &issue], &["a", "?"], &["A", &Coordinate::repo(key(1), "y").to_string()]], "");
        assert_eq!(PrEvent::parse(&patch).unwrap().repos, []);
    }
}
