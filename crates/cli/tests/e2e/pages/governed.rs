//! Pages of a repository that a nostr key governs, whatever the key calls it.

use super::browser::{Browser, location};
use super::keys::enter;
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
        assert!(html.contains("Governed by a nostr key"), "{identifier}: {html}");
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
        let told = browser.page("/explore/activity");
        assert!(told.contains(&format!("href=\"{home}\"")), "{identifier}: {told}");
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
        "Pushes need a state that is signed by one of its maintainers".to_owned(),
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
    assert!(html.contains("the key that announced this repository owns it"), "{html}");
    assert!(html.contains("what relays serve is public") && !html.contains("settings/visibility"), "{html}");
    for verb in ["transfer", "visibility"] {
        let refused = browser.get(&format!("{home}/settings/{verb}"));
        assert!(refused.status == 422 && refused.text().contains("nostr key rules"), "{verb}: {}", refused.text());
    }
    let people = browser.page(&format!("{home}/settings/collaborators"));
    assert!(people.contains("nobody can push by role"), "{people}");
}
