//! Threads of a repository: issues, statuses and comments.

use super::reference::repos;
use super::{Coordinate, Invalid};
use crate::event::{first_value, tags, values};
use crate::{Event, EventId, PublicKey, hexadecimal, kinds};

/// An issue, kind 1621. Its text is the event's content, in Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    pub id: EventId,
    pub author: PublicKey,
    pub repos: Vec<Coordinate>,
    pub subject: Option<String>,
    pub labels: Vec<String>,
}

impl Issue {
    /// Parses an issue.
    pub fn parse(event: &Event) -> Result<Self, Invalid> {
        if event.kind.as_u16() != kinds::ISSUE {
            return Err(Invalid::Kind);
        }
        let subject = first_value(event, "subject").filter(|text| !text.is_empty()).map(str::to_owned);
        let labels = values(event, "t").map(str::to_owned).collect();
        Ok(Self { id: event.id, author: event.pubkey, repos: repos(event), subject, labels })
    }
}

/// Status of an issue or a PR event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Kind 1630.
    Open,
    /// Kind 1631: applied, merged or resolved.
    Applied,
    /// Kind 1632.
    Closed,
    /// Kind 1633.
    Draft,
}

impl Status {
    /// The status that events of this kind say; `None` for other kinds.
    pub fn of(kind: u16) -> Option<Self> {
        match kind {
            kinds::STATUS_OPEN => Some(Self::Open),
            kinds::STATUS_APPLIED => Some(Self::Applied),
            kinds::STATUS_CLOSED => Some(Self::Closed),
            kinds::STATUS_DRAFT => Some(Self::Draft),
            _ => None,
        }
    }
}

/// A status change. The reader checks whether its author may make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusEvent {
    pub id: EventId,
    pub author: PublicKey,
    /// Seconds; the latest status counts.
    pub created_at: u64,
    pub status: Status,
    /// The issue or PR event: the `e` tag marked `root`, else the first.
    pub root: EventId,
}

impl StatusEvent {
    /// Parses a status event.
    pub fn parse(event: &Event) -> Result<Self, Invalid> {
        let status = Status::of(event.kind.as_u16()).ok_or(Invalid::Kind)?;
        let root = root(event).ok_or(Invalid::Missing("e"))?;
        Ok(Self { id: event.id, author: event.pubkey, created_at: event.created_at.as_secs(), status, root })
    }
}

/// Root event of an event: its `e` tag marked `root`, else the first.
pub(super) fn root(event: &Event) -> Option<EventId> {
    let is_root = |(name, values): &(&str, &[String])| *name == "e" && values.get(2).is_some_and(|mark| mark == "root");
    let marked = tags(event).find(is_root).and_then(|(_, values)| values.first()).map(String::as_str);
    marked.or_else(|| first_value(event, "e")).and_then(hexadecimal::decode).map(EventId::from_byte_array)
}

/// Subject of a comment thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    Event(EventId),
    /// A replaceable event, such as a repository.
    Coordinate(Coordinate),
}

/// A comment, kind 1111 (NIP-22). Its text is the event's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub id: EventId,
    pub author: PublicKey,
    pub root: Root,
    /// The event it replies to, if any.
    pub parent: Option<EventId>,
}

impl Comment {
    /// Parses a comment on a nostr event; refuses comments on web pages and other external content.
    pub fn parse(event: &Event) -> Result<Self, Invalid> {
        if event.kind.as_u16() != kinds::COMMENT {
            return Err(Invalid::Kind);
        }
        let id = |name| first_value(event, name).and_then(hexadecimal::decode).map(EventId::from_byte_array);
        let coordinate = || first_value(event, "A").and_then(|text| text.parse().ok()).map(Root::Coordinate);
        let root = id("E").map(Root::Event).or_else(coordinate).ok_or(Invalid::Missing("E"))?;
        Ok(Self { id: event.id, author: event.pubkey, root, parent: id("e") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, key, sample};

    #[test]
    fn a_published_clients_issue_and_status_are_read() {
        let issue = Issue::parse(&sample(1621)).unwrap();
        assert_eq!(issue.subject.as_deref(), Some("Bug one"));
        assert_eq!(issue.repos, [Coordinate::repo(sample(30_617).pubkey, "flow-1794706958")]);
        let status = StatusEvent::parse(&sample(1631)).unwrap();
        assert_eq!((status.status, status.root), (Status::Applied, sample(1618).id));
    }

    #[test]
    fn a_status_is_about_its_root() {
        let (a, b) = ("aa".repeat(32), "bb".repeat(32));
        let root =
            |tags: &[&[&str]]| StatusEvent::parse(&event(1, 1632, 0, tags, "")).map(|status| status.root.to_hex());
        assert_eq!(root(&[&["e", &a, "", "reply"], &["e", &b, "", "root"]]), Ok(b.clone()));
        assert_eq!(root(&[&["e", &a], &["e", &b]]), Ok(a));
        assert_eq!(root(&[&["e", "x"]]), Err(Invalid::Missing("e")));
        assert_eq!(root(&[]), Err(Invalid::Missing("e")));
    }

    #[test]
    fn each_status_kind_is_its_own() {
        let id = "aa".repeat(32);
        let status = |kind| StatusEvent::parse(&event(1, kind, 0, &[&["e", &id]], "")).map(|status| status.status);
        let all = [1629, 1630, 1631, 1632, 1633, 1634].map(status);
        let none = Err(Invalid::Kind);
        assert_eq!(
            all,
            [none.clone(), Ok(Status::Open), Ok(Status::Applied), Ok(Status::Closed), Ok(Status::Draft), none]
        );
    }

    #[test]
    fn a_comment_hangs_on_an_event_or_on_a_repository() {
        let (a, b) = ("aa".repeat(32), "bb".repeat(32));
        let repo = Coordinate::repo(key(1), "x");
        let comment = |tags: &[&[&str]]| Comment::parse(&event(1, 1111, 0, tags, "hello"));
        let on_event = comment(&[&["E", &a], &["e", &b]]).unwrap();
        assert_eq!((on_event.root, on_event.parent.unwrap().to_hex()), (Root::Event(a.parse().unwrap()), b));
        assert_eq!(comment(&[&["A", &repo.to_string()]]).unwrap().root, Root::Coordinate(repo));
        assert_eq!(comment(&[&["I", "https://example.org"]]), Err(Invalid::Missing("E")));
    }
}
