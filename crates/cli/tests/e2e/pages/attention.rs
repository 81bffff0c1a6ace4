//! Star, watch and follow buttons, and the pages that they fill.

use super::browser::{Browser, location};
use super::logged_in;
use crate::beside::Beside as _;
use crate::support::{builder, person, query, server};
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
fn a_star_is_given_and_taken_back_where_one_is(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    server.add_user("bob");
    let (browser, stranger) = (logged_in(&server, "bob"), Browser::new(&server));
    let (page, action) = ("/alice/tool", "/alice/tool/star");
    assert!(browser.page(page).contains("value=\"1\" aria-pressed=\"false\"><span class=\"i i-star\""));
    assert!(browser.page("/alice/tool/stargazers").contains("No stars yet"));

    let starred = browser.submit("/alice/tool/stargazers", action, &[("starred", "1")]);
    assert_eq!(location(&starred), "/alice/tool/stargazers", "back to the page whose button it was");
    let html = browser.page(page);
    assert!(html.contains("Unstar") && html.contains("Stargazers: 1"), "{html}");
    let html = stranger.page("/alice/tool/stargazers");
    assert!(html.contains("href=\"/bob\"") && html.contains("Starred "), "{html}");
    assert!(html.contains("/login?next=%2Falice%2Ftool%2Fstargazers"), "a stranger's button leads to the login");
    for list in ["/explore", "/alice", "/search?q=tool", "/bob?tab=stars", "/"] {
        let html = stranger.page(list);
        assert!(html.contains("Stargazers of alice/tool: 1\">1</a>"), "{list}: {html}");
    }
    let taken = browser.submit(page, action, &[("starred", "0"), ("next", "https://evil.example/")]);
    assert_eq!(location(&taken), "/");
    assert!(stranger.page(page).contains("Stargazers: 0"));
    assert_eq!(query(&server, "SELECT count(*) FROM stars"), "0");
}

/// The form on a page that stars or unstars a repository.
#[track_caller]
fn star_form(html: &str, slug: &str) -> String {
    form_to(html, &format!("/{slug}/star"))
}

#[track_caller]
fn form_to(html: &str, action: &str) -> String {
    let action = format!("action=\"{action}\"");
    let form = html.split("<form").find(|form| form.contains(&action));
    form.and_then(|form| form.split("</form>").next()).unwrap_or_else(|| panic!("no {action} in\n{html}")).to_owned()
}

