//! Who may fetch and who may push.

use super::setup::{Road, Setup, clone, ls_remote, refs};
use abide_testkit::{Engine, GitClient, http};
use rstest::rstest;
use serde_json::json;

const NEEDS_WRITE: &str = "you need the write role in this repository; ask its owner to change your access";

fn make_private(setup: &Setup) {
    let body = json!({ "private": true });
    let changed = http::patch(setup.server.http_addr(), "/api/v3/repos/alice/demo", Some(&setup.alice.token), &body);
    assert_eq!(changed.status, 200, "{}", changed.text());
}

#[rstest]
fn readers_fetch_and_writers_push(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let (_, first) = setup.pushed();
    make_private(&setup);
    let reader = setup.collaborator("bob", "read");
    let writer = setup.collaborator("carol", "write");

    let readers = clone(&reader.git, &setup.url(), &[]);
    assert_eq!(reader.git.ok(&readers, &["rev-parse", "HEAD"]), first);
    reader.git.commit_file(&readers, "bob.txt", "bob\n", "From Bob");
    let complaint = reader.git.fails(&readers, &["push", "origin", "main"]);
    let expected = match road {
        Road::Http => [format!("remote: {NEEDS_WRITE}"), "The requested URL returned error: 403".to_owned()],
        Road::Ssh => [format!("fatal: remote error: {NEEDS_WRITE}"), String::new()],
    };
    assert!(expected.iter().all(|part| complaint.contains(part)), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &first)]));

    let writers = clone(&writer.git, &setup.url(), &[]);
    let second = writer.git.commit_file(&writers, "carol.txt", "carol\n", "From Carol");
    writer.git.ok(&writers, &["push", "--quiet", "origin", "main"]);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &second)]));
    setup.assert_settled(2);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_private_repository_is_absent_for_everyone_else(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let (_, first) = setup.pushed();
    let stranger = setup.person("mallory");
    assert_eq!(ls_remote(&stranger.git, &setup.url(), &[])["refs/heads/main"], first);

    make_private(&setup);

    let dir = stranger.git.init_work_tree();
    stranger.git.commit_file(&dir, "file.txt", "mine\n", "Mine");
    let url = setup.url();
    for args in [&["ls-remote", url.as_str()][..], &["push", &url, "main:mine"]] {
        let complaint = stranger.git.fails(&dir, args);
        let expected = match road {
            Road::Http => format!("repository '{url}/' not found"),
            Road::Ssh => "fatal: remote error: repository not found".to_owned(),
        };
        assert!(complaint.contains(&expected), "{args:?}: {complaint}");
    }
    assert_eq!(ls_remote(setup.git(), &url, &[])["refs/heads/main"], first);
    setup.assert_settled(1);
}

#[rstest]
fn strangers_fetch_public_repositories_without_a_login_and_are_asked_for_one_otherwise(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(Road::Http, engine);
    let (_, first) = setup.pushed();
    let anyone = GitClient::new();
    let url = setup.url();

    let theirs = clone(&anyone, &url, &[]);
    assert_eq!(anyone.ok(&theirs, &["rev-parse", "HEAD"]), first);
    anyone.commit_file(&theirs, "file.txt", "mine\n", "Mine");
    let asked = "Authentication failed for";
    let complaint = anyone.fails(&theirs, &["push", "origin", "main"]);
    assert!(complaint.contains(asked), "{complaint}");

    make_private(&setup);
    let complaint = anyone.fails(&theirs, &["fetch", "origin"]);
    assert!(complaint.contains(asked), "{complaint}");
    let complaint = anyone.fails(&theirs, &["ls-remote", &setup.url_of("nobody/nothing.git")]);
    assert!(complaint.contains(asked), "absent looks like private: {complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &first)]));
    setup.assert_settled(1);
}

#[rstest]
fn an_unknown_key_opens_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(Road::Ssh, engine);
    let (_, first) = setup.pushed();
    let unknown = GitClient::new().with_ssh_key();

    let complaint = unknown.fails(&unknown.fresh_dir(), &["ls-remote", &setup.url()]);

    assert!(complaint.contains("Permission denied (publickey)"), "{complaint}");
    assert_eq!(ls_remote(setup.git(), &setup.url(), &[])["refs/heads/main"], first);
}
