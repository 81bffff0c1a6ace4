//! Offers: what a recipient sees before they decide, and every way in which an offer ends.

use super::super::SOON;
use super::super::browser::location;
use super::{Setup, comparable, force, settle};
use crate::beside::Beside as _;
use crate::support::query;
use abide_testkit::{Engine, eventually, http};
use rstest::rstest;

const TO_BOB: [(&str, &str); 2] = [("new_owner", "bob"), ("confirmation", "ann/tool")];

impl Setup {
    /// The address of the latest offer.
    fn offer(&self) -> String {
        format!("/transfers/{}", query(&self.server, "SELECT max(id) FROM repo_transfers"))
    }
}

#[rstest]
fn an_offer_must_be_meant_and_go_to_someone_else(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.server.add_user("gone");
    setup.server.cli_ok(&["user", "suspend", "gone"]);
    let ann = setup.browser("ann");
    for (to, typed, field) in [
        ("bob", "ann/other", "confirmation"),
        ("bob", "", "confirmation"),
        ("nobody", "ann/tool", "new_owner"),
        ("not a name", "ann/tool", "new_owner"),
        ("gone", "ann/tool", "new_owner"),
        ("ann", "ann/tool", "new_owner"),
    ] {
        let refused = settle(&ann, "ann/tool", "transfer", &[("new_owner", to), ("confirmation", typed)]);
        let html = refused.text();
        assert_eq!(refused.status, 400, "{to} {typed}: {html}");
        assert!(html.contains(&format!("id=\"{field}-error\"")), "{to} {typed}: {html}");
        assert!(html.contains(&format!("value=\"{to}\"")), "{to} {typed}: {html}");
    }
    assert_eq!(query(&setup.server, "SELECT count(*) FROM repo_transfers"), "0");
}

#[rstest]
fn an_offer_in_the_inbox_leads_to_the_offer_and_is_read_once_it_is_answered(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (ann, bob) = (setup.browser("ann"), setup.browser("bob"));
    settle(&ann, "ann/tool", "transfer", &TO_BOB);
    let offer = setup.offer();
    let told = "ann wants to transfer ann/tool to you";
    eventually(SOON, || bob.page("/notifications").contains(told));
    let token = setup.server.add_token("bob", "notifications,repo:read");
    let listed = http::get(setup.server.http_addr(), "/api/v3/notifications", Some(&token)).json();
    assert_eq!(listed[0]["subject"]["title"], told, "the API has the same title");
    let html = bob.page("/notifications");
    let action = html.split("action=\"").find(|part| part.contains("/open\"")).and_then(|rest| rest.split('"').next());
    let action = action.expect("a form that opens it").to_owned();
    assert_eq!(location(&bob.submit_in(&html, &action, "", &[])), offer);
    // Once it has ended, its thread leads to the repository.
    bob.submit(&offer, &format!("{offer}/decline"), &[]);
    assert_eq!(location(&bob.submit("/notifications?all=1", &action, &[])), "/ann/tool");

    settle(&ann, "ann/tool", "transfer", &TO_BOB);
    eventually(SOON, || bob.page("/notifications").contains(told));
    let offer = setup.offer();
    bob.submit(&offer, &format!("{offer}/decline"), &[]);
    assert!(bob.page("/notifications").contains("No unread notifications"));
}

#[rstest]
fn the_recipient_of_a_private_repository_sees_what_they_decide_about_and_takes_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    setup.server.add_user("eve");
    let (ann, bob, eve) = (setup.browser("ann"), setup.browser("bob"), setup.browser("eve"));
    ann.submit("/ann/tool/settings", "/ann/tool/settings", &[("description", "Adds numbers"), ("topics", "")]);
    settle(&ann, "ann/tool", "visibility", &[]);
    query(&setup.server, "UPDATE repos SET size_bytes = 2097152 RETURNING id");
    let offered = settle(&ann, "ann/tool", "transfer", &TO_BOB);
    assert_eq!(location(&offered), "/ann/tool/settings?done=offered");
    let offer = setup.offer();

    // The settings tell of it, and lead to it instead of to another one.
    let html = ann.page("/ann/tool/settings");
    assert!(
        html.contains("Transfer offered to <a href=\"/bob\">bob</a>") && html.contains("They can accept until <time")
    );
    assert!(!html.contains("/settings/transfer\""), "{html}");
    assert_eq!(location(&ann.get("/ann/tool/settings/transfer")), offer);
    let second = force(&ann, "/ann/tool/settings/transfer", &[("new_owner", "eve"), TO_BOB[1]]);
    assert!(second.status == 409 && second.text().contains("cancel that offer first"), "{}", second.text());

    // Everything that the recipient needs to know.
    assert!(bob.page("/").contains("You have a transfer offer."));
    assert!(bob.page("/settings/repositories").contains("You have a transfer offer."));
    assert_eq!(bob.get("/ann/tool").status, 404, "the offer is no key");
    for page in ["/transfers", &offer] {
        let html = bob.page(page);
        for text in ["ann/tool", "Adds numbers", "Private", "2.0 MiB", "just now", "bob/tool", " UTC</time> (in "] {
            assert!(html.contains(text), "{text} on {page}: {html}");
        }
        assert!(!html.contains("href=\"/ann/tool\""), "it cannot be looked into yet: {html}");
    }
    assert!(bob.page(&offer).contains("If you accept") && ann.page(&offer).contains("If bob accepts"));
    assert!(ann.page("/transfers").contains("Cancel transfer"));

    // To others there is no such offer.
    let missing = format!("/transfers/{}", "9".repeat(offer.len() - "/transfers/".len()));
    assert_eq!(comparable(&eve, &offer, &offer), comparable(&eve, &missing, &missing));
    assert_eq!(eve.get(&offer).status, 404);
    for verb in ["accept", "decline", "cancel"] {
        assert_eq!(force(&eve, &format!("{offer}/{verb}"), &[]).status, 404, "{verb}");
        assert_eq!(force(&eve, &format!("/transfers/x/{verb}"), &[]).status, 404, "{verb}");
    }
    assert!(eve.page("/transfers").contains("No transfer offers"));

    // Each side has its own answers.
    assert_eq!(force(&ann, &format!("{offer}/accept"), &[]).status, 403);
    assert_eq!(force(&bob, &format!("{offer}/cancel"), &[]).status, 403);
    assert_eq!(location(&bob.submit(&offer, &format!("{offer}/accept"), &[])), "/bob/tool?done=accepted");
    assert!(bob.page("/bob/tool?done=accepted").contains("You own this repository now."));
    assert_eq!(location(&bob.get("/ann/tool/commits/main?page=1")), "/bob/tool/commits/main?page=1");
    assert_eq!(ann.get("/ann/tool").status, 404, "the old owner's access has ended");
    assert_eq!(ann.get("/bob/tool").status, 404);
    for browser in [&ann, &bob] {
        assert!(browser.page(&offer).contains("The offer was accepted"));
        assert!(!browser.page("/transfers").contains("ann/tool"));
    }
    assert!(!ann.page(&offer).contains("Adds numbers"), "what has ended tells nothing of the repository");
    let again = force(&bob, &format!("{offer}/accept"), &[]);
    assert!(
        again.status == 409 && again.text().contains("The transfer offer is already accepted."),
        "{}",
        again.text()
    );
}

