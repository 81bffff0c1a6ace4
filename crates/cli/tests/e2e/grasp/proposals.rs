//! Pull requests: the event and its commit, whichever comes first.

use super::scene::{Scene, WAITS, now, npub, state};
use crate::support::{builder, crowded, query};
use abide_core::failpoint;
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, eventually, http};
use rstest::rstest;
use std::time::Duration;

/// A pull request of someone else, for a commit.
fn proposal(scene: &Scene, author: &Key, commit: &str, kind: u16, more: &[&[&str]]) -> Event {
    let coordinate = scene.owner.coordinate("demo");
    let mut tags: Vec<&[&str]> = Vec::new();
    let (a, c, subject) = (["a", coordinate.as_str()], ["c", commit], ["subject", "Please take this"]);
    tags.extend([&a[..], &c[..], &subject[..]]);
    tags.extend(more);
    author.event(now(), kind, &tags, "what it does")
}

/// A served repository, and a commit that is not in it.
fn scene(engine: Engine) -> (Scene, Key, String) {
    scene_of(Scene::new(engine))
}

fn scene_of(mut scene: Scene) -> (Scene, Key, String) {
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    (scene, Key::new(9), commit)
}

fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

#[rstest]
fn pr_event_arrives_no_git_data_then_push_releases_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, commit) = scene(engine);
    let event = proposal(&scene, &author, &commit, 1618, &[]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    assert!(!scene.is_served(&event));
    let key = scene.owner.clone();
    let rows = scene.push_fails(&key, "demo", &[&format!("{}:{}", scene.first, nostr_ref(&event))]);
    assert!(rows.contains("commit mismatch"), "{rows}");
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(scene.is_served(&event));
    assert!(scene.refs(&key, "demo").contains(&(nostr_ref(&event), commit)));
    scene.assert_healthy();
}

/// PR events in a repository's status: event, author, commit and the missing half.
fn pr_rows(scene: &Scene, key: &Key) -> Vec<(String, Option<String>, String, String)> {
    let status = scene.status(key, "demo").json();
    let rows = status["proposals"].as_array().expect("a list").iter().map(|one| {
        let text = |name: &str| one[name].as_str().map(str::to_owned);
        let time = |name: &str| text(name).expect("a time");
        assert!(time("since") < time("expires_at"), "{one}");
        let required = |name: &str| text(name).expect(name);
        (required("event"), text("author"), required("commit"), required("missing"))
    });
    let rows: Vec<_> = rows.collect();
    assert_eq!(status["proposal_count"].as_u64(), Some(rows.len() as u64));
    rows
}

/// The front page of a repository.
fn page(scene: &Scene, key: &Key) -> String {
    http::get(scene.server.http_addr(), &format!("/{}/demo", npub(key)), None).text()
}

