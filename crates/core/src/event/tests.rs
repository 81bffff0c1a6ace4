//! Stored JSON against the golden files, and against rows of older versions.

use super::*;
use crate::{RepoId, UserId};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn golden() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/events");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(&path).unwrap().trim_end().to_owned())
    };
    files.map(read).collect()
}

/// Kind of a golden file: the file name up to the first dot. The rest names a second shape of the same kind.
fn kind_of(name: &str) -> &str {
    name.split('.').next().unwrap()
}

/// One event of each kind and shape.
pub(crate) fn samples() -> Vec<Body> {
    golden().iter().map(|(name, json)| Body::parse(kind_of(name), json).unwrap()).collect()
}

#[test]
fn every_kind_has_a_golden_file_that_reads_and_is_written_back_byte_by_byte() {
    let mut seen = BTreeSet::new();
    for (name, json) in golden() {
        let body = Body::parse(kind_of(&name), &json).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(body.payload.kind().as_str(), kind_of(&name));
        assert_eq!(body.to_json().to_string(), json, "{name}");
        seen.insert(body.payload.kind());
    }
    let missing: Vec<_> = Kind::ALL.iter().filter(|kind| !seen.contains(kind)).collect();
    assert!(missing.is_empty(), "no golden file for {missing:?}");
}

#[test]
fn both_shapes_of_an_issue_are_told_apart() {
    let shapes = |file: &str| {
        let (_, json) = golden().into_iter().find(|(name, _)| name == file).unwrap();
        let Payload::IssueClosed(origin) = Body::parse("issue_closed", &json).unwrap().payload else {
            panic!("{file}")
        };
        (origin.nostr().is_some(), matches!(origin, Origin::Local(_)))
    };
    assert_eq!(shapes("issue_closed"), (false, true));
    assert_eq!(shapes("issue_closed.nostr"), (true, false));
}

#[test]
fn rows_of_older_versions_are_read() {
    let issue = r#""author_id":null,"issue_id":31,"number":4"#;
    let rows = [
        // Without the text that a migration removed, or that was not stored yet.
        ("repo_soft_deleted", r#"{"owner_id":7,"repo_id":12,"slug":"alice/tool"}"#.to_owned()),
        ("issue_labeled", format!("{{{issue}}}")),
        ("issue_milestoned", format!("{{{issue}}}")),
        ("issue_edited", format!("{{{issue}}}")),
        ("issue_comment_deleted", format!(r#"{{{issue},"comment_id":77}}"#)),
        ("label_created", "{}".to_owned()),
        ("milestone_created", "{}".to_owned()),
        // Commits of a removed repository.
        ("push", r#"{"repo_id":12,"slug":"alice/tool"}"#.to_owned()),
        ("push", r#"{"owner_id":7,"push_id":5,"ref_count":1,"repo_id":12,"slug":"alice/tool"}"#.to_owned()),
        // Text that this version does not store.
        ("issue_created", format!(r#"{{{issue},"excerpt":"x","mentions":[],"title":"y"}}"#)),
    ];
    for (kind, json) in rows {
        Body::parse(kind, &json).unwrap_or_else(|error| panic!("{kind} {json}: {error}"));
    }
}

#[test]
fn a_forgotten_push_names_its_repository_and_nothing_else() {
    let left = Body::forgotten_push(RepoId::new(12), "alice/tool".into()).to_json().to_string();
    assert_eq!(left, r#"{"repo_id":12,"slug":"alice/tool"}"#);
    let read = Body::parse("push", &left).unwrap();
    assert_eq!(read.repo.repo_id, Some(RepoId::new(12)));
    assert_eq!(read.payload, Payload::Push(Push::default()));
}

#[test]
fn an_unknown_kind_and_a_broken_payload_are_errors_that_say_which() {
    let unknown = Body::parse("repo_exploded", "{}").unwrap_err();
    assert!(matches!(&unknown, Unreadable::Kind(kind) if kind == "repo_exploded"), "{unknown}");
    for json in ["", "nonsense", "[]", r#"{"old_name":5,"new_name":"x"}"#, r#"{"old_name":"x"}"#] {
        let broken = Body::parse("repo_renamed", json).unwrap_err();
        assert!(matches!(broken, Unreadable::Payload { kind: Kind::RepoRenamed, .. }), "{json}: {broken}");
    }
}

#[test]
fn events_of_accounts_name_no_repository() {
    let payload = Payload::UserDeleted(UserDeleted { user_id: UserId::new(7) });
    assert_eq!(Body { repo: RepoThen::default(), payload }.to_json().to_string(), r#"{"user_id":7}"#);
}
