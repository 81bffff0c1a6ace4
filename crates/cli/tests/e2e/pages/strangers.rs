//! Visitors who are not logged in: what they may do once they are is offered, leads to the log-in, and the log-in back.

use super::browser::{Browser, location};
use super::{logged_in, open_server};
use crate::beside::Beside as _;
use crate::support::{person, server};
use abide_testkit::{Engine, PASSWORD};
use rstest::rstest;

#[rstest]
fn a_stranger_who_wants_to_open_an_issue_logs_in_and_comes_back_to_the_form(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let ann = person(&server, "ann");
    ann.create(&server, "tool", false);
    ann.create(&server, "secret", true);
    let dir = ann.git.init_work_tree();
    ann.git.commit_file(&dir, "a", "a", "One");
    ann.git.ok(&dir, &["push", "--quiet", &server.http_url("ann", "tool"), "main"]);
    server.add_user("bob");

    let stranger = Browser::new(&server);
    let new = "/ann/tool/issues/new?title=It%20crashes&body=a%26b";
    assert!(stranger.page("/ann/tool/issues").contains("href=\"/ann/tool/issues/new\""));
    let asked = stranger.get(new);
    let login = location(&asked).to_owned();
    assert_eq!(login, "/login?next=%2Fann%2Ftool%2Fissues%2Fnew%3Ftitle%3DIt%2520crashes%26body%3Da%2526b");
    let entered = stranger.submit(&login, "/login", &[("login", "bob"), ("password", PASSWORD)]);
    assert_eq!(location(&entered), new);
    let form = stranger.page(new);
    assert!(form.contains("value=\"It crashes\"") && form.contains(">a&#38;b</textarea>"), "{form}");

    // So for forks, and for all else that only needs someone to be logged in.
    let stranger = Browser::new(&server);
    assert!(stranger.page("/ann/tool").contains("href=\"/ann/tool/fork\""));
    for path in ["/ann/tool/fork", "/ann/tool/settings", "/ann/tool/watchers", "/ann/tool/labels/remove?label=bug"] {
        assert!(location(&stranger.get(path)).starts_with("/login?next=%2Fann%2Ftool%2F"), "{path}");
    }
    // A private repository leads nowhere, as one that never was.
    let absent = stranger.get("/ann/never/issues/new").status;
    assert_eq!((stranger.get("/ann/secret/issues/new").status, absent), (404, 404));
    // Archived, nothing can be opened by anyone.
    let (owner, archive) = (logged_in(&server, "ann"), "/ann/tool/settings/archive");
    assert_eq!(owner.submit(archive, archive, &[]).status, 303);
    assert!(!stranger.page("/ann/tool/issues").contains("/issues/new"));
    assert_eq!(stranger.get("/ann/tool/issues/new").status, 403);
}

#[rstest]
fn signing_up_leads_back_too_and_never_to_another_site(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = open_server(engine);
    let ann = person(&server, "ann");
    ann.create(&server, "tool", false);
    let browser = Browser::new(&server);
    let login = browser.page("/login?next=%2Fann%2Ftool%2Fissues%2Fnew");
    let link = "/signup?next=%2Fann%2Ftool%2Fissues%2Fnew";
    assert!(login.contains(&format!("href=\"{link}\"")), "{login}");
    let fields = |name: &'static str, email: &'static str| [("name", name), ("email", email), ("password", PASSWORD)];
    let wrong = browser.submit(link, "/signup", &fields("-", "eve@example.net"));
    assert!(wrong.status == 400 && wrong.text().contains("name=\"next\" value=\"/ann/tool/issues/new\""));
    let made = browser.submit(link, "/signup", &fields("eve", "eve@example.net"));
    assert_eq!(location(&made), "/ann/tool/issues/new");
    let other = Browser::new(&server);
    let made = other.submit("/signup?next=https://evil.example/", "/signup", &fields("mal", "mal@example.net"));
    assert_eq!(location(&made), "/?done=welcome");
}

#[rstest]
fn a_filter_that_does_not_exist_is_named(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let ann = person(&server, "ann");
    ann.create(&server, "tool", false);
    let stranger = Browser::new(&server);
    let issues = stranger.get("/ann/tool/issues?q=is:open+foo:bar");
    assert_eq!(issues.status, 422);
    for text in ["`foo:` is not a filter; known filters are `is:`, `state:`", "value=\"is:open foo:bar\""] {
        assert!(issues.text().contains(text), "{text}\n{}", issues.text());
    }
    let found = stranger.get("/search?q=tool+language:rust");
    assert!(found.status == 422 && found.text().contains("value=\"tool language:rust\""), "{}", found.text());
    assert!(found.text().contains("language:") && found.text().contains("topic:"), "{}", found.text());
    assert!(!found.text().contains("No repositories found"), "{}", found.text());
    for (path, name) in [("/search/repositories?q=in:name+x", "in:"), ("/search/issues?q=archived:false", "archived:")]
    {
        let answer = abide_testkit::http::get(server.http_addr(), &format!("/api/v3{path}"), None);
        assert_eq!(answer.status, 422, "{path}");
        let reported = answer.text();
        assert!(reported.contains(&format!("`{name}` is not a filter; known filters are ")), "{reported}");
    }
}
