//! Restoring: from the list, under the same name or another, and not for ever.

use super::super::browser::{Browser, location};
use super::{Setup, force, settle};
use crate::support::query;
use abide_testkit::Engine;
use rstest::rstest;

const PAGE: &str = "/settings/repositories";

impl Setup {
    /// Deletes `ann/tool` and returns where it can be restored.
    fn delete(&self, ann: &Browser<'_>) -> String {
        let deleted = settle(ann, "ann/tool", "delete", &[("confirmation", "ann/tool")]);
        assert_eq!(location(&deleted), "/settings/repositories?done=deleted");
        let id = query(&self.server, "SELECT max(id) FROM repos WHERE deleted_at IS NOT NULL");
        format!("/settings/repositories/restore/{id}")
    }
}

#[rstest]
fn a_deleted_repository_is_listed_and_comes_back_as_it_was(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let (ann, bob) = (setup.browser("ann"), setup.browser("bob"));
    assert!(ann.page(PAGE).contains("No deleted repositories"));
    settle(&ann, "ann/tool", "archive", &[]);
    let id = setup.id("tool");
    let restore = setup.delete(&ann);
    let html = ann.page(PAGE);
    assert!(html.contains("ann/tool") && html.contains("Deleted <time") && html.contains("Archived"), "{html}");
    assert!(bob.page(PAGE).contains("No deleted repositories"), "only one's own");
    assert_eq!(force(&bob, &restore, &[]).status, 404);
    assert_eq!(location(&Browser::new(&setup.server).get(PAGE)), "/login?next=%2Fsettings%2Frepositories");
    assert_eq!(location(&ann.submit(PAGE, &restore, &[])), "/ann/tool?done=restored");
    let html = ann.page("/ann/tool");
    assert!(html.contains("README.md") && html.contains("It is read-only"), "still archived: {html}");
    assert_eq!(setup.id("tool"), id);
    assert!(ann.page(PAGE).contains("No deleted repositories"));
    let live = force(&ann, &restore, &[]);
    assert!(live.status == 409 && live.text().contains("The repository is not deleted."), "{}", live.text());
    for odd in ["0", "x", "999999"] {
        assert_eq!(force(&ann, &format!("/settings/repositories/restore/{odd}"), &[]).status, 404, "{odd}");
    }
}

#[rstest]
fn a_name_that_was_taken_meanwhile_is_no_obstacle(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    let restore = setup.delete(&ann);
    let made = ann.submit("/new", "/new", &[("name", "tool"), ("visibility", "public")]);
    assert_eq!(location(&made), "/ann/tool");
    let again = ann.submit("/new", "/new", &[("name", "tool"), ("visibility", "public")]);
    assert!(again.status == 409 && again.text().contains("id=\"name-error\""), "{}", again.text());

    let taken = ann.submit(PAGE, &restore, &[]);
    let html = taken.text();
    assert!(taken.status == 409 && html.contains("restore this one under a different name"), "{html}");
    assert!(html.contains("<details class=\"under\" open>") && html.contains("name=\"name\""), "{html}");
    for (typed, status) in [("tool", 409), ("bad name", 400), ("settings", 400)] {
        let refused = ann.submit_in(&html, &restore, "name=\"name\"", &[("name", typed)]);
        let html = refused.text();
        assert_eq!(refused.status, status, "{typed}: {html}");
        assert!(html.contains(&format!("value=\"{typed}\"")) && html.contains("role=\"alert\""), "{typed}: {html}");
    }
    let restored = ann.submit_in(&html, &restore, "name=\"name\"", &[("name", "tool-of-old")]);
    assert_eq!(location(&restored), "/ann/tool-of-old?done=restored");
    assert!(ann.page("/ann/tool-of-old").contains("README.md"));
    assert!(ann.page("/ann/tool").contains("This repository is empty"), "the other one is untouched");
}

#[rstest]
fn past_the_grace_nothing_can_be_restored(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let ann = setup.browser("ann");
    let restore = setup.delete(&ann);
    // The first sweep is minutes away.
    query(&setup.server, "UPDATE repos SET deleted_at = deleted_at - 604800000000 RETURNING id");
    let html = ann.page(PAGE);
    assert!(html.contains("Deletion pending") && html.contains("Restore period ended") && !html.contains(&restore));
    let late = force(&ann, &restore, &[]);
    assert_eq!(late.status, 410, "{}", late.text());
    assert!(late.text().contains("The restore period of this repository has ended."), "{}", late.text());
    let left = ann.get("/ann/tool");
    assert!(left.status == 410 && left.text().contains("will be deleted permanently soon"), "{}", left.text());
    assert!(!left.text().contains(&restore));
    assert_eq!(force(&ann, &restore, &[("name", "other")]).status, 410);
}
