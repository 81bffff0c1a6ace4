//! Issue search across repositories: `repo:alice/tool is:open author:@me crash`.
//!
//! The words of [`filter`](super::filter), plus qualifiers that need more than one repository.

use super::filter::{Filter, InvalidFilter};
use crate::UserName;
use crate::words::words;

words! {
    /// A user's relation to issues across repositories.
    Concern {
        /// Assigned to the user.
        Assigned = "assigned",
        /// Written by the user.
        Created = "created",
        /// Mentioning the user.
        Mentioned = "mentioned",
        /// Subscribed by the user.
        Subscribed = "subscribed",
        /// In repositories that the user owns or collaborates on.
        Repos = "repos",
        /// Any of the above.
        All = "all",
    }
}

/// Qualifiers of a search across repositories.
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

/// Conditions of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Conditions that a list within one repository also has.
    pub filter: Filter,
    /// Owner and name of one repository, as typed.
    pub repo: Option<(String, String)>,
    /// Owner of the repositories.
    pub owner: Option<UserName>,
    /// A mentioned user.
    pub mentions: Option<UserName>,
}

impl Search {
    /// Parses a search. `@me` is the current user, if they have a username.
    pub fn parse(text: &str, me: Option<&UserName>) -> Result<Self, InvalidFilter> {
        let (mut repo, mut owner, mut mentions) = (None, None, None);
        let (mut several, mut impossible) = (false, false);
        let mut named = |value: &str, into: &mut Option<UserName>| match value.trim_start_matches('@').parse() {
            Ok(name) => *into = Some(name),
            Err(_) => impossible = true,
        };
        let mut filter = Filter::parse_with(text, QUALIFIERS, |name, value, filter| {
            let value = match (name, value) {
                // A user without a username cannot be found by it.
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
        /// A filter of one repository means the same across repositories.
        #[test]
        fn a_filter_is_a_search(text in "((is|label|author|assignee|milestone|no|sort|x)?:?\"?[a-zA-Z*@ \\-äÉ:]{0,8}\"? ?){0,6}") {
            prop_assume!(!text.contains("@me"));
            // Both refuse the same texts, but their errors list different qualifiers.
            let search = Search::parse(&text, None).ok().map(|search| search.filter);
            prop_assert_eq!(search, Filter::parse(&text).ok());
        }
    }
}
