//! Pages of a repository that a nostr key governs, whatever the key calls it.

use super::browser::{Browser, location};
use super::keys::enter;
use crate::grasp::setup::Setup;
use crate::signed::{governed, npub, quoted};
use crate::support::{Person, query, server};
use abide_testkit::{Engine, Key, Server};
use rstest::rstest;

fn push(server: &Server) -> impl FnOnce(&Person) {
    let url = server.http_url("maker", "tool");
    move |maker| {
        let dir = maker.git.init_work_tree();
        maker.git.commit_file(&dir, "README.md", "# Tool\n\n[guide](docs/guide.md)\n", "Say what it is");
        maker.git.commit_file(&dir, "docs/guide.md", "# Guide\n", "Add a guide");
        maker.git.ok(&dir, &["push", "--quiet", &url, "main"]);
    }
}

/// Every link on a page that leads below an address.
fn links(html: &str, below: &str) -> Vec<String> {
    let hrefs = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut found: Vec<String> = hrefs
        .map(|href| href.split('#').next().unwrap_or_default().replace("&#38;", "&"))
        .filter(|href| href.starts_with(below))
        .collect();
    found.sort();
    found.dedup();
    found
}

#[rstest]
fn every_link_of_a_governed_repository_works_whatever_it_is_called(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let key = Key::new(1);
    let id = governed(&server, &key, "tool", push(&server));
    let (browser, npub) = (Browser::new(&server), npub(&key));
    let names =
        ["tool", "a b", "x/../y", "..", ".", "followers", "🦀", "r%2Fs", "quo'te\"<b>", "ends.git", "?q=#x", "Tool"];
    for identifier in names {
        query(&server, &format!("UPDATE nostr_repos SET identifier = '{}'", quoted(identifier)));
        let home = location(&browser.get(&format!("/r/{id}"))).to_owned();
        assert!(home.starts_with(&format!("/{npub}/")), "{home}");
        let html = browser.page(&home);
        assert!(html.contains("Owned by a nostr key"), "{identifier}: {html}");
        assert!(!html.contains("<b>\""), "{identifier}");
        let all = links(&html, &format!("{home}/"));
        assert!(all.len() > 8, "{identifier}: {all:?}");
        for link in all.iter().filter(|link| !link.ends_with("/fork")) {
            let answer = browser.get(link);
            assert!([200, 303].contains(&answer.status), "{identifier}: {link}: {}", answer.status);
        }
        browser.page(&format!("{home}/blob/main/docs/guide.md"));
        assert!(browser.page(&format!("/{npub}")).contains(&format!("href=\"{home}\"")), "{identifier}");
        assert!(browser.page("/explore").contains(&format!("href=\"{home}\"")), "{identifier}");
        let reported = browser.page("/explore/activity");
        assert!(reported.contains(&format!("href=\"{home}\"")), "{identifier}: {reported}");
        assert_eq!(browser.get("/explore/atom").status, 200);
    }
}

#[rstest]
fn a_governed_repository_tells_who_rules_it_and_where_it_is_cloned_from(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (key, other) = (Key::new(1), Key::new(2));
    let id = governed(&server, &key, "my tool", push(&server));
    let listed: &[&[&str]] = &[&["d", "my tool"], &["maintainers", &other.public().to_hex()]];
    crate::signed::keep(&server, &[key.event(Key::now() - 50, 30_617, listed, "")]);
    let owner = npub(&key);
    let html = Browser::new(&server).page(&format!("/{owner}/my%20tool"));
    let relay = server.url().replace("http://", "ws%3A%2F%2F").replace(':', "%3A").replace('.', "%2E");
    for expected in [
        format!("value=\"{}/{owner}/my%20tool.git\"", server.url()),
        format!("value=\"nostr://{owner}/{relay}/my%20tool\""),
        format!("value=\"{}/r/{id}.git\"", server.url()),
        format!("title=\"{}\"", npub(&other)),
        "Only maintainers can push, by signing with their nostr key.".to_owned(),
    ] {
        assert!(html.contains(&expected), "{expected}: {html}");
    }
    assert!(!html.contains("ssh://"), "{html}");
}

#[rstest]
fn settings_of_a_governed_repository_say_what_is_not_possible(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let key = Key::new(1);
    governed(&server, &key, "tool", push(&server));
    let browser = Browser::new(&server);
    assert_eq!(enter(&server, &browser, &key, "/").status, 303, "the key's holder claims the account");
    let home = format!("/{}/tool", npub(&key));
    let html = browser.page(&format!("{home}/settings"));
    assert!(html.contains("Not available: this repository belongs to a nostr key."), "{html}");
    assert!(html.contains("nostr repositories are public") && !html.contains("settings/visibility"), "{html}");
    for verb in ["transfer", "visibility"] {
        let refused = browser.get(&format!("{home}/settings/{verb}"));
        assert!(
            refused.status == 422 && refused.text().contains("belongs to a nostr key"),
            "{verb}: {}",
            refused.text()
        );
    }
    let people = browser.page(&format!("{home}/settings/collaborators"));
    assert!(people.contains("Only maintainers can push"), "{people}");
}

#[rstest]
fn what_its_key_deleted_is_restored_by_a_newer_announcement_alone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, said) = setup.served(&key, "demo", &[]);
    let request = key.event(Key::now(), 5, &[&["a", &key.coordinate("demo")]], "");
    assert_eq!(setup.relay.publish(&request), (true, String::new()));
    let browser = Browser::new(&setup.server);
    assert_eq!(enter(&setup.server, &browser, &key, "/").status, 303);
    for name in ["", "other"] {
        let refused = browser.submit("/settings/repositories", "/settings/repositories/restore/1", &[("name", name)]);
        let html = refused.text();
        assert!(refused.status == 409 && html.contains("publish a new announcement"), "{}: {html}", refused.status);
    }
    let by_hand = setup.server.cli(&["repo", "restore", "1"]);
    assert!(!by_hand.status.success() && String::from_utf8_lossy(&by_hand.stderr).contains("its nostr key deleted it"));
    drop(browser);
    assert!(!setup.is_served(&announcement) && !setup.is_served(&said));
    let newer = setup.announcement(&key, Key::now() + 1, "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()));
    assert!(setup.is_served(&newer) && setup.is_served(&said));
    assert_eq!(Browser::new(&setup.server).get(&format!("/{}/demo", npub(&key))).status, 200);

    // Deleted by hand, it comes back by hand: the request is older than the announcement that brought it back.
    setup.server.cli_ok(&["repo", "delete", "1"]);
    setup.server.cli_ok(&["repo", "restore", "1"]);
    assert!(setup.is_served(&newer));
}
