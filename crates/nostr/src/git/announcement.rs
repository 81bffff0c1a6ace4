//! Repository announcements, kind 30617.

use super::{Identifier, Invalid, Service};
use crate::event::{Rank, first_value, tags, values};
use crate::{Event, PublicKey, RelayLimits, hexadecimal, kinds};

/// A repository as announced by its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Order among versions.
    pub rank: Rank,
    pub owner: PublicKey,
    pub identifier: Identifier,
    /// Display name.
    pub name: Option<String>,
    pub description: Option<String>,
    /// Clone URLs, as written.
    pub clone: Vec<String>,
    /// Relay URLs, as written.
    pub relays: Vec<String>,
    /// Web pages, as written.
    pub web: Vec<String>,
    /// Keys in the `maintainers` tag; not the full maintainer set (see [`crate::grasp::maintainers`]).
    pub maintainers: Vec<PublicKey>,
    /// Earliest unique commit, which identifies forks of the same codebase.
    pub earliest_commit: Option<String>,
    pub topics: Vec<String>,
}

impl Announcement {
    /// Parses an announcement.
    pub fn parse(event: &Event, limits: &RelayLimits) -> Result<Self, Invalid> {
        if event.kind.as_u16() != kinds::ANNOUNCEMENT {
            return Err(Invalid::Kind);
        }
        if tags(event).filter(|(name, _)| *name == "clone").count() > 1 {
            return Err(Invalid::Repeated("clone"));
        }
        let listed = all_values(event, "maintainers");
        let maintainers = listed.iter().map(|key| hexadecimal::decode(key).map(PublicKey::from_byte_array));
        let text = |name| first_value(event, name).filter(|text| !text.is_empty()).map(str::to_owned);
        let earliest =
            |(name, values): &(&str, &[String])| *name == "r" && values.get(1).is_some_and(|mark| mark == "euc");
        Ok(Self {
            rank: Rank::of(event),
            owner: event.pubkey,
            identifier: Identifier::of(event, limits)?,
            name: text("name"),
            description: text("description"),
            clone: all_values(event, "clone"),
            relays: all_values(event, "relays"),
            web: all_values(event, "web"),
            maintainers: maintainers.collect::<Option<_>>().ok_or(Invalid::Maintainer)?,
            earliest_commit: tags(event).find(earliest).and_then(|(_, values)| values.first().cloned()),
            topics: values(event, "t").map(str::to_owned).collect(),
        })
    }

    /// Whether both `clone` and `relays` name this server.
    pub fn lists(&self, service: &Service) -> bool {
        self.clone.iter().any(|url| Service::of_clone(url).as_ref() == Some(service))
            && self.relays.iter().any(|url| Service::of_relay(url).as_ref() == Some(service))
    }
}

/// All values of all tags with this name.
fn all_values(event: &Event, name: &str) -> Vec<String> {
    tags(event).filter(|(tag, _)| *tag == name).flat_map(|(_, values)| values).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, key, sample};

    fn parse(tags: &[&[&str]]) -> Result<Announcement, Invalid> {
        Announcement::parse(&event(1, 30_617, 0, tags, ""), &RelayLimits::default())
    }

    #[test]
    fn a_published_clients_announcement_lists_the_server_it_was_made_for() {
        let announcement = Announcement::parse(&sample(30_617), &RelayLimits::default()).unwrap();
        assert_eq!(announcement.identifier.as_str(), "flow-1794706958");
        assert_eq!(announcement.earliest_commit.as_deref(), Some("ce0b13ea68ba70fb3df184561aa51dba9c3c2d5e"));
        assert_eq!(announcement.description, None, "an empty text is none");
        assert!(announcement.lists(&Service::parse("http://127.0.0.1:17334").unwrap()));
        assert!(!announcement.lists(&Service::parse("http://127.0.0.1:17335").unwrap()));
    }

    #[test]
    fn a_server_must_be_in_clone_and_in_relays() {
        let ours = Service::parse("https://a.org").unwrap();
        let lists = |clone: &str, relays: &str| {
            parse(&[&["d", "x"], &["clone", "https://b.org/r", clone], &["relays", "wss://b.org", relays]])
                .unwrap()
                .lists(&ours)
        };
        assert!(lists("https://a.org/r.git", "wss://a.org"));
        assert!(!lists("https://a.org/r.git", "wss://c.org"));
        assert!(!lists("https://c.org/r.git", "wss://a.org"));
        assert!(!lists("not an address", "wss://a.org"));
        assert!(!parse(&[&["d", "x"]]).unwrap().lists(&ours));
    }

    #[test]
    fn what_breaks_a_rule_is_refused_with_it() {
        assert_eq!(parse(&[]), Err(Invalid::Missing("d")));
        assert_eq!(parse(&[&["d"]]), Err(Invalid::Missing("d")));
        assert_eq!(parse(&[&["d", "x"], &["clone", "a"], &["clone", "b"]]), Err(Invalid::Repeated("clone")));
        assert_eq!(parse(&[&["d", "x"], &["maintainers", &key(2).to_hex(), "npub1x"]]), Err(Invalid::Maintainer));
        assert_eq!(Announcement::parse(&sample(30_618), &RelayLimits::default()), Err(Invalid::Kind));
        let two = parse(&[&["d", "x"], &["maintainers", &key(2).to_hex(), &key(3).to_hex()]]).unwrap();
        assert_eq!(two.maintainers, [key(2), key(3)]);
    }
}
