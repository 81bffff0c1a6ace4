//! The danger zone: each operation tells its consequence first, and refuses what makes no sense.

use super::super::browser::{Browser, location};
use super::{Setup, force, settle};
use crate::beside::Beside as _;
use crate::support::query;
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
fn every_operation_stands_in_the_danger_zone_with_its_consequence(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    let html = ann.page("/ann/tool/settings");
    for (verb, consequence) in [
        ("rename", "The old URL redirects here."),
        ("transfer", "Old links redirect"),
        ("archive", "Makes git and issues read-only"),
        ("visibility", "Existing clones are not affected."),
        ("delete", "the owner can restore it until <time"),
    ] {
        assert!(html.contains(&format!("href=\"/ann/tool/settings/{verb}\"")), "{verb} in {html}");
        assert!(html.contains(consequence), "{verb}: {consequence}");
    }
    for (verb, consequence) in [
        ("rename", "The old URL ann/tool redirects here"),
        ("rename", "can be renamed 5 times per 30 days"),
        ("transfer", "Your access ends"),
        ("transfer", "The offer expires after 7 days"),
        ("transfer", "ann/tool redirects to it"),
        ("archive", "read-only"),
        ("archive", "You can unarchive it at any time"),
        ("visibility", "Existing clones and forks are not affected."),
        ("delete", "Its name becomes available"),
    ] {
        let html = ann.page(&format!("/ann/tool/settings/{verb}"));
        assert!(html.contains(consequence), "{verb}: {consequence} in {html}");
    }
}

#[rstest]
fn a_rename_that_is_refused_keeps_what_was_typed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.ann.create(&setup.server, "other", false);
    let ann = setup.browser("ann");
    for (typed, status) in
        [("bad name", 400), ("..", 400), ("x.git", 400), ("settings", 400), ("tool", 400), ("other", 409)]
    {
        let refused = settle(&ann, "ann/tool", "rename", &[("name", typed)]);
        let html = refused.text();
        assert_eq!(refused.status, status, "{typed}: {html}");
        assert!(html.contains("id=\"name-error\"") && html.contains(&format!("value=\"{typed}\"")), "{typed}: {html}");
    }
    assert_eq!(setup.noted("repo_renamed"), "0");
    let renamed = settle(&ann, "ann/tool", "rename", &[("name", " Gadget ")]);
    assert_eq!(location(&renamed), "/ann/gadget/settings?done=folded");
    assert!(ann.page("/ann/gadget/settings?done=folded").contains("Repository names are lowercase"));
    assert!(ann.page("/ann/gadget/settings?done=renamed").contains("Renamed. The old name redirects here."));
}

#[rstest]
fn the_sixth_rename_in_a_month_must_wait_also_from_one_name_to_the_other_and_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    for (from, to) in [("tool", "b"), ("b", "tool"), ("tool", "b"), ("b", "tool"), ("tool", "b")] {
        let renamed = settle(&ann, &format!("ann/{from}"), "rename", &[("name", to)]);
        assert_eq!(location(&renamed), format!("/ann/{to}/settings?done=renamed"));
    }
    let refused = settle(&ann, "ann/b", "rename", &[("name", "tool")]);
    assert_eq!(refused.status, 429, "{}", refused.text());
    let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("it says how long");
    assert!((29 * 86_400..=30 * 86_400).contains(&wait), "{wait}");
    assert!(refused.text().contains("renamed at most 5 times in 30 days"), "{}", refused.text());
}

#[rstest]
fn an_archived_repository_says_so_and_every_mark_is_set_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (ann, stranger) = (setup.browser("ann"), Browser::new(&setup.server));
    assert_eq!(force(&ann, "/ann/tool/settings/unarchive", &[]).status, 409);
    let archived = settle(&ann, "ann/tool", "archive", &[]);
    assert_eq!(location(&archived), "/ann/tool/settings?done=archived");
    assert!(stranger.page("/ann/tool").contains("It is read-only"));
    assert!(!stranger.page("/ann/tool").contains("/settings/unarchive"));
    let html = ann.page("/ann/tool/settings");
    assert!(html.contains("href=\"/ann/tool/settings/unarchive\""), "{html}");
    assert!(!html.contains("name=\"description\"") && html.contains("/settings/delete"), "{html}");
    let twice = force(&ann, "/ann/tool/settings/archive", &[]);
    assert!(twice.status == 409 && twice.text().contains("already archived"), "{}", twice.text());
    // It can be renamed and hidden while it is archived.
    assert_eq!(settle(&ann, "ann/tool", "rename", &[("name", "kept")]).status, 303);
    assert_eq!(settle(&ann, "ann/kept", "visibility", &[]).status, 303);
    assert_eq!(location(&settle(&ann, "ann/kept", "unarchive", &[])), "/ann/kept/settings?done=unarchived");
    assert!(!ann.page("/ann/kept").contains("It is read-only"));
}

