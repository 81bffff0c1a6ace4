//! Full ref names.

use std::fmt;
use std::str::FromStr;

/// Longest accepted ref name: leaves room for the directory and `.lock` on every filesystem we know.
pub const MAX_REF_LEN: usize = 1000;
/// Longest component: filesystems allow 255 bytes, and git appends `.lock`.
pub const MAX_COMPONENT_LEN: usize = 250;

/// A full ref name (`refs/…`) that `git check-ref-format` accepts, in UTF-8 and of bounded length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(String);

/// Rule that a ref name breaks. Worded for the user who pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRefName {
    /// Not below `refs/`, or nothing follows it.
    #[error("a ref name needs refs/ and at least two more parts, such as refs/heads/main")]
    NotBelowRefs,
    #[error("a ref name must have at most {MAX_REF_LEN} bytes, and {MAX_COMPONENT_LEN} between two slashes")]
    TooLong,
    #[error("a ref name must be UTF-8")]
    NotUtf8,
    /// A byte that git forbids.
    #[error("a ref name must not contain a space, a control character or any of ~ ^ : ? * [ \\")]
    ForbiddenByte,
    /// Empty component, or one that starts with a dot or ends in `.lock`.
    #[error("no part of a ref name may be empty, start with a dot or end in .lock")]
    BadComponent,
    /// `..`, `@{` or a dot at the end.
    #[error("a ref name must not contain .. or @{{ and must not end in a dot")]
    ForbiddenSequence,
}

impl RefName {
    /// Parses the bytes of a pkt-line.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidRefName> {
        std::str::from_utf8(bytes).map_err(|_| InvalidRefName::NotUtf8)?.parse()
    }

    /// The branch with this short name, if valid.
    pub fn branch(short: &str) -> Result<Self, InvalidRefName> {
        format!("refs/heads/{short}").parse()
    }

    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without `refs/heads/` or `refs/tags/`.
    pub fn short(&self) -> &str {
        self.as_branch().or_else(|| self.as_tag()).unwrap_or(&self.0)
    }

    /// Short name of a branch; `None` for other refs.
    pub fn as_branch(&self) -> Option<&str> {
        self.0.strip_prefix("refs/heads/")
    }

    /// Short name of a tag; `None` for other refs.
    pub fn as_tag(&self) -> Option<&str> {
        self.0.strip_prefix("refs/tags/")
    }
}

impl FromStr for RefName {
    type Err = InvalidRefName;

    fn from_str(text: &str) -> Result<Self, InvalidRefName> {
        use InvalidRefName as E;
        let below = text.strip_prefix("refs/").ok_or(E::NotBelowRefs)?;
        // git allows `refs/stash`, but keeps its own data directly below refs/.
        if below.is_empty() || !below.contains('/') {
            return Err(E::NotBelowRefs);
        }
        if text.len() > MAX_REF_LEN || text.split('/').any(|part| part.len() > MAX_COMPONENT_LEN) {
            return Err(E::TooLong);
        }
        if text.bytes().any(|b| b <= b' ' || b == 0x7f || b"~^:?*[\\".contains(&b)) {
            return Err(E::ForbiddenByte);
        }
        if text.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock")) {
            return Err(E::BadComponent);
        }
        if text.contains("..") || text.contains("@{") || text.ends_with('.') {
            return Err(E::ForbiddenSequence);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RefName({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use std::process::Command;

    #[rstest]
    #[case::short_name("main", InvalidRefName::NotBelowRefs)]
    #[case::nothing_below("refs/", InvalidRefName::NotBelowRefs)]
    #[case::one_level("refs/stash", InvalidRefName::NotBelowRefs)]
    #[case::parent("refs/heads/../x", InvalidRefName::BadComponent)]
    #[case::double_dot("refs/heads/a..b", InvalidRefName::ForbiddenSequence)]
    #[case::lock("refs/heads/a.lock", InvalidRefName::BadComponent)]
    #[case::lock_inside("refs/heads/a.lock/b", InvalidRefName::BadComponent)]
    #[case::empty_part("refs/heads//a", InvalidRefName::BadComponent)]
    #[case::trailing_slash("refs/heads/a/", InvalidRefName::BadComponent)]
    #[case::nul("refs/heads/a\0b", InvalidRefName::ForbiddenByte)]
    #[case::newline("refs/heads/a\nb", InvalidRefName::ForbiddenByte)]
    #[case::reflog("refs/heads/a@{1}", InvalidRefName::ForbiddenSequence)]
    #[case::trailing_dot("refs/heads/a.", InvalidRefName::ForbiddenSequence)]
    fn refused_names_say_which_rule_they_break(#[case] name: &str, #[case] rule: InvalidRefName) {
        assert_eq!(name.parse::<RefName>(), Err(rule));
    }

    #[test]
    fn over_long_names_are_refused() {
        assert_eq!(format!("refs/heads/{}", "a".repeat(251)).parse::<RefName>(), Err(InvalidRefName::TooLong));
        assert_eq!(format!("refs/heads{}", "/abc".repeat(300)).parse::<RefName>(), Err(InvalidRefName::TooLong));
    }

    #[test]
    fn branches_and_tags_know_their_short_names() {
        let branch: RefName = "refs/heads/feature/x".parse().unwrap();
        assert_eq!((branch.as_branch(), branch.as_tag()), (Some("feature/x"), None));
        assert_eq!(RefName::branch("ü/ñ").unwrap().as_str(), "refs/heads/ü/ñ");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// git accepts every name that we accept; the names that we refuse and git accepts are the documented ones.
        #[test]
        fn agrees_with_git_check_ref_format(tail in r"[a-c./@{}~^:?*\[\\ \x00-\x7fü-]{1,12}") {
            let name = format!("refs/heads/{tail}");
            prop_assume!(!name.contains('\0')); // cannot be a process argument; covered above
            let git = Command::new("git").args(["check-ref-format", &name]).status().unwrap().success();
            prop_assert_eq!(name.parse::<RefName>().is_ok(), git, "{:?}", name);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = RefName::from_bytes(&bytes);
        }
    }
}
