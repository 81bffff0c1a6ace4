//! Pull requests: the event and its commit, whichever comes first.

use super::setup::{Setup, WAITS, now, npub, state};
use crate::support::{builder, crowded, query};
use abide_core::failpoint;
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, eventually, http};
use rstest::rstest;
use std::time::Duration;

/// A pull request of someone else, for a commit.
fn proposal(setup: &Setup, author: &Key, commit: &str, kind: u16, more: &[&[&str]]) -> Event {
    let coordinate = setup.owner.coordinate("demo");
    let mut tags: Vec<&[&str]> = Vec::new();
    let (a, c, subject) = (["a", coordinate.as_str()], ["c", commit], ["subject", "Please take this"]);
    tags.extend([&a[..], &c[..], &subject[..]]);
    tags.extend(more);
    author.event(now(), kind, &tags, "what it does")
}

/// A served repository, and a commit that is not in it.
fn setup(engine: Engine) -> (Setup, Key, String) {
    setup_of(Setup::new(engine))
}

fn setup_of(mut setup: Setup) -> (Setup, Key, String) {
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    (setup, Key::new(9), commit)
}

fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

#[rstest]
fn pr_event_arrives_no_git_data_then_push_releases_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, commit) = setup(engine);
    let event = proposal(&setup, &author, &commit, 1618, &[]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    assert!(!setup.is_served(&event));
    let key = setup.owner.clone();
    let rows = setup.push_fails(&key, "demo", &[&format!("{}:{}", setup.first, nostr_ref(&event))]);
    assert!(rows.contains("commit mismatch"), "{rows}");
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(setup.is_served(&event));
    assert!(setup.refs(&key, "demo").contains(&(nostr_ref(&event), commit)));
    setup.assert_healthy();
}

/// PR events in a repository's status: event, author, commit and the missing half.
fn pr_rows(setup: &Setup, key: &Key) -> Vec<(String, Option<String>, String, String)> {
    let status = setup.status(key, "demo").json();
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
fn page(setup: &Setup, key: &Key) -> String {
    http::get(setup.server.http_addr(), &format!("/{}/demo", npub(key)), None).text()
}

#[rstest]
fn everyone_sees_which_half_of_a_proposal_is_missing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, commit) = setup(engine);
    let (event, keys) = for_both(&mut setup, &commit);
    let id = event.id.to_hex();
    let far_too_long = format!("30617:{}:{}", Key::new(8).public(), "x".repeat(9000));
    let odd = proposal(&setup, &author, &"7".repeat(40), 1618, &[&["a", &far_too_long]]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    for key in &keys {
        assert_eq!(pr_rows(&setup, key), [(id.clone(), Some(npub(&author)), commit.clone(), "git".into())]);
        let html = page(&setup, key);
        assert!(html.contains("is waiting for its commit") && html.contains(&commit), "{html}");
        assert!(html.contains(&format!("refs/nostr/{id}")), "{html}");
    }
    assert_eq!(setup.relay.publish(&odd), (true, WAITS.to_owned()), "names of repositories elsewhere do not matter");
    assert_eq!(pr_rows(&setup, &keys[0]).len(), 2);
    setup.push(&keys[1], "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert_eq!(pr_rows(&setup, &keys[1]), [], "it is complete");
    assert!(!page(&setup, &keys[1]).contains("is waiting for its commit"));

    // The other way round, and at a repository that is not served yet.
    let waiting = Key::new(3);
    setup.announce(&waiting, "demo", &[]);
    let alone = setup.git.commit_file(&setup.work, "feature", "3", "nobody proposed this");
    let nobody = "5".repeat(64);
    for key in [&keys[1], &waiting] {
        setup.push(key, "demo", &[&format!("{alone}:refs/nostr/{nobody}")]);
        assert_eq!(pr_rows(&setup, key), [(nobody.clone(), None, alone.clone(), "event".into())]);
        let html = page(&setup, key);
        assert!(html.contains("is waiting for its pull request event") && html.contains(&alone), "{html}");
        assert!(html.contains(&nobody), "{html}");
    }
    assert_eq!(pr_rows(&setup, &keys[1]), [], "the last push under an id is the one that waits");

    // More than a page holds.
    for n in 1..=5 {
        let event = proposal(&setup, &author, &format!("{n:040}"), 1618, &[]);
        assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    }
    assert_eq!(pr_rows(&setup, &keys[0]).len(), 6);
    let html = page(&setup, &keys[0]);
    assert_eq!(html.matches("is waiting for its commit").count(), 3);
    assert!(html.contains("6 pull requests are incomplete"), "{html}");
    let link = format!("/api/v3/grasp/{}/demo/status", npub(&keys[0]));
    assert!(html.contains(&format!("href=\"{link}\"")), "{html}");
    setup.assert_healthy();
}

#[rstest]
fn pr_event_arrives_git_data_exists(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, _) = setup(engine);
    let first = setup.first.clone();
    let event = proposal(&setup, &author, &first, 1618, &[]);
    assert_eq!(setup.relay.publish(&event), (true, String::new()));
    assert!(setup.is_served(&event));
}