#[rstest]
fn everyone_sees_which_half_of_a_proposal_is_missing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, commit) = scene(engine);
    let (event, keys) = for_both(&mut scene, &commit);
    let id = event.id.to_hex();
    let far_too_long = format!("30617:{}:{}", Key::new(8).public(), "x".repeat(9000));
    let odd = proposal(&scene, &author, &"7".repeat(40), 1618, &[&["a", &far_too_long]]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    for key in &keys {
        assert_eq!(pr_rows(&scene, key), [(id.clone(), Some(npub(&author)), commit.clone(), "git".into())]);
        let html = page(&scene, key);
        assert!(html.contains("is waiting for its commit") && html.contains(&commit), "{html}");
        assert!(html.contains(&format!("refs/nostr/{id}")), "{html}");
    }
    assert_eq!(scene.relay.publish(&odd), (true, WAITS.to_owned()), "names of repositories elsewhere do not matter");
    assert_eq!(pr_rows(&scene, &keys[0]).len(), 2);
    scene.push(&keys[1], "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert_eq!(pr_rows(&scene, &keys[1]), [], "it is complete");
    assert!(!page(&scene, &keys[1]).contains("is waiting for its commit"));

    // The other way round, and at a repository that is not served yet.
    let waiting = Key::new(3);
    scene.announce(&waiting, "demo", &[]);
    let alone = scene.git.commit_file(&scene.work, "feature", "3", "nobody proposed this");
    let nobody = "5".repeat(64);
    for key in [&keys[1], &waiting] {
        scene.push(key, "demo", &[&format!("{alone}:refs/nostr/{nobody}")]);
        assert_eq!(pr_rows(&scene, key), [(nobody.clone(), None, alone.clone(), "event".into())]);
        let html = page(&scene, key);
        assert!(html.contains("is waiting for its pull request event") && html.contains(&alone), "{html}");
        assert!(html.contains(&nobody), "{html}");
    }
    assert_eq!(pr_rows(&scene, &keys[1]), [], "the last push under an id is the one that waits");

    // More than a page holds.
    for n in 1..=5 {
        let event = proposal(&scene, &author, &format!("{n:040}"), 1618, &[]);
        assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    }
    assert_eq!(pr_rows(&scene, &keys[0]).len(), 6);
    let html = page(&scene, &keys[0]);
    assert_eq!(html.matches("is waiting for its commit").count(), 3);
    assert!(html.contains("6 pull requests are incomplete"), "{html}");
    let link = format!("/api/v3/grasp/{}/demo/status", npub(&keys[0]));
    assert!(html.contains(&format!("href=\"{link}\"")), "{html}");
    scene.assert_healthy();
}

#[rstest]
fn pr_event_arrives_git_data_exists(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, _) = scene(engine);
    let first = scene.first.clone();
    let event = proposal(&scene, &author, &first, 1618, &[]);
    assert_eq!(scene.relay.publish(&event), (true, String::new()));
    assert!(scene.is_served(&event));
}

#[rstest]
fn git_push_arrives_no_pr_event_then_the_event_completes_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (mut scene, author, commit) = scene(engine);
    let key = scene.owner.clone();
    let event = proposal(&scene, &author, &commit, 1618, &[]);
    let rows = scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(rows.contains("awaiting PR event"), "{rows}");
    assert!(!scene.refs(&key, "demo").iter().any(|(name, _)| name.starts_with("refs/nostr/")));
    let into = scene.git.fresh_dir();
    scene.git.ok(&into, &["init", "-q"]);
    let wanted = scene.git.run(&into, &["fetch", &scene.url(&key, "demo"), &commit]);
    assert!(!wanted.status.success(), "git would serve any object that it holds, so it must not hold this one");
    assert_eq!(scene.relay.publish(&event), (true, String::new()));
    assert!(scene.is_served(&event));
    assert!(scene.refs(&key, "demo").contains(&(nostr_ref(&event), commit.clone())));
    scene.git.ok(&into, &["fetch", &scene.url(&key, "demo"), &nostr_ref(&event)]);
    scene.assert_healthy();
}

/// Both halves at once, over and over: whichever completes the pair releases it.
#[rstest]
fn race_between_event_and_git_push(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, _) = scene_of(Scene::on(crowded(engine).start()));
    for round in 0..6 {
        let commit = scene.git.commit_file(&scene.work, "feature", format!("{round}"), "a feature");
        let event = proposal(&scene, &author, &commit, 1618, &[]);
        let (key, to) = (scene.owner.clone(), format!("{commit}:{}", nostr_ref(&event)));
        let mut relay = Nostr::connect(&scene.server.url());
        let (taken, answer) = std::thread::scope(|threads| {
            let publishing = threads.spawn(|| relay.publish(&event));
            scene.push(&key, "demo", &[&to]);
            publishing.join().expect("the event is answered")
        });
        assert!(taken && (answer.is_empty() || answer == WAITS), "round {round}: {answer}");
        assert!(scene.is_served(&event), "round {round}");
        assert!(scene.refs(&key, "demo").contains(&(nostr_ref(&event), commit)), "round {round}");
    }
    scene.assert_healthy();
}

