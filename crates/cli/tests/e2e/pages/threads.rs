//! Issues, patches and pull requests that came by nostr.

use super::browser::Browser;
use crate::signed::{governed, keep, npub};
use crate::support::{query, server};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Server};
use rstest::rstest;

const DIFF: &str = "From abc Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nSubject: [PATCH] Mend it\n\nIt *was* broken.\n\
    ---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-<old>\n+new\n";

struct World {
    server: Server,
    owner: Key,
    reporter: Key,
    home: String,
    at: u64,
}

fn world(engine: Engine) -> World {
    let (server, owner, reporter) = (server(engine), Key::new(1), Key::new(2));
    let url = server.http_url("maker", "tool");
    governed(&server, &owner, "tool", |maker| {
        let dir = maker.git.init_work_tree();
        maker.git.commit_file(&dir, "a", "old\n", "One");
        maker.git.ok(&dir, &["push", "--quiet", &url, "main"]);
    });
    let home = format!("/{}/tool", npub(&owner));
    World { server, owner, reporter, home, at: Key::now() - 90 }
}

impl World {
    /// An event about the repository, so many seconds after the others.
    fn about(&self, key: &Key, later: u64, kind: u16, tags: &[&[&str]], content: &str) -> Event {
        let coordinate = self.owner.coordinate("tool");
        let a = ["a", coordinate.as_str()];
        let tags: Vec<&[&str]> = std::iter::once(&a[..]).chain(tags.iter().copied()).collect();
        key.event(self.at + later, kind, &tags, content)
    }

    fn status(&self, key: &Key, later: u64, kind: u16, root: &Event) -> Event {
        key.event(self.at + later, kind, &[&["e", &root.id.to_hex(), "", "root"]], "")
    }

    #[track_caller]
    fn page(&self, tail: &str) -> String {
        Browser::new(&self.server).page(&format!("{}{tail}", self.home))
    }
}

#[rstest]
fn an_issue_by_nostr_is_listed_with_its_status_and_has_a_page(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine);
    let body = "It **broke** <script>alert(1)</script>";
    let issue = world.about(&world.reporter, 0, 1621, &[&["subject", "Bug one"], &["t", "urgent"]], body);
    let id = issue.id.to_hex();
    let comment = |key: &Key, later, text: &str| {
        key.event(world.at + later, 1111, &[&["E", &id], &["e", &id], &["K", "1621"]], text)
    };
    let elsewhere = world.reporter.event(world.at, 1621, &[&["a", &world.owner.coordinate("other")]], "not here");
    let stranger = Key::new(9);
    keep(
        &world.server,
        &[
            issue.clone(),
            elsewhere.clone(),
            comment(&world.owner, 2, "I _see_"),
            comment(&stranger, 1, "Me too"),
            world.status(&stranger, 9, 1632, &issue),
        ],
    );
    let list = world.page("/issues");
    assert!(list.contains("Bug one") && list.contains("badge ok\">Open"), "a stranger closes nothing: {list}");
    assert!(!list.contains("not here"), "{list}");

    let page = world.page(&format!("/nostr/{id}"));
    assert!(page.contains("<strong>broke</strong>") && !page.contains("<script>alert"), "{page}");
    let (first, second) = (page.find("Me too").unwrap(), page.find("<em>see</em>").unwrap());
    assert!(first < second, "in order");
    assert!(page.contains("urgent") && page.contains(&npub(&world.reporter)[..10]), "{page}");

    keep(&world.server, &[world.status(&world.owner, 10, 1631, &issue)]);
    assert!(world.page("/issues").contains("badge warn\">Resolved"));
    assert!(world.page(&format!("/nostr/{id}")).contains("changed the status to"));
    keep(&world.server, &[world.status(&world.reporter, 11, 1630, &issue)]);
    assert!(world.page("/issues").contains("badge ok\">Open"), "the author opens it again");

    let browser = Browser::new(&world.server);
    let note = abide_nostr::nip19::EventPointer { id: issue.id, author: None, kind: None, relays: Vec::new() };
    let named = format!("{}/nostr/{}", world.home, note.encode().unwrap());
    assert!(browser.page(&named).contains("Bug one"));
    for other in [elsewhere.id.to_hex(), "0".repeat(64), "x".into()] {
        assert_eq!(browser.get(&format!("{}/nostr/{other}", world.home)).status, 404);
    }
    query(&world.server, "UPDATE nostr_events SET hidden = TRUE WHERE kind = 1621");
    assert_eq!(browser.get(&format!("{}/nostr/{id}", world.home)).status, 404, "what is not served is not shown");
    assert!(!world.page("/issues").contains("Bug one"));
}