#[rstest]
fn git_push_arrives_no_pr_event_then_the_event_completes_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (mut setup, author, commit) = setup(engine);
    let key = setup.owner.clone();
    let event = proposal(&setup, &author, &commit, 1618, &[]);
    let rows = setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(rows.contains("awaiting PR event"), "{rows}");
    assert!(!setup.refs(&key, "demo").iter().any(|(name, _)| name.starts_with("refs/nostr/")));
    let into = setup.git.fresh_dir();
    setup.git.ok(&into, &["init", "-q"]);
    let wanted = setup.git.run(&into, &["fetch", &setup.url(&key, "demo"), &commit]);
    assert!(!wanted.status.success(), "git would serve any object that it holds, so it must not hold this one");
    assert_eq!(setup.relay.publish(&event), (true, String::new()));
    assert!(setup.is_served(&event));
    assert!(setup.refs(&key, "demo").contains(&(nostr_ref(&event), commit.clone())));
    setup.git.ok(&into, &["fetch", &setup.url(&key, "demo"), &nostr_ref(&event)]);
    setup.assert_healthy();
}

/// Both halves at once, over and over: whichever completes the pair releases it.
#[rstest]
fn race_between_event_and_git_push(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, _) = setup_of(Setup::on(crowded(engine).start()));
    for round in 0..6 {
        let commit = setup.git.commit_file(&setup.work, "feature", format!("{round}"), "a feature");
        let event = proposal(&setup, &author, &commit, 1618, &[]);
        let (key, to) = (setup.owner.clone(), format!("{commit}:{}", nostr_ref(&event)));
        let mut relay = Nostr::connect(&setup.server.url());
        let (taken, answer) = std::thread::scope(|threads| {
            let publishing = threads.spawn(|| relay.publish(&event));
            setup.push(&key, "demo", &[&to]);
            publishing.join().expect("the event is answered")
        });
        assert!(taken && (answer.is_empty() || answer == WAITS), "round {round}: {answer}");
        assert!(setup.is_served(&event), "round {round}");
        assert!(setup.refs(&key, "demo").contains(&(nostr_ref(&event), commit)), "round {round}");
    }
    setup.assert_healthy();
}

#[rstest]
fn pr_event_arrives_placeholder_with_a_different_commit(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, commit) = setup(engine);
    let key = setup.owner.clone();
    let event = proposal(&setup, &author, &commit, 1618, &[]);
    let garbage = setup.git.commit_file(&setup.work, "garbage", "2", "garbage");
    setup.push(&key, "demo", &[&format!("{garbage}:{}", nostr_ref(&event))]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()), "the event wins, and waits for its own commit");
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(setup.is_served(&event));
    let areas = std::fs::read_dir(setup.server.data_dir().join("incoming")).expect("it is there").count();
    assert_eq!(areas, 0, "what was pushed for nothing is gone");
    setup.assert_healthy();
}