#[rstest]
fn visibility_is_public_or_private_and_asking_for_what_holds_is_told_to_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (ann, stranger) = (setup.browser("ann"), Browser::new(&setup.server));
    let odd = settle(&ann, "ann/tool", "visibility", &[("visibility", "secret")]);
    assert!(odd.status == 400 && odd.text().contains("id=\"visibility-error\""), "{}", odd.text());
    assert_eq!(location(&settle(&ann, "ann/tool", "visibility", &[])), "/ann/tool/settings?done=private");
    assert_eq!(stranger.get("/ann/tool").status, 404);
    let again = settle(&ann, "ann/tool", "visibility", &[("visibility", "private")]);
    assert_eq!(location(&again), "/ann/tool/settings?done=private");
    assert_eq!(setup.noted("repo_visibility_changed"), "1");
    let html = ann.page("/ann/tool/settings/visibility");
    assert!(html.contains("Check old commits for passwords and keys first"), "{html}");
    assert_eq!(location(&settle(&ann, "ann/tool", "visibility", &[])), "/ann/tool/settings?done=public");
    assert_eq!(stranger.get("/ann/tool").status, 200);
}

#[rstest]
fn a_repository_that_a_nostr_key_rules_is_neither_handed_over_nor_hidden(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    query(&setup.server, "UPDATE repos SET governance = 'nostr' RETURNING id");
    let ann = setup.browser("ann");
    let offer: &[(&str, &str)] = &[("new_owner", "bob"), ("confirmation", "ann/tool")];
    let offered = force(&ann, "/ann/tool/settings/transfer", offer);
    let hidden = force(&ann, "/ann/tool/settings/visibility", &[("visibility", "private")]);
    let pages = ["transfer", "visibility"].map(|verb| ann.get(&format!("/ann/tool/settings/{verb}")));
    for refused in [offered, hidden].into_iter().chain(pages) {
        assert!(refused.status == 422 && refused.text().contains("nostr key"), "{}", refused.text());
    }
}

/// Every operation, with what would make it succeed.
const OPERATIONS: [(&str, &[(&str, &str)]); 7] = [
    ("rename", &[("name", "mine")]),
    ("transfer", &[("new_owner", "bob"), ("confirmation", "ann/tool")]),
    ("archive", &[]),
    ("unarchive", &[]),
    ("visibility", &[("visibility", "private")]),
    ("delete", &[("confirmation", "ann/tool")]),
    ("old-names/release", &[("id", "1")]),
];

/// The refusal of a page that is asked for by someone who is logged in; others are led to the log-in first.
fn looked(browser: &Browser<'_>, path: &str) -> u16 {
    let answer = browser.get(path);
    match answer.status == 303 && location(&answer).starts_with("/login?next=") && !browser.is_in() {
        true => 403,
        false => answer.status,
    }
}

#[rstest]
fn who_does_not_administer_a_repository_changes_nothing_of_its_life(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    setup.share("bob", "maintain");
    setup.server.add_user("eve");
    let (bob, eve, stranger) = (setup.browser("bob"), setup.browser("eve"), Browser::new(&setup.server));
    let state = "SELECT name, owner_id, visibility, archived_at, deleted_at, updated_at FROM repos";
    let before = query(&setup.server, state);
    for browser in [&bob, &eve, &stranger] {
        for (verb, fields) in OPERATIONS {
            let path = format!("/ann/tool/settings/{verb}");
            assert_eq!(force(browser, &path, fields).status, 403, "{verb}");
            assert_eq!(looked(browser, &path), 403, "{verb}");
        }
        for page in ["old-names", "audit"] {
            assert_eq!(looked(browser, &format!("/ann/tool/settings/{page}")), 403, "{page}");
        }
    }
    let refused = bob.get("/ann/tool/settings/rename").text();
    assert!(refused.contains("You need the Admin role. Ask ann to change your access."), "{refused}");
    assert!(!bob.page("/ann/tool/settings").contains("Danger zone"));
    assert_eq!(query(&setup.server, state), before);
    // A repository that they may not read is not found, whatever they send.
    assert_eq!(settle(&setup.browser("ann"), "ann/tool", "visibility", &[]).status, 303);
    for browser in [&eve, &stranger] {
        for (verb, fields) in OPERATIONS {
            assert_eq!(force(browser, &format!("/ann/tool/settings/{verb}"), fields).status, 404, "{verb}");
        }
    }
}

#[rstest]
fn a_collaborator_with_the_role_admin_leads_its_life_too(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.share("bob", "admin");
    let bob = setup.browser("bob");
    let html = bob.page("/ann/tool/settings/delete");
    assert!(html.contains("Only ann can restore it until"), "{html}");
    assert!(bob.page("/ann/tool/settings/transfer").contains("ann&#39;s access ends"));
    assert_eq!(location(&settle(&bob, "ann/tool", "archive", &[])), "/ann/tool/settings?done=archived");
    assert_eq!(location(&settle(&bob, "ann/tool", "rename", &[("name", "kit")])), "/ann/kit/settings?done=renamed");
    assert_eq!(location(&settle(&bob, "ann/kit", "delete", &[("confirmation", "ann/kit")])), "/?done=deleted");
    assert_eq!(bob.get("/ann/kit").status, 404, "only its owner hears of it");
    let id = setup.id("kit");
    assert_eq!(force(&bob, &format!("/settings/repositories/restore/{id}"), &[]).status, 404);
}