#[rstest]
fn a_repository_is_starred_and_unstarred_in_every_list(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let id = alice.create(&server, "tool", false)["id"].clone();
    alice.create(&server, "secret", true);
    let own = bob.create(&server, "own", false)["id"].clone();
    let (owner, browser) = (logged_in(&server, "alice"), logged_in(&server, "bob"));
    for repo in ["tool", "secret"] {
        owner.submit(&format!("/alice/{repo}"), &format!("/alice/{repo}/star"), &[("starred", "1")]);
    }
    browser.submit("/alice/tool", "/alice/tool/star", &[("starred", "1")]);
    server.cli_ok(&["jobs", "run", "trending:count"]);
    browser.submit("/alice/tool", "/alice/tool/star", &[("starred", "0")]);
    // Each list begins with a repository that nobody watches.
    query(&server, "DELETE FROM watches");

    query(&server, "DELETE FROM watches");
    for (list, slug, id) in [
        ("/explore", "alice/tool", &id),
        ("/search?q=tool&sort=name", "alice/tool", &id),
        ("/trending?since=day", "alice/tool", &id),
        ("/alice", "alice/tool", &id),
        ("/alice?tab=stars", "alice/tool", &id),
        ("/?tab=repositories", "bob/own", &own),
        ("/", "bob/own", &own),
    ] {
        let action = format!("/{slug}/star");
        let html = browser.page(list);
        let form = star_form(&html, slug);
        assert!(form.contains("value=\"1\" aria-pressed=\"false\""), "{list}: {form}");
        assert!(form.contains(&format!("Star<span class=\"sr\"> {slug}</span>")), "{list}: {form}");
        let place = format!("repo-{id}");
        assert!(html.contains(&format!("id=\"{place}\"")), "{list}: one comes back to its place: {html}");
        assert!(!html.contains("alice/secret"), "{list}: {html}");

        let starred = browser.submit(list, &action, &[("starred", "1")]);
        assert_eq!(location(&starred), format!("{list}#{place}"));
        let form = star_form(&browser.page(list), slug);
        assert!(form.contains("value=\"0\" aria-pressed=\"true\""), "{list}: {form}");
        assert!(form.contains(&format!("Unstar<span class=\"sr\"> {slug}</span>")), "{list}: {form}");
        let taken = browser.submit(list, &action, &[("starred", "0")]);
        assert_eq!(location(&taken), format!("{list}#{place}"));
        assert!(star_form(&browser.page(list), slug).contains("aria-pressed=\"false\""), "{list}");

        let watch = format!("/{slug}/watch");
        let form = form_to(&browser.page(list), &watch);
        assert!(form.contains("value=\"all\" aria-pressed=\"false\"") && form.contains(">0<span"), "{list}: {form}");
        let chosen = browser.submit(list, &watch, &[("level", "all")]);
        assert_eq!(location(&chosen), format!("{list}#{place}"));
        let form = form_to(&browser.page(list), &watch);
        assert!(form.contains("value=\"participating\" aria-pressed=\"true\""), "{list}: {form}");
        assert!(form.contains(&format!("Watching<span class=\"sr\"> {slug}</span>")), "{list}: {form}");
        assert!(form.contains(">1<span class=\"sr\"> watchers"), "{list}: {form}");
        query(&server, "DELETE FROM watches");
    }

    // Others see neither the private one nor its star, nor can they tell that it is there.
    assert!(star_form(&owner.page("/alice?tab=stars"), "alice/secret").contains("aria-pressed=\"true\""));
    let token = browser.token("/explore");
    let refused = browser.post("/alice/secret/star", &[("_token", &token), ("starred", "1")]);
    assert_eq!(refused.status, 404, "{}", refused.text());

    let stranger = Browser::new(&server);
    for (list, login) in [
        ("/", "/login"),
        ("/explore", "/login?next=%2Fexplore"),
        ("/search?q=tool", "/login?next=%2Fsearch%3Fq%3Dtool"),
        ("/trending?since=day", "/login?next=%2Ftrending%3Fsince%3Dday"),
        ("/alice", "/login?next=%2Falice"),
        ("/alice?tab=stars", "/login?next=%2Falice%3Ftab%3Dstars"),
    ] {
        let html = stranger.page(list);
        let link = format!("<a class=\"btn small\" href=\"{login}\"><span class=\"i i-star\"");
        assert!(html.contains(&link) && html.contains("Star<span class=\"sr\"> alice/tool,"), "{list}: {html}");
        assert!(!html.contains("/star\"") && !html.contains("secret"), "{list}: {html}");
    }
}

#[rstest]
fn the_watch_menu_says_what_each_level_means_and_remembers_the_choice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    server.add_user("bob");
    let (bob, owner) = (logged_in(&server, "bob"), logged_in(&server, "alice"));
    let (page, action) = ("/alice/tool", "/alice/tool/watch");
    let chosen = |level: &str| format!("value=\"{level}\" aria-current=\"true\"");
    assert!(bob.page(page).contains(&chosen("participating")), "nobody has to choose");
    for (level, label) in [("all", "Watching"), ("ignore", "Ignoring"), ("participating", "Watch")] {
        assert_eq!(location(&bob.submit(page, action, &[("level", level)])), page);
        let html = bob.page(page);
        assert!(html.contains(&chosen(level)) && html.contains(&format!("</span>{label}<span")), "{level}: {html}");
        let bobs = "SELECT level FROM watches WHERE user_id = (SELECT id FROM users WHERE name = 'bob')";
        assert_eq!(query(&server, bobs), level);
    }
    assert_eq!(bob.submit(page, action, &[("level", "some")]).status, 400);
    assert!(bob.page(page).contains("2<span class=\"sr\"> watchers"), "everyone sees how many");
    assert_eq!(bob.get("/alice/tool/watchers").status, 403, "and not who");
    assert!(owner.page("/alice/tool/watchers").contains("href=\"/bob\""));
}