#[rstest]
fn second_git_push_updates_the_placeholder(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, commit) = setup(engine);
    let key = setup.owner.clone();
    let second = setup.git.commit_file(&setup.work, "feature", "2", "better");
    let event = proposal(&setup, &author, &second, 1618, &[]);
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    setup.push(&key, "demo", &[&format!("{second}:{}", nostr_ref(&event))]);
    assert_eq!(setup.relay.publish(&event), (true, String::new()));
    assert!(setup.refs(&key, "demo").contains(&(nostr_ref(&event), second)));
    setup.assert_healthy();
}

#[rstest]
fn an_update_and_a_patch_with_a_commit_go_the_same_way(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, commit) = setup(engine);
    let key = setup.owner.clone();
    let event = proposal(&setup, &author, &commit, 1618, &[]);
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(setup.relay.publish(&event).0);
    let better = setup.git.commit_file(&setup.work, "feature", "2", "better");
    let parent = event.id.to_hex();
    let update = proposal(&setup, &author, &better, 1619, &[&["E", &parent]]);
    setup.push(&key, "demo", &[&format!("{better}:{}", nostr_ref(&update))]);
    assert_eq!(setup.relay.publish(&update), (true, String::new()));
    let patch = proposal(&setup, &author, &"1".repeat(40), 1617, &[]);
    assert_eq!(setup.relay.publish(&patch), (true, WAITS.to_owned()), "a patch that names a commit waits for it");
    let coordinate = key.coordinate("demo");
    let plain = author.event(now(), 1617, &[&["a", &coordinate]], "diff --git a/x b/x\n");
    assert_eq!(setup.relay.publish(&plain), (true, String::new()), "one without is complete by itself");
    let bad = author.event(now(), 1618, &[&["a", &coordinate], &["c", "xyz"]], "");
    assert!(setup.relay.publish(&bad).1.starts_with("invalid:"));
    let elsewhere = author.event(now(), 1618, &[&["a", "30617:00:x"], &["c", &commit]], "");
    assert!(setup.relay.publish(&elsewhere).1.starts_with("restricted:"));
    setup.assert_healthy();
}

#[rstest]
fn a_placeholder_expires_with_its_objects(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "4s").start());
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&setup, &Key::new(9), &commit, 1618, &[]);
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    let areas = || std::fs::read_dir(setup.server.data_dir().join("incoming")).expect("it is there").count();
    eventually(Duration::from_secs(30), || {
        setup.sweep();
        areas() == 0
    });
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    setup.assert_healthy();
}

#[rstest]
fn unsigned_bytes_have_a_budget(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "20KiB").start());
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let mut rows = String::new();
    for n in 0..20_u32 {
        let noise: String =
            (0..4096_u32).map(|i| char::from(33 + (i.wrapping_mul(7919 + n * 31) % 90) as u8)).collect();
        let commit = setup.git.commit_file(&setup.work, "noise", &noise, "noise");
        let pushed =
            setup.git.run(&setup.work, &["push", &setup.url(&key, "demo"), &format!("{commit}:refs/nostr/{n:064x}")]);
        if !pushed.status.success() {
            rows = String::from_utf8_lossy(&pushed.stderr).into_owned();
            break;
        }
    }
    assert!(rows.contains("waiting for their events") || rows.contains("limit"), "{rows}");
    setup.assert_healthy();
}

/// Two people's repositories, and a pull request that is for both.
fn for_both(setup: &mut Setup, commit: &str) -> (Event, [Key; 2]) {
    let keys = [setup.owner.clone(), Key::new(2)];
    setup.git.ok(&setup.work, &["branch", "-f", "base", &setup.first]);
    setup.announce(&keys[1], "demo", &[]);
    let first = setup.first.clone();
    setup.state_waits(&state(&keys[1], now() - 5, "demo", &[("refs/heads/main", &first)], Some("main")));
    setup.push(&keys[1], "demo", &["base:refs/heads/main"]);
    let other = keys[1].coordinate("demo");
    (proposal(setup, &Key::new(9), commit, 1618, &[&["a", &other]]), keys)
}

