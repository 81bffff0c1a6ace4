//! Repository states, kind 30618: the signed values of all refs.

use super::{Identifier, Invalid, ObjectId};
use crate::event::{Rank, tags};
use crate::{Event, PublicKey, RelayLimits, kinds};
use abide_core::RefName;
use std::collections::BTreeMap;

/// Branches and tags of a repository, signed by a maintainer. A state without refs says that its author no longer
/// tracks the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoState {
    /// Order among versions and among maintainers.
    pub rank: Rank,
    pub author: PublicKey,
    /// The state applies to repositories with this identifier that its author maintains.
    pub identifier: Identifier,
    /// Value of each branch and tag. No name is a directory prefix of another.
    pub refs: BTreeMap<RefName, ObjectId>,
    /// Branch in HEAD; it need not exist.
    pub head: Option<RefName>,
}

impl RepoState {
    /// Parses a state. Ignores peeled entries (`^{}`) and refs outside `refs/heads/` and `refs/tags/`. An invalid
    /// object id is kept as [`ObjectId::Unreadable`], so the state waits for data that never arrives instead of being
    /// refused.
    pub fn parse(event: &Event, limits: &RelayLimits) -> Result<Self, Invalid> {
        if event.kind.as_u16() != kinds::STATE {
            return Err(Invalid::Kind);
        }
        let mut refs = BTreeMap::new();
        let mut head: Option<RefName> = None;
        for (name, values) in tags(event) {
            let value = values.first().map_or("", String::as_str);
            if name == "HEAD" {
                let named = parse_head(value)?;
                if head.as_ref().is_some_and(|head| *head != named) {
                    return Err(Invalid::Contradiction("HEAD".to_owned()));
                }
                head = Some(named);
            } else if is_state_ref(name) && !name.ends_with("^{}") {
                let id = value.parse().unwrap_or(ObjectId::Unreadable);
                let parsed: RefName = name.parse().map_err(|rule| Invalid::RefName(shortened(name), rule))?;
                if refs.insert(parsed, id).is_some_and(|other| other != id) {
                    return Err(Invalid::Contradiction(shortened(name)));
                }
            }
        }
        if let Some((directory, below)) = name_in_the_way(&refs) {
            return Err(Invalid::NameInTheWay(shortened(directory), shortened(below)));
        }
        let identifier = Identifier::of(event, limits)?;
        Ok(Self { rank: Rank::of(event), author: event.pubkey, identifier, refs, head })
    }

    /// Whether it names any ref. If not, repositories stay unchanged (NIP-34).
    pub fn tracks(&self) -> bool {
        !self.refs.is_empty()
    }
}

/// Whether states cover refs of this name.
pub(crate) fn is_state_ref(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/")
}

/// Branch in HEAD: `ref: refs/heads/x`, or without the `ref: ` prefix, as some clients write.
fn parse_head(value: &str) -> Result<RefName, Invalid> {
    let name = value.strip_prefix("ref: ").unwrap_or(value);
    let name: RefName = name.parse().map_err(|_| Invalid::Head)?;
    if name.as_branch().is_some() { Ok(name) } else { Err(Invalid::Head) }
}

/// A ref that is a directory prefix of another, and that other.
fn name_in_the_way(refs: &BTreeMap<RefName, ObjectId>) -> Option<(&str, &str)> {
    refs.keys().map(RefName::as_str).find_map(|name| {
        let mut directories = name.match_indices('/').map(|(at, _)| &name[..at]).filter(|part| is_state_ref(part));
        let directory = directories.find(|part| part.parse().is_ok_and(|part: RefName| refs.contains_key(&part)))?;
        Some((directory, name))
    })
}