#[rstest]
fn stars_are_found_on_a_profile_and_hidden_with_their_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let alice = person(&server, "alice");
    for (name, private) in [("zebra", false), ("ant", false), ("secret", true)] {
        alice.create(&server, name, private);
    }
    let browser = logged_in(&server, "alice");
    for name in ["zebra", "ant", "secret"] {
        browser.submit(&format!("/alice/{name}"), &format!("/alice/{name}/star"), &[("starred", "1")]);
    }
    let stranger = Browser::new(&server);
    let order = |html: &str| html.find("alice/zebra\">").zip(html.find("alice/ant\">")).map(|(z, a)| z < a);
    let html = stranger.page("/alice?tab=stars");
    assert!(!html.contains("secret") && order(&html) == Some(false), "the latest first: {html}");
    assert!(html.contains("Stars<span class=\"count\">2"), "{html}");
    assert!(browser.page("/alice?tab=stars").contains("alice/secret\">"));
    assert_eq!(order(&stranger.page("/alice?tab=stars&sort=oldest")), Some(true));
    assert_eq!(order(&stranger.page("/alice?tab=stars&sort=name")), Some(false));
    let found = stranger.page("/alice?tab=stars&q=ZEB");
    assert!(found.contains("alice/zebra\">") && !found.contains("alice/ant\">"), "{found}");
    assert!(stranger.page("/alice?tab=stars&q=nothing").contains("No matches"));
    for odd in ["before=x", "before=1.x", "before=9223372036854775808.1", "sort=x", "page=999999", "before=0.0"] {
        stranger.page(&format!("/alice?tab=stars&{odd}"));
    }
}

#[rstest]
fn long_lists_lead_on_to_older_entries(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    let fans: Vec<_> = (0..60).map(|number| format!("('fan{number}', 0, 0)")).collect();
    query(&server, &format!("INSERT INTO users (name, created_at, updated_at) VALUES {}", fans.join(", ")));
    query(
        &server,
        "INSERT INTO stars (user_id, repo_id, starred_at) SELECT u.id, r.id, 1 FROM users u, repos r \
         WHERE u.name LIKE 'fan%' RETURNING user_id",
    );
    let stranger = Browser::new(&server);
    let first = stranger.page("/alice/tool/stargazers");
    assert!(first.contains("fan59") && !first.contains("fan9<"), "{first}");
    let next = first.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("older ones");
    let second = stranger.page(next);
    assert_eq!(second.matches("class=\"avatar\"").count(), 10, "{second}");
    assert!(second.contains("fan9<") && second.contains("rel=\"prev\" href=\"/alice/tool/stargazers\""), "{second}");
    assert!(!second.contains("rel=\"next\""), "{second}");
}

#[rstest]
fn people_are_followed_on_their_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_ATTENTION__FOLLOW_LIMIT_PER_HOUR", "2").start();
    server.add_user("alice");
    server.add_user("bob");
    let bob = logged_in(&server, "bob");
    let stranger = Browser::new(&server);
    assert!(stranger.page("/alice").contains("/login?next=%2Falice\">Follow"));
    assert!(!bob.page("/bob").contains("/bob/followers\"><input"), "nobody follows themselves");
    let followed = bob.submit("/alice", "/alice/followers", &[("follow", "1")]);
    assert_eq!(location(&followed), "/alice");
    let html = bob.page("/alice");
    assert!(html.contains(">Unfollow<") && html.contains("<strong>1</strong> followers"), "{html}");
    assert!(stranger.page("/alice/followers").contains("href=\"/bob\""));
    assert!(stranger.page("/bob/following").contains("href=\"/alice\""));
    bob.submit("/alice", "/alice/followers", &[("follow", "0")]);
    assert!(bob.page("/alice/followers").contains("No one yet"));
    let refused = bob.submit("/alice", "/alice/followers", &[("follow", "1")]);
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
}
