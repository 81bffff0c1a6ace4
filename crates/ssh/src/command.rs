//! Strict parser for exec requests: two git verbs, one argument, no shell syntax.
//!
//! No I/O and no state. Whether a name is valid is not checked here: an invalid name is a repository that does not
//! exist.

use abide_forge::repos::open::RepoLocator;

/// Longest command accepted.
const MAX_LEN: usize = 4096;

/// First path component of permanent URLs; no user can have this name.
const BY_ID: &str = "r";

/// Requested git service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// `git-upload-pack`: fetch, clone.
    Fetch,
    /// `git-receive-pack`: push.
    Push,
}

/// A valid command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub service: Service,
    /// Address of the repository.
    pub locator: RepoLocator,
}

/// Reason for refusing a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the command must have at most {MAX_LEN} bytes")]
    TooLong,
    /// Not UTF-8, or with control characters.
    #[error("the command must be UTF-8 text without control characters")]
    NotText,
    /// Not a supported verb.
    #[error("only git fetch (git-upload-pack) and git push (git-receive-pack) are supported")]
    Verb,
    /// The argument is missing, not single, or not quoted as git does.
    #[error("git-upload-pack and git-receive-pack take one argument: the repository path, in single quotes")]
    Argument,
    /// The argument is no repository path.
    #[error("the repository path must be /OWNER/NAME.git or /r/ID.git")]
    Path,
}

