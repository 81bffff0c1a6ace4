//! Payloads: GitHub's shapes, as the repository's administrators see them.

use super::{Scene, change, scene};
use abide_core::event::PushedRef;
use abide_core::repo::{Role, Visibility};
use abide_forge::attention::star;
use abide_forge::issues::{self, comment};
use abide_forge::repos::{collaborators, delete, marks, purge, rename, restore};
use abide_forge::webhooks::{Change, ask, create};
use abide_forge::{accounts, consumers};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::{Value as Json, json};

/// All deliveries, as `event action`.
fn deliveries(scene: &Scene) -> Vec<String> {
    let one = |got: &super::receiver::Got| {
        let action = got.json()["action"].as_str().map(|action| format!(" {action}")).unwrap_or_default();
        format!("{}{action}", got.event())
    };
    scene.receiver.got().iter().map(one).collect()
}

fn last(scene: &Scene) -> Json {
    scene.receiver.got().last().expect("something was told").json()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_hook_is_pinged_with_githubs_headers_and_a_signature(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = scene(engine).await;
    let wanted = change(&scene.receiver.url(), &["push"]);
    let hook = create::create(&scene.rig.forge, &scene.alice, &scene.repo, &wanted).await.expect("allowed");
    scene.deliver().await;
    let got = &scene.receiver.got()[0];
    assert_eq!((got.event(), got.header("x-abide-event")), ("ping", "ping"));
    assert_eq!(got.guid(), got.header("x-abide-delivery"));
    assert_eq!((got.guid().len(), got.guid().as_bytes()[14]), (36, b'4'), "a random UUID: {}", got.guid());
    assert_eq!(got.header("x-github-hook-id"), hook.id.to_string());
    assert_eq!(got.header("x-github-hook-installation-target-type"), "repository");
    assert_eq!(got.header("x-github-hook-installation-target-id"), scene.repo.id.to_string());
    assert!(got.header("user-agent").starts_with("Abide-Hookshot/"));
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("x-hub-signature-256"), format!("sha256={}", signature(&got.body)));
    let said = got.json();
    assert_eq!(
        (said["hook_id"].clone(), said["hook"]["config"]["secret"].clone()),
        (json!(hook.id.get()), json!("********"))
    );
    assert_eq!(said["repository"]["full_name"], "alice/project");
    assert_eq!(said["sender"]["login"], "alice");
}