#[rstest]
fn pr_event_arrives_placeholder_with_a_different_commit(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, commit) = scene(engine);
    let key = scene.owner.clone();
    let event = proposal(&scene, &author, &commit, 1618, &[]);
    let garbage = scene.git.commit_file(&scene.work, "garbage", "2", "garbage");
    scene.push(&key, "demo", &[&format!("{garbage}:{}", nostr_ref(&event))]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()), "the event wins, and waits for its own commit");
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(scene.is_served(&event));
    let areas = std::fs::read_dir(scene.server.data_dir().join("incoming")).expect("it is there").count();
    assert_eq!(areas, 0, "what was pushed for nothing is gone");
    scene.assert_healthy();
}

#[rstest]
fn second_git_push_updates_the_placeholder(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, commit) = scene(engine);
    let key = scene.owner.clone();
    let second = scene.git.commit_file(&scene.work, "feature", "2", "better");
    let event = proposal(&scene, &author, &second, 1618, &[]);
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    scene.push(&key, "demo", &[&format!("{second}:{}", nostr_ref(&event))]);
    assert_eq!(scene.relay.publish(&event), (true, String::new()));
    assert!(scene.refs(&key, "demo").contains(&(nostr_ref(&event), second)));
    scene.assert_healthy();
}

#[rstest]
fn an_update_and_a_patch_with_a_commit_go_the_same_way(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, commit) = scene(engine);
    let key = scene.owner.clone();
    let event = proposal(&scene, &author, &commit, 1618, &[]);
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(scene.relay.publish(&event).0);
    let better = scene.git.commit_file(&scene.work, "feature", "2", "better");
    let parent = event.id.to_hex();
    let update = proposal(&scene, &author, &better, 1619, &[&["E", &parent]]);
    scene.push(&key, "demo", &[&format!("{better}:{}", nostr_ref(&update))]);
    assert_eq!(scene.relay.publish(&update), (true, String::new()));
    let patch = proposal(&scene, &author, &"1".repeat(40), 1617, &[]);
    assert_eq!(scene.relay.publish(&patch), (true, WAITS.to_owned()), "a patch that names a commit waits for it");
    let coordinate = key.coordinate("demo");
    let plain = author.event(now(), 1617, &[&["a", &coordinate]], "diff --git a/x b/x\n");
    assert_eq!(scene.relay.publish(&plain), (true, String::new()), "one without is complete by itself");
    let bad = author.event(now(), 1618, &[&["a", &coordinate], &["c", "xyz"]], "");
    assert!(scene.relay.publish(&bad).1.starts_with("invalid:"));
    let elsewhere = author.event(now(), 1618, &[&["a", "30617:00:x"], &["c", &commit]], "");
    assert!(scene.relay.publish(&elsewhere).1.starts_with("restricted:"));
    scene.assert_healthy();
}

#[rstest]
fn a_placeholder_expires_with_its_objects(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "4s").start());
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&scene, &Key::new(9), &commit, 1618, &[]);
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    let areas = || std::fs::read_dir(scene.server.data_dir().join("incoming")).expect("it is there").count();
    eventually(Duration::from_secs(30), || {
        scene.sweep();
        areas() == 0
    });
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    scene.assert_healthy();
}

#[rstest]
fn unsigned_bytes_have_a_budget(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "20KiB").start());
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let mut rows = String::new();
    for n in 0..20_u32 {
        let noise: String =
            (0..4096_u32).map(|i| char::from(33 + (i.wrapping_mul(7919 + n * 31) % 90) as u8)).collect();
        let commit = scene.git.commit_file(&scene.work, "noise", &noise, "noise");
        let pushed =
            scene.git.run(&scene.work, &["push", &scene.url(&key, "demo"), &format!("{commit}:refs/nostr/{n:064x}")]);
        if !pushed.status.success() {
            rows = String::from_utf8_lossy(&pushed.stderr).into_owned();
            break;
        }
    }
    assert!(rows.contains("waiting for their events") || rows.contains("limit"), "{rows}");
    scene.assert_healthy();
}

/// Two people's repositories, and a pull request that is for both.
fn for_both(scene: &mut Scene, commit: &str) -> (Event, [Key; 2]) {
    let keys = [scene.owner.clone(), Key::new(2)];
    scene.git.ok(&scene.work, &["branch", "-f", "base", &scene.first]);
    scene.announce(&keys[1], "demo", &[]);
    let first = scene.first.clone();
    scene.state_waits(&state(&keys[1], now() - 5, "demo", &[("refs/heads/main", &first)], Some("main")));
    scene.push(&keys[1], "demo", &["base:refs/heads/main"]);
    let other = keys[1].coordinate("demo");
    (proposal(scene, &Key::new(9), commit, 1618, &[&["a", &other]]), keys)
}