impl Command {
    /// Parses the command of an `exec` request.
    pub fn parse(bytes: &[u8]) -> Result<Self, CommandError> {
        if bytes.len() > MAX_LEN {
            return Err(CommandError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| CommandError::NotText)?;
        if text.chars().any(char::is_control) {
            return Err(CommandError::NotText);
        }
        let (service, argument) = split_verb(text)?;
        let path = unquote(argument).ok_or(CommandError::Argument)?;
        let locator = locator(&path).ok_or(CommandError::Path)?;
        Ok(Self { service, locator })
    }
}

fn split_verb(text: &str) -> Result<(Service, &str), CommandError> {
    let verb = text.strip_prefix("git-").or_else(|| text.strip_prefix("git ")).ok_or(CommandError::Verb)?;
    for (name, service) in [("upload-pack", Service::Fetch), ("receive-pack", Service::Push)] {
        match verb.strip_prefix(name).map(|rest| rest.strip_prefix(' ').ok_or(rest)) {
            Some(Ok(argument)) => return Ok((service, argument)),
            Some(Err("")) => return Err(CommandError::Argument),
            Some(Err(_)) | None => {}
        }
    }
    Err(CommandError::Verb)
}

/// Removes the quotes that git adds: everything in single quotes, with `'` as `'\''` and `!` as `'\!'`. A bare word
/// needs no quotes if a shell would read it as one plain word.
fn unquote(argument: &str) -> Option<String> {
    let Some(mut rest) = argument.strip_prefix('\'') else {
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~');
        return (!argument.is_empty() && argument.chars().all(bare)).then(|| argument.to_owned());
    };
    let mut plain = String::with_capacity(rest.len());
    loop {
        let (part, after) = rest.split_once('\'')?;
        plain.push_str(part);
        if after.is_empty() {
            return Some(plain);
        }
        let escaped = after.strip_prefix('\\')?;
        let character = escaped.chars().next().filter(|c| matches!(c, '\'' | '!'))?;
        plain.push(character);
        rest = escaped[1..].strip_prefix('\'')?;
    }
}

fn locator(path: &str) -> Option<RepoLocator> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (owner, name) = path.split_once('/')?;
    let dots = |part: &str| matches!(part, "" | "." | "..");
    if dots(owner) || dots(name) || name.contains('/') || owner.starts_with('~') {
        return None;
    }
    let name = name.strip_suffix(".git").unwrap_or(name);
    Some(if owner == BY_ID { RepoLocator::Id(name.to_owned()) } else { RepoLocator::slug(owner, name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slug(service: Service, owner: &str, name: &str) -> Result<Command, CommandError> {
        Ok(Command { service, locator: RepoLocator::slug(owner, name) })
    }

    /// As git's `sq_quote_buf` does it.
    fn quote(path: &str) -> String {
        format!("'{}'", path.replace('\'', "'\\''").replace('!', "'\\!'"))
    }

    #[test]
    fn what_git_sends_is_understood() {
        for (text, service) in [
            ("git-upload-pack '/alice/demo.git'", Service::Fetch),
            ("git-upload-pack 'alice/demo.git'", Service::Fetch),
            ("git-upload-pack 'alice/demo'", Service::Fetch),
            ("git upload-pack '/alice/demo.git'", Service::Fetch),
            ("git-upload-pack /alice/demo.git", Service::Fetch),
            ("git-receive-pack '/alice/demo.git'", Service::Push),
            ("git receive-pack alice/demo", Service::Push),
        ] {
            assert_eq!(Command::parse(text.as_bytes()), slug(service, "alice", "demo"), "{text}");
        }
    }

    #[test]
    fn the_permanent_address_is_a_door_of_its_own() {
        let by_id = Ok(Command { service: Service::Fetch, locator: RepoLocator::Id("42".into()) });
        assert_eq!(Command::parse(b"git-upload-pack '/r/42.git'"), by_id);
        assert_eq!(Command::parse(b"git-upload-pack 'r/42'"), by_id);
    }

    #[test]
    fn names_that_break_the_rules_are_left_to_be_not_found() {
        for (path, owner, name) in [
            ("it's/me!.git", "it's", "me!"),
            ("a b/c d", "a b", "c d"),
            ("a/%2e%2e", "a", "%2e%2e"),
            ("a/b\\c", "a", "b\\c"),
            ("a/.git", "a", ""),
            ("-a/--help", "-a", "--help"),
            ("a/b.git.git", "a", "b.git"),
            ("ä/ö", "ä", "ö"),
        ] {
            let text = format!("git-upload-pack {}", quote(path));
            assert_eq!(Command::parse(text.as_bytes()), slug(Service::Fetch, owner, name), "{text}");
        }
    }

    #[test]
    fn other_verbs_are_refused() {
        for text in [
            "",
            "ls",
            "git",
            "git-",
            "git ",
            "git  upload-pack 'a/b'",
            " git-upload-pack 'a/b'",
            "git-upload-archive 'a/b.git'",
            "git-lfs-authenticate 'a/b.git' download",
            "git-upload-pack2 'a/b'",
            "git-upload-pack'a/b'",
            "GIT-UPLOAD-PACK 'a/b'",
            "git\tupload-pack 'a/b'".trim_end(),
            "/usr/bin/git-upload-pack 'a/b'",
            "sh -c git-upload-pack",
        ] {
            let refused = Command::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(refused, CommandError::Verb | CommandError::NotText), "{text:?} gave {refused:?}");
        }
    }

    #[test]
    fn an_argument_is_one_word_quoted_as_git_does() {
        for argument in [
            "",
            " ",
            " 'a/b'",
            " 'a/b' ",
            "'a/b' ",
            "'a/b' 'c/d'",
            "'a/b'c",
            "'a/b",
            "a/b c",
            "a/b;id",
            "$(id)/b",
            "`id`/b",
            "\"a/b\"",
            "a\\/b",
            "'a'\\a'/b'",
            "'a'\\'/b'",
            "--strict 'a/b'",
            "'a/b' --timeout=0",
            "a/b&",
            "a/*",
        ] {
            let text = format!("git-upload-pack {argument}");
            assert_eq!(Command::parse(text.as_bytes()), Err(CommandError::Argument), "{text:?}");
        }
        assert_eq!(Command::parse(b"git-upload-pack"), Err(CommandError::Argument));
    }

    #[test]
    fn a_path_that_is_no_address_is_refused() {
        for path in [
            "",
            "/",
            "a",
            "/a",
            "a/",
            "/a/",
            "//a/b",
            "a//b",
            "a/b/",
            "a/b/c",
            "../b",
            "a/..",
            "./b",
            "a/.",
            "a/../b/c",
            "~/b",
            "/~alice/b",
            "r/",
            "/r/1/2",
        ] {
            let text = format!("git-receive-pack {}", quote(path));
            assert_eq!(Command::parse(text.as_bytes()), Err(CommandError::Path), "{path:?}");
        }
    }

    #[test]
    fn what_is_no_plain_text_or_too_long_is_refused() {
        for bytes in [&b"git-upload-pack 'a/b\0'"[..], b"git-upload-pack 'a/\xff'", b"git-upload-pack 'a/b'\n"] {
            assert_eq!(Command::parse(bytes), Err(CommandError::NotText), "{bytes:?}");
        }
        assert_eq!(Command::parse("git-upload-pack 'a/\u{85}b'".as_bytes()), Err(CommandError::NotText));
        let long = |length: usize| format!("git-upload-pack 'a/{}'", "b".repeat(length - 20));
        assert_eq!(long(MAX_LEN).len(), MAX_LEN);
        assert!(Command::parse(long(MAX_LEN).as_bytes()).is_ok());
        assert_eq!(Command::parse(long(MAX_LEN + 1).as_bytes()), Err(CommandError::TooLong));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Command::parse(&bytes);
        }

        #[test]
        fn nothing_behind_a_verb_makes_it_panic(rest in "\\PC{0,60}", shell in "[ '\\\\!/.~gitr-]{0,20}") {
            let _ = Command::parse(format!("git-upload-pack {rest}").as_bytes());
            let _ = Command::parse(format!("git-receive-pack {shell}").as_bytes());
        }

        #[test]
        fn every_name_survives_gits_quoting(owner in "[^/\\pC~][^/\\pC]{0,30}", name in "[^/\\pC]{0,30}[^/\\pC.]") {
            prop_assume!(owner != "." && owner != ".." && owner != BY_ID);
            let text = format!("git-receive-pack {}", quote(&format!("/{owner}/{name}.git")));
            prop_assert_eq!(Command::parse(text.as_bytes()), slug(Service::Push, &owner, &name));
        }

        #[test]
        fn what_is_accepted_names_one_repository(rest in "[a-c/.'\\\\! ~-]{0,24}") {
            let text = format!("git-upload-pack {rest}");
            if let Ok(Command { locator: RepoLocator::Slug { owner, name }, .. }) = Command::parse(text.as_bytes()) {
                for part in [&owner, &name] {
                    prop_assert!(!part.contains('/') && part != "..", "{} gave {:?}", text, part);
                }
                prop_assert!(!owner.is_empty() && !owner.starts_with('~'));
            }
        }
    }

    /// The shell is the reference for quoting: it reads every argument that we accept as the same single word.
    #[test]
    fn a_shell_reads_accepted_arguments_the_same_way() {
        for argument in ["'a/b'", "a/b", "'a'\\''b/c'\\!'d'", "'$(id)/`id`'", "'a b/\"c\"'", "-a/.b_c"] {
            let plain = unquote(argument).unwrap();
            let shell = std::process::Command::new("sh").args(["-c", &format!("printf '%s|' {argument}")]).output();
            assert_eq!(String::from_utf8(shell.unwrap().stdout).unwrap(), format!("{plain}|"), "{argument}");
        }
    }
}
