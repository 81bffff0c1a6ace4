//! Payloads: GitHub's shapes, as the repository's administrators see them.

use super::{Setup, change, setup};
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
fn deliveries(setup: &Setup) -> Vec<String> {
    let one = |got: &super::receiver::Got| {
        let action = got.json()["action"].as_str().map(|action| format!(" {action}")).unwrap_or_default();
        format!("{}{action}", got.event())
    };
    setup.receiver.got().iter().map(one).collect()
}

fn last(setup: &Setup) -> Json {
    setup.receiver.got().last().expect("something was told").json()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_hook_is_pinged_with_githubs_headers_and_a_signature(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let wanted = change(&setup.receiver.url(), &["push"]);
    let hook = create::create(&setup.rig.forge, &setup.alice, &setup.repo, &wanted).await.expect("allowed");
    setup.deliver().await;
    let got = &setup.receiver.got()[0];
    assert_eq!((got.event(), got.header("x-abide-event")), ("ping", "ping"));
    assert_eq!(got.guid(), got.header("x-abide-delivery"));
    assert_eq!((got.guid().len(), got.guid().as_bytes()[14]), (36, b'4'), "a random UUID: {}", got.guid());
    assert_eq!(got.header("x-github-hook-id"), hook.id.to_string());
    assert_eq!(got.header("x-github-hook-installation-target-type"), "repository");
    assert_eq!(got.header("x-github-hook-installation-target-id"), setup.repo.id.to_string());
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
    let setup = setup(engine).await;
    let wanted = Change { content_type: Some("form".into()), ..change(&setup.receiver.url(), &["*"]) };
    create::create(&setup.rig.forge, &setup.alice, &setup.repo, &wanted).await.expect("allowed");
    setup.deliver().await;
    let got = &setup.receiver.got()[0];
    assert_eq!(got.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(got.header("x-hub-signature-256"), format!("sha256={}", signature(&got.body)));
    let text = std::str::from_utf8(&got.body).expect("text");
    let escaped = text.strip_prefix("payload=").expect("the field");
    assert!(escaped.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%+".contains(&byte)), "{escaped}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repositorys_life_is_told_to_its_end(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine).await;
    setup.hook(&["repository"]).await;
    let (forge, alice) = (&setup.rig.forge, &setup.alice);
    rename::rename(forge, alice, &setup.repo, "renamed").await.expect("allowed");
    setup.deliver().await;
    assert_eq!(last(&setup)["changes"]["repository"]["name"]["from"], "project");
    assert_eq!(last(&setup)["repository"]["full_name"], "alice/renamed");
    marks::archive(forge, alice, &setup.again().await).await.expect("allowed");
    marks::unarchive(forge, alice, &setup.again().await).await.expect("allowed");
    marks::set_visibility(forge, alice, &setup.again().await, Visibility::Private).await.expect("allowed");
    setup.deliver().await;
    assert_eq!(
        (last(&setup)["action"].clone(), last(&setup)["repository"]["private"].clone()),
        (json!("privatized"), json!(true))
    );
    marks::set_visibility(forge, alice, &setup.again().await, Visibility::Public).await.expect("allowed");
    delete::delete(forge, alice, &setup.again().await).await.expect("allowed");
    setup.deliver().await;
    assert_eq!(last(&setup)["action"], "deleted");
    restore::restore(forge, alice, &setup.repo.id.to_string(), None).await.expect("allowed");
    setup.deliver().await;
    delete::delete(forge, alice, &setup.again().await).await.expect("allowed");
    setup.pass(8 * 86_400);
    purge::sweep(forge).await.expect("it sweeps");
    setup.deliver().await;
    assert_eq!(
        deliveries(&setup),
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
    let end = last(&setup);
    assert_eq!(
        (end["repository"]["id"].clone(), end["repository"]["full_name"].clone()),
        (json!(setup.repo.id.get()), json!("alice/renamed"))
    );
    assert_eq!((end["sender"]["login"].clone(), end["sender"]["type"].clone()), (json!("abide"), json!("Bot")));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn stars_members_issues_and_comments_are_told(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine).await;
    setup.hook(&["*"]).await;
    let (forge, alice, repo) = (&setup.rig.forge, &setup.alice, &setup.repo);
    setup.rig.user("bob").await;
    let bob = accounts::find(forge, &"bob".parse().expect("a name")).await.expect("readable").expect("he exists");
    star::star(forge, alice, repo).await.expect("allowed");
    star::unstar(forge, alice, repo).await.expect("allowed");
    collaborators::set(forge, alice, repo, &bob, Role::Write).await.expect("allowed");
    let new = issues::create::Request { title: "It crashes".into(), body: "Badly.".into(), ..Default::default() };
    let issue = issues::create::create(forge, alice, repo, new).await.expect("allowed");
    let said = comment::add(forge, alice, repo, issue.number, "Really?").await.expect("allowed");
    setup.deliver().await;
    let comments: Vec<_> = setup.receiver.got();
    let spoken = comments.last().expect("it was told").json();
    assert_eq!((spoken["comment"]["body"].clone(), spoken["issue"]["number"].clone()), (json!("Really?"), json!(1)));
    comment::remove(forge, alice, repo, &said.id.to_string()).await.expect("allowed");
    setup.deliver().await;
    assert_eq!(
        deliveries(&setup),
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
    let got = setup.receiver.got();
    assert!(got[0].json()["starred_at"].is_string() && got[2].json()["starred_at"].is_null());
    assert_eq!(got[0].json()["repository"]["stargazers_count"], got[0].json()["repository"]["watchers_count"]);
    assert_eq!(got[3].json()["member"]["login"], "bob");
    assert_eq!(got[4].json()["issue"]["title"], "It crashes");
    assert_eq!(
        (last(&setup)["comment"]["user"]["login"].clone(), last(&setup)["comment"]["body"].clone()),
        (json!("alice"), json!(""))
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_hears_only_what_it_asked_for_and_only_from_its_beginning_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    star::star(&setup.rig.forge, &setup.alice, &setup.repo).await.expect("allowed");
    setup.pass(1);
    setup.hook(&["watch"]).await;
    assert!(deliveries(&setup).is_empty());
    setup.pass(1);
    star::unstar(&setup.rig.forge, &setup.alice, &setup.repo).await.expect("allowed");
    star::star(&setup.rig.forge, &setup.alice, &setup.repo).await.expect("allowed");
    setup.deliver().await;
    assert_eq!(deliveries(&setup), ["watch started"]);
    consumers::catch_up(&setup.rig.forge).await.expect("it reads");
    setup.deliver().await;
    assert_eq!(deliveries(&setup).len(), 1, "nothing is told twice");
}

const ZERO: &str = "0000000000000000000000000000000000000000";

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_ref_of_a_push_is_told_with_the_commits_that_it_brought(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    setup.hook(&["push"]).await;
    let git = |args: &[&str]| setup.rig.git(setup.repo.id, args);
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
    setup
        .pushed(vec![
            moved("refs/heads/main", &one, &three),
            moved("refs/heads/side", ZERO, &other),
            moved("refs/tags/v1", ZERO, &tag),
            moved("refs/heads/gone", &two, ZERO),
            moved("refs/heads/main", &other, &three),
        ])
        .await;
    setup.deliver().await;
    let got: Vec<_> = setup.receiver.got().iter().map(|got| got.json()).collect();
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
    let guids: std::collections::BTreeSet<_> = setup.receiver.got().iter().map(|got| got.guid()).collect();
    assert_eq!(guids.len(), 5);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_a_push_there_is_nothing_to_send_for_a_test(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["push"]).await;
    let sent = ask::latest_push(&setup.rig.forge, &setup.alice, &setup.repo, &hook).await.expect("allowed");
    assert!(!sent);
}
