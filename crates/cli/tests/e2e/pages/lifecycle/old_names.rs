//! Old names: they lead to the repository that bore them, tell strangers nothing, and can be given up.

use super::super::browser::{Browser, form_request, location};
use super::{Setup, assert_as_absent, force, settle};
use crate::support::query;
use abide_testkit::Engine;
use rstest::rstest;

/// Where an answer leads, and how.
#[track_caller]
fn led(response: &abide_testkit::http::Response) -> (u16, &str, &str) {
    let header = |name| response.header(name).unwrap_or_default();
    (response.status, header("location"), header("cache-control"))
}

#[rstest]
fn an_old_name_leads_on_with_path_and_query_and_forms_are_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (ann, stranger) = (setup.browser("ann"), Browser::new(&setup.server));
    let form = ann.page("/ann/tool/settings/archive");
    settle(&ann, "ann/tool", "rename", &[("name", "kit")]);
    for tail in ["", "?done=x", "/blob/main/README.md?plain=1", "/commits/main?page=2&q=a%2Fb", "/tree/main/a%20b"] {
        for method in ["GET", "HEAD"] {
            let moved = stranger.send(&stranger.request(method, &format!("/ann/tool{tail}")));
            assert_eq!(led(&moved), (301, format!("/ann/kit{tail}").as_str(), "no-cache"), "{method} {tail}");
        }
    }
    // A form that was open while somebody renamed the repository.
    let sent = ann.submit_in(&form, "/ann/tool/settings/archive", "", &[]);
    assert_eq!(led(&sent), (307, "/ann/kit/settings/archive", "no-cache"));
    let token = ann.token("/settings/profile");
    let sent = form_request(ann.request("POST", "/ann/tool/settings/archive?a=b"), &[("_token", &token)]);
    assert_eq!(led(&ann.send(&sent)), (307, "/ann/kit/settings/archive?a=b", "no-cache"));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM repos WHERE archived_at IS NOT NULL"), "0");
    // The permanent URL redirects to the current one.
    let permalink = format!("/r/{}", setup.id("kit"));
    assert_eq!(led(&stranger.get(&permalink)), (301, "/ann/kit", "no-cache"));
    settle(&ann, "ann/kit", "transfer", &[("new_owner", "bob"), ("confirmation", "ann/kit")]);
    let offer = format!("/transfers/{}", query(&setup.server, "SELECT max(id) FROM repo_transfers"));
    setup.browser("bob").submit(&offer, &format!("{offer}/accept"), &[]);
    for old in ["/ann/tool", "/ann/kit", &permalink] {
        assert_eq!(led(&stranger.get(old)), (301, "/bob/kit", "no-cache"), "{old}");
    }
}

#[rstest]
fn an_old_name_never_reveals_a_private_or_deleted_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (ann, bob, stranger) = (setup.browser("ann"), setup.browser("bob"), Browser::new(&setup.server));
    settle(&ann, "ann/tool", "rename", &[("name", "kit")]);
    settle(&ann, "ann/kit", "visibility", &[]);
    assert_eq!(ann.get("/ann/tool").status, 301, "the owner is led on");
    for browser in [&bob, &stranger] {
        assert_as_absent(browser, "tool", "none");
        assert_as_absent(browser, "kit", "nix");
        assert_eq!(force(browser, "/ann/tool/settings/archive", &[]).status, 404);
    }
    settle(&ann, "ann/kit", "visibility", &[]);
    assert_eq!(stranger.get("/ann/tool").status, 301);
    settle(&ann, "ann/kit", "delete", &[("confirmation", "ann/kit")]);
    for browser in [&bob, &stranger] {
        assert_as_absent(browser, "tool", "none");
        assert_as_absent(browser, "kit", "nix");
    }
    assert_eq!(ann.get("/ann/kit").status, 410);
}

#[rstest]
fn a_name_that_is_used_again_belongs_to_its_new_bearer_and_that_is_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const WARNING: &str = "This name redirected to another repository until now.";
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    settle(&ann, "ann/tool", "rename", &[("name", "kit")]);
    let made = ann.submit("/new", "/new", &[("name", "tool"), ("visibility", "public")]);
    assert_eq!(location(&made), "/ann/tool?done=replaced");
    assert!(ann.page("/ann/tool?done=replaced").contains(WARNING));
    assert!(ann.page("/ann/kit/settings/old-names").contains("ann/tool"), "hidden by its new bearer, not gone");

    // The same by renaming onto it.
    settle(&ann, "ann/kit", "rename", &[("name", "set")]);
    let renamed = settle(&ann, "ann/tool", "rename", &[("name", "kit")]);
    assert_eq!(location(&renamed), "/ann/kit/settings?done=replaced");
    assert!(ann.page("/ann/kit/settings?done=replaced").contains(WARNING));
    assert!(ann.page("/ann/set").contains("README.md") && ann.page("/ann/kit").contains("This repository is empty"));
    // Going back to an old name of its own takes it from nobody.
    assert_eq!(location(&settle(&ann, "ann/kit", "rename", &[("name", "tool")])), "/ann/tool/settings?done=renamed");
}

#[rstest]
fn old_names_are_listed_with_their_last_use_and_released_for_good(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    setup.fill("other", false);
    let (ann, stranger) = (setup.browser("ann"), Browser::new(&setup.server));
    let page = "/ann/kit/settings/old-names";
    settle(&ann, "ann/tool", "rename", &[("name", "kit")]);
    settle(&ann, "ann/other", "rename", &[("name", "more")]);
    let html = ann.page(page);
    assert!(html.contains("ann/tool") && html.contains("Not used since then"), "{html}");
    assert!(html.contains("stop working. This cannot be undone."), "{html}");
    assert_eq!(stranger.get("/ann/tool").status, 301);
    assert!(ann.page(page).contains("Last used <time"));

    // Only an old name of this repository.
    let others = query(&setup.server, "SELECT id FROM repo_redirects WHERE old_name = 'other'");
    let release = format!("{page}/release");
    for id in [others.as_str(), "x", "0"] {
        assert_eq!(force(&ann, &release, &[("id", id)]).status, 404, "{id}");
    }
    // Names belong to its life, which goes on while it is archived.
    settle(&ann, "ann/kit", "archive", &[]);
    let released = ann.confirm(page, &release, &[]);
    assert_eq!(location(&released), "/ann/kit/settings/old-names?done=old-name-released");
    assert!(ann.page(page).contains("No old names"));
    assert_eq!(stranger.get("/ann/tool").status, 404);
    assert_eq!(stranger.get("/ann/other").status, 301, "the other one's stays");
    assert_eq!(setup.noted("repo_redirect_released"), "1");
}
