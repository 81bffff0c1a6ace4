//! Contributions of others: pull requests and issues.

use super::Published;
use super::person::{Person, served};
use crate::support::assert_healthy;
use abide_nostr::Event;
use abide_testkit::Engine;
use rstest::rstest;

/// Whether an event has this tag.
fn tagged(event: &Event, name: &str, value: &str) -> bool {
    event.tags.iter().any(|tag| tag.as_slice().starts_with(&[name.to_owned(), value.to_owned()]))
}

#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn a_stranger_proposes_and_improves_and_the_owner_merges(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let stranger = Person::new(&repo.server, 2);
    let clone = stranger.clone(&repo.nostr());
    stranger.git(&clone, &["checkout", "-b", "pr/feature"]);
    let proposed = stranger.git.commit_file(&clone, "feature", "1\n", "a feature");
    let push = ["push", "-o", "title=Take this", "-o", "description=It is good", "-u", "origin", "pr/feature"];
    stranger.git(&clone, &push);
    let asked = served(&repo.server, 1618);
    assert!(asked.len() == 1 && tagged(&asked[0], "subject", "Take this"), "{asked:?}");
    let id = asked[0].id.to_hex();
    assert_eq!(repo.at(&format!("refs/nostr/{id}")), Some(proposed));
    assert_eq!(repo.at("refs/heads/main"), Some(repo.first.clone()), "asking moves nothing");

    let better = stranger.git.commit_file(&clone, "feature", "2\n", "a better feature");
    stranger.git(&clone, &["push"]);
    let updates = served(&repo.server, 1619);
    assert!(updates.len() == 1 && tagged(&updates[0], "E", &id), "{updates:?}");
    assert_eq!(repo.at(&format!("refs/nostr/{}", updates[0].id.to_hex())), Some(better.clone()));

    let (owner, work) = (&repo.owner, &repo.work);
    let listed = owner.ngit(work, &["pr", "list"]);
    assert!(listed.contains("Take this"), "{listed}");
    owner.ngit(work, &["pr", "merge", &id]);
    owner.git(work, &["push", "origin", "main"]);
    assert_eq!(repo.at("refs/heads/main"), Some(owner.oid(work, "main")));
    assert_eq!(owner.oid(work, "main^2"), better, "what was merged is what was proposed last");
    let statuses = served(&repo.server, 1631);
    assert!(statuses.len() == 1 && tagged(&statuses[0], "e", &id), "{statuses:?}");

    stranger.git(&clone, &["fetch", "origin"]);
    assert_eq!(stranger.oid(&clone, "origin/main"), owner.oid(work, "main"));
    assert_healthy(&repo.server);
}

#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn commits_are_sent_as_a_proposal_or_as_patches(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let stranger = Person::new(&repo.server, 2);
    let clone = stranger.clone(&repo.nostr());
    stranger.git(&clone, &["checkout", "-b", "feature"]);
    let proposed = stranger.git.commit_file(&clone, "feature", "1\n", "a feature");
    let words = ["--subject", "Take this", "--description", "It is good"];
    stranger.ngit(&clone, &[&["send", "HEAD~1", "--force-pr"], &words[..]].concat());
    let asked = served(&repo.server, 1618);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(repo.at(&format!("refs/nostr/{}", asked[0].id.to_hex())), Some(proposed));

    stranger.git(&clone, &["checkout", "-b", "patch", "main"]);
    stranger.git.commit_file(&clone, "patch", "1\n", "a patch");
    stranger.ngit(&clone, &[&["send", "HEAD~1", "--force-patch"], &words[..]].concat());
    let patches = served(&repo.server, 1617);
    assert!(patches.iter().any(|patch| patch.content.contains("Subject: [PATCH")), "{patches:?}");
    assert_healthy(&repo.server);
}

#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn an_issue_is_opened_answered_and_closed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let stranger = Person::new(&repo.server, 2);
    let clone = stranger.clone(&repo.nostr());
    stranger.ngit(&clone, &["issue", "create", "--subject", "It broke", "--body", "badly"]);
    let issues = served(&repo.server, 1621);
    assert!(issues.len() == 1 && tagged(&issues[0], "subject", "It broke"), "{issues:?}");
    let id = issues[0].id.to_hex();

    let (owner, work) = (&repo.owner, &repo.work);
    let listed = owner.ngit(work, &["issue", "list"]);
    assert!(listed.contains("It broke"), "{listed}");
    owner.ngit(work, &["issue", "comment", &id, "--body", "Which version?"]);
    assert_eq!(served(&repo.server, 1111).len(), 1);
    owner.ngit(work, &["issue", "close", &id]);
    assert_eq!(served(&repo.server, 1632).len(), 1);
    let listed = stranger.ngit(&clone, &["issue", "list"]);
    assert!(!listed.contains("It broke"), "{listed}");
    assert_healthy(&repo.server);
}
