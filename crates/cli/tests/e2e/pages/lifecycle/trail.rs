//! The audit trail of a repository, in words, for those who administer it.

use super::super::add_admin;
use super::super::browser::location;
use super::{Setup, settle};
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
fn everything_that_was_done_is_told_with_who_when_and_from_where(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    add_admin(&setup.server, "carol");
    let ann = setup.browser("ann");
    setup.share("bob", "write");
    settle(&ann, "ann/tool", "rename", &[("name", "kit")]);
    settle(&ann, "ann/kit", "archive", &[]);
    settle(&ann, "ann/kit", "unarchive", &[]);
    settle(&ann, "ann/kit", "visibility", &[]);
    settle(&ann, "ann/kit", "transfer", &[("new_owner", "bob"), ("confirmation", "ann/kit")]);
    settle(&ann, "ann/kit", "delete", &[("confirmation", "ann/kit")]);
    let html = ann.get("/ann/kit").text();
    let restored = ann.submit_in(&html, &format!("/settings/repositories/restore/{}", setup.id("kit")), "", &[]);
    assert_eq!(location(&restored), "/ann/kit?done=restored");

    let html = ann.page("/ann/kit/settings/audit");
    let reported = [
        "Restored",
        "Deleted",
        "Transfer to bob cancelled",
        "Transfer offered to bob",
        "Made private",
        "Unarchived",
        "Archived",
        "Renamed from tool to kit",
        "bob added with the write role",
        "Pushed main over HTTP",
        "Created as ann/tool, public",
    ];
    let table = html.split("<tbody>").nth(1).expect("a table");
    let at = reported.map(|text| table.find(&format!("<td>{text}\n")));
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "the latest first: {at:?} in {html}");
    assert!(table.contains("<a href=\"/ann\">ann</a>") && table.contains("127.0.0.1"), "{html}");
    assert_eq!(setup.browser("bob").get("/ann/kit/settings/audit").status, 403);
    assert_eq!(setup.browser("carol").get("/ann/kit/settings/audit").status, 200, "who administers the site reads it");
}

#[rstest]
fn a_long_trail_is_read_page_by_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    let token = ann.token("/settings/profile");
    for number in 0..55 {
        let topic = format!("topic-{number}");
        let saved = ann.post("/ann/tool/settings", &[("_token", &token), ("topics", &topic)]);
        assert_eq!(saved.status, 303, "{}", saved.text());
    }
    let html = ann.page("/ann/tool/settings/audit");
    let rows = |html: &str| html.matches("<tr>").count() - 1;
    assert_eq!(rows(&html), 50);
    assert!(html.contains("Topics changed to topic-54") && !html.contains("topic-4\n"), "{html}");
    let older = html.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a next page");
    let rest = ann.page(older);
    assert_eq!(rows(&rest), 7, "five topics, a push and the beginning: {rest}");
    assert!(rest.contains("Created as ann/tool, public") && !rest.contains("rel=\"next\""), "{rest}");
    assert!(ann.page("/ann/tool/settings/audit?before=1").contains("No older entries"));
}