#[rstest]
fn patches_and_pull_requests_are_listed_and_shown(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine);
    let main = query(&world.server, "SELECT max(id) FROM repos");
    let dir = world.server.data_dir().join("repos");
    let bare = format!("{}/{:02x}/{main}.git", dir.display(), main.parse::<i64>().unwrap() & 0xff);
    let git = abide_testkit::GitClient::new();
    let base = git.ok(std::path::Path::new(&bare), &["rev-parse", "refs/heads/main"]).trim().to_owned();
    let patch = world.about(&world.reporter, 0, 1617, &[], DIFF);
    let tags: &[&[&str]] = &[&["subject", "MyPR"], &["c", &base], &["merge-base", &base]];
    let pull = world.about(&world.reporter, 1, 1618, tags, "Please *pull*");
    let (missing, id) = ("ab".repeat(20), pull.id.to_hex());
    keep(&world.server, &[patch.clone(), pull.clone(), world.status(&world.owner, 5, 1632, &patch)]);

    let list = world.page("/proposals");
    let (first, second) = (list.find("MyPR").unwrap(), list.find("Mend it").unwrap());
    assert!(first < second && list.contains("badge warn\">Closed") && list.contains("badge ok\">Open"), "{list}");

    let shown = world.page(&format!("/nostr/{}", patch.id.to_hex()));
    assert!(shown.contains("It <em>was</em> broken.") && shown.contains("&lt;old&gt;"), "{shown}");
    let before = world.page(&format!("/nostr/{id}"));
    assert!(
        before.contains("It has not been pushed to this server yet") && before.contains("<em>pull</em>"),
        "{before}"
    );
    git.ok(std::path::Path::new(&bare), &["update-ref", &format!("refs/nostr/{id}"), &base]);
    query(&world.server, "UPDATE repos SET refs_generation = refs_generation + 2");
    let arrived = world.page(&format!("/nostr/{id}"));
    let compare = format!("{}/compare/{base}...{base}", world.home);
    assert!(arrived.contains(&format!("href=\"{compare}\"")), "{arrived}");
    assert_eq!(Browser::new(&world.server).get(&compare).status, 200);

    let update: &[&[&str]] = &[&["E", &id], &["c", &missing]];
    keep(&world.server, &[world.about(&world.reporter, 7, 1619, update, "")]);
    let updated = world.page(&format!("/nostr/{id}"));
    assert!(updated.contains("updated the pull request to") && updated.contains(&missing), "{updated}");
    keep(&world.server, &[world.about(&Key::new(9), 8, 1619, &[&["E", &id], &["c", &"cd".repeat(20)]], "")]);
    assert!(world.page(&format!("/nostr/{id}")).contains(&missing), "a stranger updates nothing");
}

#[rstest]
fn lists_go_on_page_by_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine);
    let patch = |n: u64| world.about(&world.reporter, n, 1617, &[&["subject", &format!("Patch number {n}.")]], "x");
    let issue = |n: u64| world.about(&world.reporter, n, 1621, &[&["subject", &format!("Issue number {n}.")]], "x");
    keep(&world.server, &(0..30).map(patch).chain((0..30).map(issue)).collect::<Vec<_>>());
    let (first, second) = (world.page("/proposals"), world.page("/proposals?page=2"));
    assert!(first.contains("number 29.") && !first.contains("number 4.") && first.contains("rel=\"next\""), "{first}");
    assert!(second.contains("number 4.") && !second.contains("number 5.") && !second.contains("rel=\"next\""));
    let issues = world.page("/issues");
    assert!(issues.contains("Issue number 29.") && issues.contains("/issues?nostr=2"), "{issues}");
    assert!(world.page("/issues?nostr=2").contains("Issue number 4."));
    assert!(!world.page("/issues?q=is:closed%20label:x").contains("Issue number"));
}

