//! Forge names for repositories announced over nostr.

use crate::git::Identifier;
use abide_core::RepoName;

/// Longest slug: leaves room for a suffix within the 100 characters of a name.
const LONGEST: usize = 90;

/// Candidate names, in order: a slug of the identifier, then the slug with `-2`, `-3` and so on. The list is endless,
/// so a name conflict never refuses an announcement.
pub fn forge_names(identifier: &Identifier) -> impl Iterator<Item = RepoName> {
    let slug = slug(identifier.as_str());
    let plain = slug.parse().ok();
    // If the plain slug is reserved, a numbered one is not.
    let numbered = (2_u32..).filter_map(move |number| format!("{slug}-{number}").parse().ok());
    plain.into_iter().chain(numbered)
}

/// Keeps lower-case letters, digits, dots and underscores; replaces every run of other characters with one hyphen.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if slug.len() >= LONGEST {
            break;
        }
        let c = c.to_ascii_lowercase();
        let plain = c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let single_dot = c == '.' && !slug.ends_with(['.', '-']);
        if plain || single_dot {
            slug.push(c);
        } else if !slug.ends_with(['-', '.']) {
            slug.push('-');
        }
    }
    // A name must start with a letter or a digit, and no numeric suffix can fix its start.
    let slug = slug.trim_start_matches(['-', '.', '_']).trim_end_matches(['-', '.']);
    if slug.is_empty() { "repository".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelayLimits;
    use abide_core::names::RESERVED_REPO_NAMES;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        let identifier = Identifier::new(text, &RelayLimits::default()).unwrap();
        forge_names(&identifier).take(3).map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn plain_identifiers_are_their_own_name_and_others_become_one() {
        assert_eq!(names("flow-1794706958"), ["flow-1794706958", "flow-1794706958-2", "flow-1794706958-3"]);
        assert_eq!(names("My Repo")[0], "my-repo");
        assert_eq!(names("../../etc/passwd")[0], "etc-passwd");
        assert_eq!(names("a%2Fb")[0], "a-2fb");
        assert_eq!(names("🦀")[0], "repository");
        assert_eq!(names("a.b_c")[0], "a.b_c");
        assert_eq!(names("..")[0], "repository");
        assert_eq!(names("_.-_x")[0], "x");
    }

    #[test]
    fn names_with_another_use_get_a_number() {
        for reserved in RESERVED_REPO_NAMES {
            assert_eq!(names(reserved)[0], format!("{reserved}-2"));
        }
        assert_eq!(names("x.git")[0], "x.git-2");
    }

    proptest! {
        #[test]
        fn every_identifier_has_names_without_end(text in ".{1,200}") {
            prop_assume!(!text.contains('\0') && text.len() <= 1024);
            let names = names(&text);
            prop_assert_eq!(names.len(), 3);
            prop_assert!(names[0] != names[1] && names[1] != names[2]);
        }
    }
}