#[rstest]
fn an_offer_that_was_declined_or_cancelled_has_ended(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let (ann, bob) = (setup.browser("ann"), setup.browser("bob"));
    settle(&ann, "ann/tool", "transfer", &TO_BOB);
    let offer = setup.offer();
    assert_eq!(location(&bob.submit("/transfers", &format!("{offer}/decline"), &[])), "/transfers?done=declined");
    assert!(bob.page("/transfers?done=declined").contains("Transfer declined."));
    assert_eq!(force(&bob, &format!("{offer}/decline"), &[]).status, 409);
    assert!(ann.page(&offer).contains("The offer was declined"));

    settle(&ann, "ann/tool", "transfer", &TO_BOB);
    let offer = setup.offer();
    let canceled = ann.submit("/ann/tool/settings", &format!("{offer}/cancel"), &[]);
    assert_eq!(location(&canceled), "/ann/tool/settings?done=canceled");
    for verb in ["accept", "decline"] {
        let late = force(&bob, &format!("{offer}/{verb}"), &[]);
        assert!(late.status == 409 && late.text().contains("The offer was cancelled"), "{}", late.text());
    }
    assert_eq!(force(&ann, &format!("{offer}/cancel"), &[]).status, 409);
    assert_eq!(
        (setup.noted("repo_transfer_declined"), setup.noted("repo_transfer_canceled")),
        ("1".into(), "1".into())
    );
    assert_eq!(query(&setup.server, "SELECT u.name FROM repos r JOIN users u ON u.id = r.owner_id"), "ann");
}

#[rstest]
fn an_offer_that_nobody_answered_in_time_has_expired_and_makes_way_for_another(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (ann, bob) = (setup.browser("ann"), setup.browser("bob"));
    settle(&ann, "ann/tool", "transfer", &TO_BOB);
    let offer = setup.offer();
    query(&setup.server, "UPDATE repo_transfers SET expires_at = created_at RETURNING id");
    assert!(!bob.page("/").contains("You have a transfer offer."));
    assert!(bob.page(&offer).contains("The offer expired without an answer"));
    for verb in ["accept", "decline"] {
        assert_eq!(force(&bob, &format!("{offer}/{verb}"), &[]).status, 409, "{verb}");
    }
    assert!(ann.page("/ann/tool/settings").contains("/ann/tool/settings/transfer\""));
    assert_eq!(location(&settle(&ann, "ann/tool", "transfer", &TO_BOB)), "/ann/tool/settings?done=offered");
    assert!(bob.page("/").contains("You have a transfer offer."));
}

#[rstest]
fn a_name_that_the_recipient_uses_already_is_told_with_what_to_do(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    setup.bob.create(&setup.server, "tool", false);
    let (ann, bob) = (setup.browser("ann"), setup.browser("bob"));
    let forked = bob.submit("/ann/tool/fork", "/ann/tool/fork", &[("name", "tool")]);
    assert!(forked.status == 409 && forked.text().contains("id=\"name-error\""), "{}", forked.text());
    settle(&ann, "ann/tool", "transfer", &TO_BOB);
    let offer = setup.offer();
    let taken = bob.submit(&offer, &format!("{offer}/accept"), &[]);
    assert!(taken.status == 409 && taken.text().contains("rename or delete yours first"), "{}", taken.text());
    assert_eq!(settle(&bob, "bob/tool", "rename", &[("name", "my-tool")]).status, 303);
    assert_eq!(bob.get("/bob/tool").status, 301, "which frees the name");
    let html = taken.text();
    let accepted = bob.submit_in(&html, &format!("{offer}/accept"), "", &[]);
    assert_eq!(location(&accepted), "/bob/tool?done=accepted");
    assert!(bob.page("/bob/tool").contains("README.md"), "it is ann's, and not the one that was renamed");
}
