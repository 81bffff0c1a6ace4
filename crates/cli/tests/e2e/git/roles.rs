//! Who may fetch and who may push.

use super::scene::{Road, Scene, clone, ls_remote, refs};
use abide_testkit::{Engine, GitClient, http};
use rstest::rstest;
use serde_json::json;

const NEEDS_WRITE: &str = "you need the write role in this repository; ask its owner to change your access";

fn make_private(scene: &Scene) {
    let body = json!({ "private": true });
    let changed = http::patch(scene.server.http_addr(), "/api/v3/repos/alice/demo", Some(&scene.alice.token), &body);
    assert_eq!(changed.status, 200, "{}", changed.text());
}

#[rstest]
fn readers_fetch_and_writers_push(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (_, first) = scene.pushed();
    make_private(&scene);
    let reader = scene.collaborator("bob", "read");
    let writer = scene.collaborator("carol", "write");

    let readers = clone(&reader.git, &scene.url(), &[]);
    assert_eq!(reader.git.ok(&readers, &["rev-parse", "HEAD"]), first);
    reader.git.commit_file(&readers, "bob.txt", "bob\n", "From Bob");
    let complaint = reader.git.fails(&readers, &["push", "origin", "main"]);
    let expected = match road {
        Road::Http => [format!("remote: {NEEDS_WRITE}"), "The requested URL returned error: 403".to_owned()],
        Road::Ssh => [format!("fatal: remote error: {NEEDS_WRITE}"), String::new()],
    };
    assert!(expected.iter().all(|part| complaint.contains(part)), "{complaint}");
    assert_eq!(scene.refs(), refs([("refs/heads/main", &first)]));

    let writers = clone(&writer.git, &scene.url(), &[]);
    let second = writer.git.commit_file(&writers, "carol.txt", "carol\n", "From Carol");
    writer.git.ok(&writers, &["push", "--quiet", "origin", "main"]);
    assert_eq!(scene.refs(), refs([("refs/heads/main", &second)]));
    scene.assert_settled(2);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_private_repository_is_absent_for_everyone_else(#[case] road: Road, #[case] engine: Engine) {
    let scene = Scene::new(road, engine);
    let (_, first) = scene.pushed();
    let stranger = scene.person("mallory");
    assert_eq!(ls_remote(&stranger.git, &scene.url(), &[])["refs/heads/main"], first);

    make_private(&scene);

    let dir = stranger.git.init_work_tree();
    stranger.git.commit_file(&dir, "file.txt", "mine\n", "Mine");
    let url = scene.url();
    for args in [&["ls-remote", url.as_str()][..], &["push", &url, "main:mine"]] {
        let complaint = stranger.git.fails(&dir, args);
        let expected = match road {
            Road::Http => format!("repository '{url}/' not found"),
            Road::Ssh => "fatal: remote error: repository not found".to_owned(),
        };
        assert!(complaint.contains(&expected), "{args:?}: {complaint}");
    }
    assert_eq!(ls_remote(scene.git(), &url, &[])["refs/heads/main"], first);
    scene.assert_settled(1);
}

#[rstest]
fn strangers_fetch_public_repositories_without_a_login_and_are_asked_for_one_otherwise(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(Road::Http, engine);
    let (_, first) = scene.pushed();
    let anyone = GitClient::new();
    let url = scene.url();

    let theirs = clone(&anyone, &url, &[]);
    assert_eq!(anyone.ok(&theirs, &["rev-parse", "HEAD"]), first);
    anyone.commit_file(&theirs, "file.txt", "mine\n", "Mine");
    let asked = "Authentication failed for";
    let complaint = anyone.fails(&theirs, &["push", "origin", "main"]);
    assert!(complaint.contains(asked), "{complaint}");

    make_private(&scene);
    let complaint = anyone.fails(&theirs, &["fetch", "origin"]);
    assert!(complaint.contains(asked), "{complaint}");
    let complaint = anyone.fails(&theirs, &["ls-remote", &scene.url_of("nobody/nothing.git")]);
    assert!(complaint.contains(asked), "absent looks like private: {complaint}");
    assert_eq!(scene.refs(), refs([("refs/heads/main", &first)]));
    scene.assert_settled(1);
}

#[rstest]
fn an_unknown_key_opens_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let scene = Scene::new(Road::Ssh, engine);
    let (_, first) = scene.pushed();
    let unknown = GitClient::new().with_ssh_key();

    let complaint = unknown.fails(&unknown.fresh_dir(), &["ls-remote", &scene.url()]);

    assert!(complaint.contains("Permission denied (publickey)"), "{complaint}");
    assert_eq!(ls_remote(scene.git(), &scene.url(), &[])["refs/heads/main"], first);
}