#[rstest]
fn a_pull_request_for_several_repositories_reaches_each(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] event_first: bool,
) {
    let (mut setup, _, commit) = setup(engine);
    let (event, keys) = for_both(&mut setup, &commit);
    if event_first {
        assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    }
    setup.push(&keys[1], "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    if !event_first {
        assert_eq!(setup.relay.publish(&event), (true, String::new()));
    }
    assert!(setup.is_served(&event));
    for key in &keys {
        assert!(setup.refs(key, "demo").contains(&(nostr_ref(&event), commit.clone())), "when the answer is there");
    }
    setup.assert_healthy();
}

/// The event and the first ref are there, the others are not yet: a job that is written with them makes up for it.
#[rstest]
fn crash_before_the_second_repository_is_given_its_commit(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, _, commit) = setup(engine);
    let (event, keys) = for_both(&mut setup, &commit);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    setup.server.terminate();
    setup.server.restart_with_failpoint(failpoint::PUSH_FINISHED);
    let to = format!("{commit}:{}", nostr_ref(&event));
    assert!(!setup.git.run(&setup.work, &["push", &setup.url(&keys[0], "demo"), &to]).status.success());
    setup.server.wait_exit();
    setup.server.restart();
    setup.relay = Nostr::connect(&setup.server.url());
    assert!(setup.is_served(&event));
    eventually(Duration::from_secs(30), || setup.refs(&keys[1], "demo").contains(&(nostr_ref(&event), commit.clone())));
    setup.assert_healthy();
}

#[rstest]
fn a_commit_without_a_repository_that_takes_it_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (mut setup, author, commit) = setup(engine);
    let coordinate = setup.owner.coordinate("demo");
    let issue = author.event(now(), 1621, &[&["a", &coordinate]], "an issue");
    assert!(setup.relay.publish(&issue).0);
    let id = issue.id.to_hex();
    let nowhere = author.event(now(), 1618, &[&["e", &id], &["c", &commit]], "");
    let (taken, reason) = setup.relay.publish(&nowhere);
    assert!(!taken && reason.starts_with("restricted: no repository here can store the commit"), "{reason}");
    setup.server.cli_ok(&["repo", "archive", &format!("{}/demo", npub(&setup.owner))]);
    let (taken, reason) = setup.relay.publish(&proposal(&setup, &author, &commit, 1618, &[]));
    assert!(!taken && reason.starts_with("restricted: the repository is archived"), "{reason}");
}

#[rstest]
fn what_its_author_wants_forgotten_takes_its_ref_along_and_repositories_stay(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (key, author) = (setup.owner.clone(), Key::new(9));
    let until = (now() + 3_600).to_string();
    let (announcement, _) = setup.served(&key, "demo", &[&["expiration", &until]]);
    let first = setup.first.clone();
    let event = proposal(&setup, &author, &first, 1618, &[&["expiration", &until]]);
    assert_eq!(setup.relay.publish(&event), (true, String::new()));
    let has_ref = |setup: &Setup| setup.refs(&key, "demo").iter().any(|(name, _)| *name == nostr_ref(&event));
    assert!(has_ref(&setup));
    // An hour later.
    query(&setup.server, "UPDATE nostr_events SET expires_at = expires_at - 3600");
    setup.server.cli_ok(&["jobs", "run", "relay:expire"]);
    eventually(Duration::from_secs(30), || !has_ref(&setup));
    assert!(!setup.is_served(&event) && !setup.is_served(&announcement));
    assert!(!setup.refs(&key, "demo").is_empty());
    let newer = setup.announcement(&key, now(), "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()), "the repository is there: it needs no purgatory");
    assert!(setup.is_served(&newer));
    setup.assert_healthy();
}