#[rstest]
fn strangers_bury_neither_a_status_nor_a_commit(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine);
    let (stranger, newest) = (Key::new(9), "ab".repeat(20));
    let pull = world.about(&world.reporter, 0, 1618, &[&["subject", "MyPR"], &["c", &"cd".repeat(20)]], "x");
    let other = world.about(&stranger, 0, 1617, &[&["subject", "Noise"]], "x");
    let id = pull.id.to_hex();
    keep(
        &world.server,
        &[
            pull.clone(),
            other.clone(),
            world.about(&world.reporter, 1, 1619, &[&["E", &id], &["c", &newest]], ""),
            world.status(&world.owner, 1, 1632, &pull),
        ],
    );
    let noise = (0..1_001_u32).flat_map(|n| {
        let said =
            |kind, tags: &[&[&str]]| stranger.event(world.at + 10 + u64::from(n % 60), kind, tags, &n.to_string());
        let named = ["E", id.as_str()];
        [
            said(1630, &[&["e", &id, "", "root"]]),
            said(1111, &[&named, &["e", &id], &["K", "1618"]]),
            said(1619, &[&named, &["c", &format!("{n:040x}")]]),
            // About the stranger's own patch, where the word counts.
            said(1630, &[&["e", &other.id.to_hex(), "", "root"]]),
        ]
    });
    keep(&world.server, &noise.collect::<Vec<_>>());
    let page = world.page(&format!("/nostr/{id}"));
    assert!(page.contains("badge warn\">Closed"), "{}", &page[..page.len().min(4_000)]);
    assert!(page.contains(&format!("Head commit <span class=\"oid\">{}", &newest[..7])), "the newest of its author");
    assert!(page.contains("Older entries are not shown"));
    let list = world.page("/proposals");
    assert!(list.contains("MyPR") && list.contains("badge warn\">Closed"), "{list}");
}

#[rstest]
fn of_large_comments_the_newest_are_read_and_shown(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine);
    let issue = world.about(&world.reporter, 0, 1621, &[&["subject", "Bug one"]], "It broke");
    let id = issue.id.to_hex();
    let comment = |n: u64| {
        let text = format!("Word {n}.\n\n{}", "x".repeat(254 << 10));
        Key::new(9).event(world.at + n, 1111, &[&["E", &id], &["e", &id], &["K", "1621"]], &text)
    };
    keep(&world.server, std::slice::from_ref(&issue));
    keep(&world.server, &(10..20).map(comment).collect::<Vec<_>>());
    // A read of one of the others is logged.
    query(
        &world.server,
        &format!("UPDATE nostr_events SET json = json || 'x' WHERE kind = 1111 AND created_at < {}", world.at + 16),
    );
    let page = world.page(&format!("/nostr/{id}"));
    let shown: Vec<u64> = (10..20).filter(|n| page.contains(&format!("Word {n}."))).collect();
    assert_eq!(shown, [16, 17, 18, 19], "a mebibyte");
    assert!(page.contains("Older entries are not shown."));
    assert!(!world.server.log().contains("cannot be read"), "{}", world.server.log());
}

#[rstest]
fn strangers_that_announce_the_same_identifier_are_not_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine);
    let second = Key::new(3);
    let lists = |key: &Key, whom: &Key| {
        let listed = whom.public().to_hex();
        let (clone, relays) = (["clone", "http://localhost/x.git"], ["relays", "ws://localhost"]);
        key.event(world.at, 30_617, &[&["d", "tool"], &clone, &relays, &["maintainers", &listed]], "")
    };
    keep(&world.server, &[lists(&world.owner, &second), lists(&second, &Key::new(4))]);
    keep(&world.server, &(20..40).map(|n| lists(&Key::new(n), &world.owner)).collect::<Vec<_>>());
    for stranger in 20..40 {
        let key = crate::signed::blob(&world.server, Key::new(stranger).public().as_bytes());
        query(&world.server, &format!("UPDATE nostr_events SET json = 'unreadable' WHERE pubkey = {key}"));
    }
    let page = world.page("");
    for maintainer in [&world.owner, &second, &Key::new(4)] {
        assert!(page.contains(&npub(maintainer)), "{page}");
    }
    assert!(!world.server.log().contains("cannot be read"), "{}", world.server.log());
}