/// By another hand than ours.
fn signature(body: &[u8]) -> String {
    use std::io::Write as _;
    let code = "import hashlib, hmac, sys\n\
        print(hmac.new(b\"It's a Secret to Everybody\", sys.stdin.buffer.read(), hashlib.sha256).hexdigest())";
    let mut python = std::process::Command::new("python3")
        .args(["-c", code])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python is installed");
    python.stdin.take().expect("piped").write_all(body).expect("it reads");
    String::from_utf8(python.wait_with_output().expect("it ends").stdout).expect("text").trim().to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_form_carries_the_payload_in_a_field_and_is_signed_as_it_is_sent(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = scene(engine).await;
    let wanted = Change { content_type: Some("form".into()), ..change(&scene.receiver.url(), &["*"]) };
    create::create(&scene.rig.forge, &scene.alice, &scene.repo, &wanted).await.expect("allowed");
    scene.deliver().await;
    let got = &scene.receiver.got()[0];
    assert_eq!(got.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(got.header("x-hub-signature-256"), format!("sha256={}", signature(&got.body)));
    let text = std::str::from_utf8(&got.body).expect("text");
    let escaped = text.strip_prefix("payload=").expect("the field");
    assert!(escaped.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%+".contains(&byte)), "{escaped}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repositorys_life_is_told_to_its_end(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let scene = scene(engine).await;
    scene.hook(&["repository"]).await;
    let (forge, alice) = (&scene.rig.forge, &scene.alice);
    rename::rename(forge, alice, &scene.repo, "renamed").await.expect("allowed");
    scene.deliver().await;
    assert_eq!(last(&scene)["changes"]["repository"]["name"]["from"], "project");
    assert_eq!(last(&scene)["repository"]["full_name"], "alice/renamed");
    marks::archive(forge, alice, &scene.again().await).await.expect("allowed");
    marks::unarchive(forge, alice, &scene.again().await).await.expect("allowed");
    marks::set_visibility(forge, alice, &scene.again().await, Visibility::Private).await.expect("allowed");
    scene.deliver().await;
    assert_eq!(
        (last(&scene)["action"].clone(), last(&scene)["repository"]["private"].clone()),
        (json!("privatized"), json!(true))
    );
    marks::set_visibility(forge, alice, &scene.again().await, Visibility::Public).await.expect("allowed");
    delete::delete(forge, alice, &scene.again().await).await.expect("allowed");
    scene.deliver().await;
    assert_eq!(last(&scene)["action"], "deleted");
    restore::restore(forge, alice, &scene.repo.id.to_string(), None).await.expect("allowed");
    scene.deliver().await;
    delete::delete(forge, alice, &scene.again().await).await.expect("allowed");
    scene.pass(8 * 86_400);
    purge::sweep(forge).await.expect("it sweeps");
    scene.deliver().await;
    assert_eq!(
        deliveries(&scene),
        [
            "repository renamed",
            "repository archived",
            "repository unarchived",
            "repository privatized",
            "repository publicized",
            "repository deleted",
            "repository restored",
            "repository deleted",
            "repository purged"
        ]
    );
    let end = last(&scene);
    assert_eq!(
        (end["repository"]["id"].clone(), end["repository"]["full_name"].clone()),
        (json!(scene.repo.id.get()), json!("alice/renamed"))
    );
    assert_eq!((end["sender"]["login"].clone(), end["sender"]["type"].clone()), (json!("abide"), json!("Bot")));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn stars_members_issues_and_comments_are_told(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let scene = scene(engine).await;
    scene.hook(&["*"]).await;
    let (forge, alice, repo) = (&scene.rig.forge, &scene.alice, &scene.repo);
    scene.rig.user("bob").await;
    let bob = accounts::find(forge, &"bob".parse().expect("a name")).await.expect("readable").expect("he exists");
    star::star(forge, alice, repo).await.expect("allowed");
    star::unstar(forge, alice, repo).await.expect("allowed");
    collaborators::set(forge, alice, repo, &bob, Role::Write).await.expect("allowed");
    let new = issues::create::Request { title: "It crashes".into(), body: "Badly.".into(), ..Default::default() };
    let issue = issues::create::create(forge, alice, repo, new).await.expect("allowed");
    let said = comment::add(forge, alice, repo, issue.number, "Really?").await.expect("allowed");
    scene.deliver().await;
    let comments: Vec<_> = scene.receiver.got();
    let spoken = comments.last().expect("it was told").json();
    assert_eq!((spoken["comment"]["body"].clone(), spoken["issue"]["number"].clone()), (json!("Really?"), json!(1)));
    comment::remove(forge, alice, repo, &said.id.to_string()).await.expect("allowed");
    scene.deliver().await;
    assert_eq!(
        deliveries(&scene),
        [
            "star created",
            "watch started",
            "star deleted",
            "member added",
            "issues opened",
            "issue_comment created",
            "issue_comment deleted"
        ]
    );
    let got = scene.receiver.got();
    assert!(got[0].json()["starred_at"].is_string() && got[2].json()["starred_at"].is_null());
    assert_eq!(got[0].json()["repository"]["stargazers_count"], got[0].json()["repository"]["watchers_count"]);
    assert_eq!(got[3].json()["member"]["login"], "bob");
    assert_eq!(got[4].json()["issue"]["title"], "It crashes");
    assert_eq!(
        (last(&scene)["comment"]["user"]["login"].clone(), last(&scene)["comment"]["body"].clone()),
        (json!("alice"), json!(""))
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_hears_only_what_it_asked_for_and_only_from_its_beginning_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = scene(engine).await;
    star::star(&scene.rig.forge, &scene.alice, &scene.repo).await.expect("allowed");
    scene.pass(1);
    scene.hook(&["watch"]).await;
    assert!(deliveries(&scene).is_empty());
    scene.pass(1);
    star::unstar(&scene.rig.forge, &scene.alice, &scene.repo).await.expect("allowed");
    star::star(&scene.rig.forge, &scene.alice, &scene.repo).await.expect("allowed");
    scene.deliver().await;
    assert_eq!(deliveries(&scene), ["watch started"]);
    consumers::catch_up(&scene.rig.forge).await.expect("it reads");
    scene.deliver().await;
    assert_eq!(deliveries(&scene).len(), 1, "nothing is told twice");
}

const ZERO: &str = "0000000000000000000000000000000000000000";

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_ref_of_a_push_is_told_with_the_commits_that_it_brought(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = scene(engine).await;
    scene.hook(&["push"]).await;
    let git = |args: &[&str]| scene.rig.git(scene.repo.id, args);
    let one = git(&["rev-parse", "refs/heads/main"]);
    let blob = git(&["hash-object", "-w", "-t", "blob", "/dev/null"]);
    let index = git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},file.txt")]);
    assert_eq!(index, "");
    let tree = git(&["write-tree"]);
    let two = git(&["commit-tree", &tree, "-p", &one, "-m", "two"]);
    let three = git(&["commit-tree", &tree, "-p", &two, "-m", "three\n\nat length"]);
    let other = git(&["commit-tree", &tree, "-p", &one, "-m", "other"]);
    git(&["update-ref", "refs/heads/main", &three]);
    git(&["update-ref", "refs/heads/side", &other]);
    git(&["tag", "-a", "v1", "-m", "first", &two]);
    let tag = git(&["rev-parse", "refs/tags/v1"]);
    let moved = |name: &str, before: &str, after: &str| PushedRef {
        name: name.into(),
        before: before.into(),
        after: after.into(),
        commits: Vec::new(),
    };
    scene
        .pushed(vec![
            moved("refs/heads/main", &one, &three),
            moved("refs/heads/side", ZERO, &other),
            moved("refs/tags/v1", ZERO, &tag),
            moved("refs/heads/gone", &two, ZERO),
            moved("refs/heads/main", &other, &three),
        ])
        .await;
    scene.deliver().await;
    let got: Vec<_> = scene.receiver.got().iter().map(|got| got.json()).collect();
    let marks = |said: &Json| (said["created"].clone(), said["deleted"].clone(), said["forced"].clone());
    let commits = |said: &Json| -> Vec<String> {
        let all = said["commits"].as_array().expect("a list");
        all.iter().map(|commit| commit["message"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(got.len(), 5);
    assert_eq!(marks(&got[0]), (json!(false), json!(false), json!(false)));
    assert_eq!(commits(&got[0]), ["two", "three\n\nat length"]);
    assert_eq!(got[0]["commits"][0]["added"], json!(["file.txt"]));
    assert_eq!((got[0]["head_commit"]["id"].clone(), got[0]["after"].clone()), (json!(three), json!(three)));
    assert_eq!(got[0]["pusher"]["name"], "alice");
    assert!(got[0]["compare"].as_str().expect("text").ends_with(&format!("/alice/project/compare/{one}...{three}")));
    assert_eq!(
        (marks(&got[1]), commits(&got[1])),
        ((json!(true), json!(false), json!(false)), vec!["other".to_owned()])
    );
    assert_eq!((got[2]["ref"].clone(), got[2]["head_commit"]["id"].clone()), (json!("refs/tags/v1"), json!(two)));
    assert_eq!(
        (marks(&got[3]), got[3]["head_commit"].clone()),
        ((json!(false), json!(true), json!(false)), Json::Null)
    );
    assert_eq!(marks(&got[4]), (json!(false), json!(false), json!(true)), "what was there before is not behind it");
    let guids: std::collections::BTreeSet<_> = scene.receiver.got().iter().map(|got| got.guid()).collect();
    assert_eq!(guids.len(), 5);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_a_push_there_is_nothing_to_send_for_a_test(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = scene(engine).await;
    let hook = scene.hook(&["push"]).await;
    let sent = ask::latest_push(&scene.rig.forge, &scene.alice, &scene.repo, &hook).await.expect("allowed");
    assert!(!sent);
}
