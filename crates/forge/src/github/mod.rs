//! GitHub's shapes of repositories, people, issues and webhooks: the JSON of API answers and of webhook payloads.
//!
//! Both use the same type. A field that only one of them sends is an `Option` that is left out where it is `None`; its
//! comment names the side that has it. The API sends keys in the order of the fields, payloads in alphabetical order
//! (docs/decisions.md, "One set of types for GitHub's shapes"). The OpenAPI schemas are derived here too.

mod hook;
mod issue;
mod repository;
mod user;

pub use hook::{HIDDEN, Hook, HookConfig, HookHealth, LastResponse};
pub use issue::{Issue, IssueComment, Label, Milestone};
pub use repository::{Counted, Permissions, Repository};
pub use user::SimpleUser;

use crate::Forge;
use abide_core::Timestamp;
use abide_store::repos::Repo;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

/// A time in GitHub's format.
pub fn time(at: Timestamp) -> String {
    at.to_string()
}

/// `None` for an empty text: GitHub sends `null`.
fn or_null(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Bytes that are escaped in a path; percent-encoding escapes everything outside ASCII too.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The same for one segment of a path.
const SEGMENT: &AsciiSet = &PATH.add(b'/');

/// A path or ref name in a URL: slashes are kept.
pub fn in_path(bytes: &[u8]) -> String {
    percent_encode(bytes, PATH).to_string()
}

/// A name in a URL, as one segment: slashes are escaped.
pub fn in_segment(text: &str) -> String {
    percent_encode(text.as_bytes(), SEGMENT).to_string()
}

/// URLs of the parts of one repository.
#[derive(Debug, Clone)]
pub struct Urls {
    public_url: String,
    slug: String,
}

impl Urls {
    pub fn of(forge: &Forge, repo: &Repo) -> Self {
        Self { public_url: forge.settings().public_url.clone(), slug: repo.slug() }
    }

    /// Below the repository in the API.
    pub fn api(&self, tail: &str) -> String {
        format!("{}/api/v3/repos/{}{tail}", self.public_url, self.slug)
    }

    /// Below the repository's page.
    pub fn page(&self, tail: &str) -> String {
        format!("{}/{}{tail}", self.public_url, self.slug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_escapes_what_ends_it_and_a_path_keeps_slashes() {
        assert_eq!(in_segment("a bug/odd?"), "a%20bug%2Fodd%3F");
        assert_eq!(in_segment("Käse"), "K%C3%A4se");
        let plain = "azAZ09-._~!$&'()*+,;=:@";
        assert_eq!(in_segment(plain), plain);
        assert_eq!(in_path(b"dir/a b"), "dir/a%20b");
    }
}