#[rstest]
fn a_pull_request_for_several_repositories_reaches_each(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] event_first: bool,
) {
    let (mut scene, _, commit) = scene(engine);
    let (event, keys) = for_both(&mut scene, &commit);
    if event_first {
        assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    }
    scene.push(&keys[1], "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    if !event_first {
        assert_eq!(scene.relay.publish(&event), (true, String::new()));
    }
    assert!(scene.is_served(&event));
    for key in &keys {
        assert!(scene.refs(key, "demo").contains(&(nostr_ref(&event), commit.clone())), "when the answer is there");
    }
    scene.assert_healthy();
}

/// The event and the first ref are there, the others are not yet: a job that is written with them makes up for it.
#[rstest]
fn crash_before_the_second_repository_is_given_its_commit(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, _, commit) = scene(engine);
    let (event, keys) = for_both(&mut scene, &commit);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    scene.server.terminate();
    scene.server.restart_with_failpoint(failpoint::PUSH_FINISHED);
    let to = format!("{commit}:{}", nostr_ref(&event));
    assert!(!scene.git.run(&scene.work, &["push", &scene.url(&keys[0], "demo"), &to]).status.success());
    scene.server.wait_exit();
    scene.server.restart();
    scene.relay = Nostr::connect(&scene.server.url());
    assert!(scene.is_served(&event));
    eventually(Duration::from_secs(30), || scene.refs(&keys[1], "demo").contains(&(nostr_ref(&event), commit.clone())));
    scene.assert_healthy();
}

#[rstest]
fn a_commit_without_a_repository_that_takes_it_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut scene, author, commit) = scene(engine);
    let coordinate = scene.owner.coordinate("demo");
    let issue = author.event(now(), 1621, &[&["a", &coordinate]], "an issue");
    assert!(scene.relay.publish(&issue).0);
    let id = issue.id.to_hex();
    let nowhere = author.event(now(), 1618, &[&["e", &id], &["c", &commit]], "");
    let (taken, reason) = scene.relay.publish(&nowhere);
    assert!(!taken && reason.starts_with("restricted: no repository here can store the commit"), "{reason}");
    scene.server.cli_ok(&["repo", "archive", &format!("{}/demo", npub(&scene.owner))]);
    let (taken, reason) = scene.relay.publish(&proposal(&scene, &author, &commit, 1618, &[]));
    assert!(!taken && reason.starts_with("restricted: the repository is archived"), "{reason}");
}

#[rstest]
fn what_its_author_wants_forgotten_takes_its_ref_along_and_repositories_stay(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (key, author) = (scene.owner.clone(), Key::new(9));
    let until = (now() + 3_600).to_string();
    let (announcement, _) = scene.served(&key, "demo", &[&["expiration", &until]]);
    let first = scene.first.clone();
    let event = proposal(&scene, &author, &first, 1618, &[&["expiration", &until]]);
    assert_eq!(scene.relay.publish(&event), (true, String::new()));
    let has_ref = |scene: &Scene| scene.refs(&key, "demo").iter().any(|(name, _)| *name == nostr_ref(&event));
    assert!(has_ref(&scene));
    // An hour later.
    query(&scene.server, "UPDATE nostr_events SET expires_at = expires_at - 3600");
    scene.server.cli_ok(&["jobs", "run", "relay:expire"]);
    eventually(Duration::from_secs(30), || !has_ref(&scene));
    assert!(!scene.is_served(&event) && !scene.is_served(&announcement));
    assert!(!scene.refs(&key, "demo").is_empty());
    let newer = scene.announcement(&key, now(), "demo", &[]);
    assert_eq!(scene.relay.publish(&newer), (true, String::new()), "the repository is there: it needs no purgatory");
    assert!(scene.is_served(&newer));
    scene.assert_healthy();
}