/// A ref name, shortened for messages.
fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, sample};
    use abide_core::refs::InvalidRefName;
    use proptest::prelude::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn parse(tags: &[&[&str]]) -> Result<RepoState, Invalid> {
        RepoState::parse(&event(1, 30_618, 0, &[&[&["d", "x"] as &[&str]], tags].concat(), ""), &RelayLimits::default())
    }

    #[test]
    fn a_published_clients_state_is_read_without_its_peeled_tag() {
        let state = RepoState::parse(&sample(30_618), &RelayLimits::default()).unwrap();
        let names: Vec<_> = state.refs.keys().map(RefName::as_str).collect();
        assert_eq!(names, ["refs/heads/main", "refs/tags/v1"]);
        assert_eq!(state.head.unwrap().as_str(), "refs/heads/main");
        let tag: RefName = "refs/tags/v1".parse().unwrap();
        assert_eq!(state.refs[&tag].to_string(), "5cb24b2b99f02d4ba3e3130b8ea6ace0f9cc7c3b", "the tag, not its commit");
    }

    #[test]
    fn head_names_a_branch_that_need_not_exist() {
        let head = |value: &str| parse(&[&["refs/heads/main", A], &["HEAD", value]]).map(|state| state.head.unwrap());
        assert_eq!(head("ref: refs/heads/other").unwrap().as_str(), "refs/heads/other");
        assert_eq!(head("refs/heads/other").unwrap().as_str(), "refs/heads/other");
        for bad in [
            "ref: refs/tags/v1",
            "ref: HEAD",
            "refs/tags/v1",
            "ref: ref: refs/heads/main",
            A,
            "",
            "ref: refs/heads/a..b",
            "ref:  refs/heads/main",
        ] {
            assert_eq!(head(bad), Err(Invalid::Head), "{bad:?}");
        }
        assert_eq!(parse(&[&["refs/heads/main", A]]).unwrap().head, None);
        let two = parse(&[&["refs/heads/m", A], &["HEAD", "ref: refs/heads/m"], &["HEAD", "ref: refs/heads/n"]]);
        assert_eq!(two, Err(Invalid::Contradiction("HEAD".to_owned())));
    }

    #[test]
    fn names_and_ids_are_judged_as_git_would() {
        let one = |name: &str, id: &str| parse(&[&[name, id]]).map(|_| ());
        assert_eq!(one("refs/heads/ok", &"a".repeat(64)), Ok(()));
        assert_eq!(
            one("refs/heads/a..b", A),
            Err(Invalid::RefName("refs/heads/a..b".into(), InvalidRefName::ForbiddenSequence))
        );
        assert_eq!(one("refs/heads/", A), Err(Invalid::RefName("refs/heads/".into(), InvalidRefName::BadComponent)));
    }

    #[test]
    fn an_object_id_that_is_none_is_one_that_is_never_here() {
        for tag in [&["refs/heads/x", "main"] as &[&str], &["refs/heads/x", &"0".repeat(40)], &["refs/heads/x"]] {
            let state = parse(&[tag]).unwrap();
            assert!(state.refs.values().all(|id| id.sha1().is_none()), "{tag:?}");
        }
        assert!(matches!(parse(&[&["refs/heads/x", A], &["refs/heads/x", "?"]]), Err(Invalid::Contradiction(_))));
    }

    #[test]
    fn a_state_says_one_thing_of_each_ref() {
        assert!(parse(&[&["refs/heads/x", A], &["refs/heads/x", A]]).is_ok());
        assert!(matches!(parse(&[&["refs/heads/x", A], &["refs/heads/x", B]]), Err(Invalid::Contradiction(_))));
        let conflict = Err(Invalid::NameInTheWay("refs/heads/x".into(), "refs/heads/x/y/z".into()));
        assert_eq!(parse(&[&["refs/heads/x/y/z", A], &["refs/heads/x", A]]), conflict);
        assert!(parse(&[&["refs/heads/x", A], &["refs/heads/xy", A], &["refs/tags/x/y", A]]).is_ok());
    }

    #[test]
    fn other_namespaces_are_left_out_and_nothing_at_all_tracks_nothing() {
        let state =
            parse(&[&["refs/heads/x", A], &["refs/notes/y", "?"], &["refs/nostr/z", A], &["refs/tags/v^{}", "?"]]);
        assert_eq!(state.unwrap().refs.len(), 1);
        assert!(!parse(&[&["refs/notes/y", A]]).unwrap().tracks());
        assert!(!parse(&[]).unwrap().tracks() && parse(&[&["refs/heads/x", A]]).unwrap().tracks());
        let without_d = event(1, 30_618, 0, &[&["refs/heads/x", A]], "");
        assert_eq!(RepoState::parse(&without_d, &RelayLimits::default()), Err(Invalid::Missing("d")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// git can write every accepted state in one transaction: valid names, none a prefix of another.
        #[test]
        fn what_is_accepted_could_be_a_repository(
            tags in proptest::collection::vec(("(refs/(heads|tags|x)/)?[ab./^{}]{0,6}", "[ab]{39,41}"), 0..6)
        ) {
            let tags: Vec<Vec<&str>> = tags.iter().map(|(name, id)| vec![name.as_str(), id.as_str()]).collect();
            let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
            if let Ok(state) = parse(&tags) {
                let names: Vec<&str> = state.refs.keys().map(RefName::as_str).collect();
                for one in &names {
                    let below = format!("{one}/");
                    prop_assert!(is_state_ref(one));
                    prop_assert!(!names.iter().any(|other| other.starts_with(&below)));
                }
            }
        }
    }
}
