//! Tags, light and annotated.

use super::setup::{Road, Setup, ls_remote, refs};
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn light_and_annotated_tags_are_listed_with_what_they_stand_for(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();
    git.ok(&work, &["tag", "light"]);
    git.ok(&work, &["tag", "--annotate", "--message", "One", "v1"]);
    let tag = git.ok(&work, &["rev-parse", "v1"]);
    // A tag of a tag, which is peeled down to the commit.
    git.ok(&work, &["-c", "advice.nestedTag=false", "tag", "--annotate", "--message", "Two", "v2", "v1"]);
    let nested = git.ok(&work, &["rev-parse", "v2"]);

    git.ok(&work, &["push", "--quiet", "origin", "--tags"]);

    let expected = refs([
        ("HEAD", &commit),
        ("refs/heads/main", &commit),
        ("refs/tags/light", &commit),
        ("refs/tags/v1", &tag),
        ("refs/tags/v1^{}", &commit),
        ("refs/tags/v2", &nested),
        ("refs/tags/v2^{}", &commit),
    ]);
    for version in ["protocol.version=0", "protocol.version=2"] {
        assert_eq!(ls_remote(git, &setup.url(), &["-c", version]), expected, "{version}");
    }
    let clone = setup.clone(&[]);
    assert_eq!(git.ok(&clone, &["rev-parse", "light", "v1", "v2"]), format!("{commit}\n{tag}\n{nested}"));
    setup.assert_settled(2);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn annotated_tags_follow_their_commits_both_ways(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, _) = setup.pushed();
    let clone = setup.clone(&[]);
    let commit = git.commit_file(&work, "more.txt", "more\n", "More");
    git.ok(&work, &["tag", "light"]);
    git.ok(&work, &["tag", "--annotate", "--message", "One", "v1"]);
    let tag = git.ok(&work, &["rev-parse", "v1"]);

    git.ok(&work, &["push", "--quiet", "--follow-tags", "origin", "main"]);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit), ("refs/tags/v1", &tag)]));
    git.ok(&clone, &["fetch", "--quiet"]);

    assert_eq!(git.ok(&clone, &["rev-parse", "v1", "v1^{commit}"]), format!("{tag}\n{commit}"));
    setup.assert_settled(2);
}
