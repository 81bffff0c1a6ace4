//! Moving a branch elsewhere, and taking refs away.

use super::setup::{Road, Setup, clone, refs};
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn history_is_rewritten_only_by_force(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    git.ok(&work, &["commit", "--quiet", "--amend", "--message", "Say it better"]);
    let amended = git.ok(&work, &["rev-parse", "HEAD"]);
    assert_ne!(amended, first);

    let complaint = git.fails(&work, &["push", "origin", "main"]);
    assert!(complaint.contains("! [rejected]        main -> main (non-fast-forward)"), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &first)]));

    git.ok(&work, &["push", "--quiet", "--force", "origin", "main"]);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &amended)]));
    assert_eq!(git.ok(&setup.clone(&[]), &["log", "--format=%s"]), "Say it better");
    setup.assert_settled(2);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn whoever_is_behind_is_told_to_fetch_and_a_lease_protects_what_they_have_not_seen(
    #[case] road: Road,
    #[case] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let bob = setup.collaborator("bob", "write");
    let git = setup.git();
    let (work, _) = setup.pushed();
    git.ok(&work, &["fetch", "--quiet"]);
    let bobs = clone(&bob.git, &setup.url(), &[]);
    let seen_by_nobody = bob.git.commit_file(&bobs, "bob.txt", "bob\n", "Bob was quicker");
    bob.git.ok(&bobs, &["push", "--quiet", "origin", "main"]);

    let alices = git.commit_file(&work, "alice.txt", "alice\n", "Alice was slower");
    let behind = git.fails(&work, &["push", "origin", "main"]);
    assert!(behind.contains("! [rejected]        main -> main (fetch first)"), "{behind}");
    let stale = git.fails(&work, &["push", "--force-with-lease", "origin", "main"]);
    assert!(stale.contains("! [rejected]        main -> main (stale info)"), "{stale}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &seen_by_nobody)]));

    git.ok(&work, &["fetch", "--quiet"]);
    git.ok(&work, &["push", "--quiet", "--force-with-lease", "origin", "main"]);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &alices)]));
    setup.assert_settled(3);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn branches_and_tags_can_be_deleted(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();
    git.ok(&work, &["push", "--quiet", "origin", "main:side", "main:deep/er", "main:refs/tags/v1"]);

    git.ok(&work, &["push", "--quiet", "--delete", "origin", "side", "v1"]);
    assert_eq!(setup.refs(), refs([("refs/heads/deep/er", &commit), ("refs/heads/main", &commit)]));

    // With the last ref below it, `deep` is free to be a branch itself.
    git.ok(&work, &["push", "--quiet", "origin", ":deep/er"]);
    git.ok(&work, &["push", "--quiet", "origin", "main:deep"]);
    assert_eq!(setup.refs(), refs([("refs/heads/deep", &commit), ("refs/heads/main", &commit)]));
    setup.assert_settled(5);
}

#[rstest]
fn the_default_branch_cannot_be_deleted(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();

    let complaint = git.fails(&work, &["push", "origin", ":main"]);

    let reason = "! [remote rejected] main (this is the default branch; set another default branch in the settings before \
                  deleting it)";
    assert!(complaint.contains(reason), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    setup.assert_settled(1);
}
