//! Deleting: typed, told exactly, and afterwards known to the owner alone.

use super::super::add_admin;
use super::super::browser::{Browser, location};
use super::{Setup, assert_as_absent, force, settle};
use crate::support::query;
use abide_core::time::parse_rfc3339;
use abide_testkit::Engine;
use rstest::rstest;

/// The instant that stands behind a text on a page, as it stands there.
#[track_caller]
fn instant<'a>(html: &'a str, before: &str) -> &'a str {
    let rest = html.split(before).nth(1).unwrap_or_else(|| panic!("no {before:?} in {html}"));
    let shown = rest.split_once('>').and_then(|(_, shown)| shown.split_once(" UTC"));
    shown.unwrap_or_else(|| panic!("no instant behind {before:?} in {html}")).0
}

#[rstest]
fn deleting_must_be_confirmed_and_tells_until_when_it_can_be_undone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    for typed in ["", "tool", "ann/other"] {
        let refused = settle(&ann, "ann/tool", "delete", &[("confirmation", typed)]);
        assert!(refused.status == 400 && refused.text().contains("id=\"confirmation-error\""), "{typed}");
    }
    let reported = ann.page("/ann/tool/settings/delete");
    let reported = reported.split("You can restore it until ").nth(1).and_then(|rest| rest.split(" UTC").next());
    let reported = parse_rfc3339(&format!("{}Z", reported.expect("it is told").replace(' ', "T"))).expect("an instant");
    let deleted = settle(&ann, "ann/tool", "delete", &[("confirmation", "ann/tool")]);
    assert_eq!(location(&deleted), "/settings/repositories?done=deleted");
    let at: i64 = query(&setup.server, "SELECT deleted_at FROM repos").parse().expect("it is deleted");
    let late = reported.micros() - (at + 7 * 86_400_000_000);
    assert!((-60_000_000..=1_000_000).contains(&late), "told {late} µs too late");
    let until = abide_core::Timestamp::from_micros(at + 7 * 86_400_000_000).to_string();
    let html = ann.page("/settings/repositories");
    assert_eq!(instant(&html, "Can be restored until"), until.trim_end_matches('Z').replace('T', " "));

    // Deleting once more changes nothing, and the clock runs on.
    let twice = force(&ann, "/ann/tool/settings/delete", &[("confirmation", "ann/tool")]);
    assert!(twice.status == 409 && twice.text().contains("ann/tool is deleted"), "{}", twice.text());
    assert_eq!(query(&setup.server, "SELECT deleted_at FROM repos"), at.to_string());
    assert_eq!(setup.noted("repo_soft_deleted"), "1");
}

#[rstest]
fn only_the_owner_finds_what_is_left_of_a_deleted_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    setup.share("bob", "admin");
    add_admin(&setup.server, "root2");
    let ann = setup.browser("ann");
    assert_eq!(settle(&ann, "ann/tool", "delete", &[("confirmation", "ann/tool")]).status, 303);
    let permalink = format!("/r/{}", setup.id("tool"));
    for path in ["/ann/tool", "/ann/tool/commits", "/ann/tool/settings", "/ann/tool/blob/main/README.md", &permalink] {
        let left = ann.get(path);
        let html = left.text();
        assert_eq!(left.status, 410, "{path}: {html}");
        assert!(html.contains("ann/tool is deleted") && html.contains("Restore</button>"), "{path}: {html}");
    }
    for browser in [setup.browser("bob"), setup.browser("root2"), Browser::new(&setup.server)] {
        assert_as_absent(&browser, "tool", "none");
        assert_eq!(browser.get(&permalink).status, 404);
        assert!(!browser.page("/explore").contains("ann/tool") && !browser.page("/ann").contains("ann/tool"));
    }
    assert!(!ann.page("/ann").contains("ann/tool") && !ann.page("/").contains("ann/tool"));
    // The way back is on that page.
    let html = ann.get("/ann/tool").text();
    let restored = ann.submit_in(&html, &format!("/settings/repositories/restore/{}", setup.id("tool")), "", &[]);
    assert_eq!(location(&restored), "/ann/tool?done=restored");
    assert!(ann.page("/ann/tool?done=restored").contains("Repository restored with all its data."));
}

#[rstest]
fn deleting_cancels_the_offer_and_says_so_first(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let (ann, bob) = (setup.browser("ann"), setup.browser("bob"));
    assert!(!ann.page("/ann/tool/settings/delete").contains("The transfer offer to"));
    settle(&ann, "ann/tool", "transfer", &[("new_owner", "bob"), ("confirmation", "ann/tool")]);
    assert!(ann.page("/ann/tool/settings/delete").contains("The transfer offer to bob is cancelled."));
    assert!(bob.page("/").contains("You have a transfer offer."));
    settle(&ann, "ann/tool", "delete", &[("confirmation", "ann/tool")]);
    assert!(!bob.page("/").contains("You have a transfer offer."));
    let id = query(&setup.server, "SELECT id FROM repo_transfers");
    assert!(bob.page(&format!("/transfers/{id}")).contains("The offer was cancelled"));
    let late = force(&bob, &format!("/transfers/{id}/accept"), &[]);
    assert!(late.status == 409 && late.text().contains("The transfer offer is already canceled."), "{}", late.text());
}
