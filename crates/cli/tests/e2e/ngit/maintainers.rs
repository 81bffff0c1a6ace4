//! Work of two maintainers.

use super::Published;
use super::person::Person;
use crate::grasp::setup::npub;
use crate::support::assert_healthy;
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn a_maintainer_who_accepted_pushes_for_both(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let (owner, work) = (&repo.owner, &repo.work);
    let second = Person::new(&repo.server, 2);
    owner.ngit(work, &["repo", "edit", "--add-maintainer", &npub(&second.key)]);
    let clone = second.clone(&repo.nostr());
    second.ngit(&clone, &["repo", "accept"]);

    let theirs = second.git.commit_file(&clone, "second", "2\n", "from the second maintainer");
    second.git(&clone, &["push", "origin", "main"]);
    assert_eq!(repo.at("refs/heads/main"), Some(theirs.clone()));
    owner.ngit(work, &["repo", "edit", "--description", "of two"]);
    assert_eq!(repo.at("refs/heads/main"), Some(theirs), "what the owner signs next has it");

    owner.git(work, &["pull", "--ff-only", "origin", "main"]);
    let ours = owner.git.commit_file(work, "third", "3\n", "on top of it");
    owner.git(work, &["push", "origin", "main"]);
    let of_second = format!("{}/{}/demo.git", repo.server.url(), npub(&second.key));
    for url in [repo.http(), of_second] {
        let listed = owner.git.ok(work, &["ls-remote", &url, "refs/heads/main"]);
        assert!(listed.starts_with(&ours), "{url}: {listed}");
    }
    assert_healthy(&repo.server);
}
