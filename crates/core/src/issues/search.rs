//! What a search for issues in many repositories is asked for: `repo:alice/tool is:open author:@me crash`.
//!
//! The words of the [`filter`](super::filter), and what only makes sense where there is more than one repository.

use super::filter::{Filter, InvalidFilter};
use crate::UserName;
use crate::words::words;

words! {
    /// Which issues someone asks for across repositories.
    Concern {
        /// What they are responsible for.
        Assigned = "assigned",
        /// What they wrote.
        Created = "created",
        /// Where they were named.
        Mentioned = "mentioned",
        /// What they hear of.
        Subscribed = "subscribed",
        /// What is in repositories that they own or collaborate on.
        Repos = "repos",
        /// All of that.
        All = "all",
    }
}

/// The qualifiers of a search in many repositories.
const QUALIFIERS: &[&str] = &[
    "repo",
    "user",
    "org",
    "mentions",
    "type",
    "is",
    "state",
    "reason",
    "label",
    "author",
    "assignee",
    "milestone",
    "no",
    "sort",
];

/// What a search is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// What a list within one repository could be asked for too.
    pub filter: Filter,
    /// Only issues of this repository: owner and name, as typed.
    pub repo: Option<(String, String)>,
    /// Only issues of this owner's repositories.
    pub owner: Option<UserName>,
    /// Only issues that name this person.
    pub mentions: Option<UserName>,
}

impl Search {
    /// Reads what was typed. `@me` is whoever asks, if they have a name.
    pub fn parse(text: &str, me: Option<&UserName>) -> Result<Self, InvalidFilter> {
        let (mut repo, mut owner, mut mentions) = (None, None, None);
        let (mut several, mut impossible) = (false, false);
        let mut named = |value: &str, into: &mut Option<UserName>| match value.trim_start_matches('@').parse() {
            Ok(name) => *into = Some(name),
            Err(_) => impossible = true,
        };
        let mut filter = Filter::parse_with(text, QUALIFIERS, |name, value, filter| {
            let value = match (name, value) {
                // Who has no name wrote nothing that could be found by it.
                ("author" | "assignee" | "mentions" | "user", "@me") => me.map_or("", UserName::as_str),
                _ => value,
            };
            match name {
                "repo" => match value.split_once('/') {
                    Some((of, name)) => several |= repo.replace((of.to_owned(), name.to_owned())).is_some(),
                    None => filter.impossible = true,
                },
                "user" | "org" => named(value, &mut owner),
                "mentions" => named(value, &mut mentions),
                "type" => return filter.qualify("is", value),
                _ => return filter.qualify(name, value),
            }
            true
        })?;
        if several {
            return Err(InvalidFilter::SeveralRepos);
        }
        filter.impossible |= impossible;
        Ok(Self { filter, repo, owner, mentions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issues::State;
    use crate::issues::filter::Wanted;
    use proptest::prelude::*;

    fn name(text: &str) -> UserName {
        text.parse().unwrap()
    }

    #[test]
    fn everything_that_can_be_asked_for_is_understood() {
        let text =
            "repo:alice/tool user:@bob mentions:carol type:issue is:open author:@me assignee:@me label:bug Crash";
        let found = Search::parse(text, Some(&name("dave"))).unwrap();
        let filter = Filter {
            state: Some(State::Open),
            author: Some(name("dave")),
            assignee: Wanted::Is(name("dave")),
            labels: vec!["bug".into()],
            words: vec!["crash".into()],
            ..Filter::default()
        };
        let repo = Some(("alice".into(), "tool".into()));
        assert_eq!(found, Search { filter, repo, owner: Some(name("bob")), mentions: Some(name("carol")) });
        assert_eq!(Search::parse("", None).unwrap(), Search::default());
    }

    #[test]
    fn what_nothing_can_satisfy_finds_nothing() {
        for text in ["repo:tool", "user:", "mentions:a/b", "author:@me", "mentions:@me", "is:pr", "type:pr"] {
            assert!(Search::parse(text, None).unwrap().filter.impossible, "{text}");
        }
    }

    #[test]
    fn a_qualifier_that_does_not_exist_is_named() {
        let refused = Search::parse("repo:a/b in:title", None).unwrap_err().to_string();
        assert!(refused.starts_with("`in:` is not a filter; known filters are `repo:`, `user:`,"), "{refused}");
        for known in QUALIFIERS {
            assert!(Search::parse(&format!("{known}:x"), None).is_ok(), "{known}");
        }
    }

    #[test]
    fn one_repository_or_all_of_them() {
        assert_eq!(Search::parse("repo:a/b repo:c/d", None), Err(InvalidFilter::SeveralRepos));
        assert_eq!(Search::parse(&"a".repeat(513), None), Err(InvalidFilter::TooLong));
    }

    proptest! {
        /// Whatever a filter means in one repository, it means in all of them.
        #[test]
        fn a_filter_is_a_search(text in "((is|label|author|assignee|milestone|no|sort|x)?:?\"?[a-zA-Z*@ \\-äÉ:]{0,8}\"? ?){0,6}") {
            prop_assume!(!text.contains("@me"));
            // Both refuse the same, but the names they know are not the same.
            let search = Search::parse(&text, None).ok().map(|search| search.filter);
            prop_assert_eq!(search, Filter::parse(&text).ok());
        }
    }
}
