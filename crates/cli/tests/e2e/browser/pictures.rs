//! Pictures for the README. Not a check: made only when asked for, by `ABIDE_PICTURES=docs/images ./test pictures`.

use super::driver::Browser;
use super::{by_nostr, live_a_little, lively, log_in, open_server, push_samples};
use crate::support;
use abide_testkit::Engine;
use std::path::PathBuf;

#[tokio::test]
async fn pictures_are_taken_when_asked_for() {
    let Some(directory) = std::env::var_os("ABIDE_PICTURES").map(PathBuf::from) else { return };
    let server = open_server(Engine::Sqlite);
    let ann = support::admin(&server, "ann");
    for name in ["tool", "empty", "notes"] {
        ann.create(&server, name, name == "notes");
    }
    push_samples(&ann.git, &server.http_url("ann", "tool"));
    let browser = Browser::open(&server).await;
    let outside = [("front", "/"), ("login", "/login"), ("signup", "/signup")];
    let inside = [
        ("dashboard", "/"),
        ("new", "/new"),
        ("home", "/ann/tool"),
        ("empty", "/ann/empty"),
        ("file", "/ann/tool/blob/main/src/lib.rs"),
        ("commit", "/ann/tool/commit/main"),
        ("commits", "/ann/tool/commits"),
        ("branches", "/ann/tool/branches"),
        ("compare", "/ann/tool/compare?base=feature/sum&head=main"),
        ("blame", "/ann/tool/blame/main/src/lib.rs"),
        ("settings", "/ann/tool/settings"),
        ("collaborators", "/ann/tool/settings/collaborators"),
        ("rename", "/ann/tool/settings/rename"),
        ("transfer", "/ann/tool/settings/transfer"),
        ("delete", "/ann/tool/settings/delete"),
        ("audit", "/ann/tool/settings/audit"),
        ("old-names", "/ann/archive/settings/old-names"),
        ("archived", "/ann/archive"),
        ("offered", "/ann/given/settings"),
        ("transfers", "/transfers"),
        ("offer", "/transfers/1"),
        ("deleted", "/settings/repositories"),
        ("tombstone", "/ann/gone"),
        ("profile", "/ann"),
        ("account", "/settings/account"),
        ("security", "/settings/security"),
        ("tokens", "/settings/tokens"),
        ("admin-users", "/admin/users"),
        ("admin-audit", "/admin/audit"),
        ("api", "/api/docs"),
    ];
    take(&browser, &directory, &outside).await;
    live_a_little(&browser, &server, &ann).await;
    take(&browser, &directory, &inside).await;
    let by_nostr = by_nostr(&server);
    let by_nostr: Vec<(&str, &str)> = by_nostr.iter().map(|(name, path)| (*name, path.as_str())).collect();
    take(&browser, &directory, &by_nostr).await;
    browser.close().await;
}

#[tokio::test]
async fn pictures_of_what_happens_are_taken_when_asked_for() {
    let Some(directory) = std::env::var_os("ABIDE_PICTURES").map(PathBuf::from) else { return };
    let server = lively::site(Engine::Sqlite);
    let browser = Browser::open(&server).await;
    take(&browser, &directory, &[("lively-front", "/")]).await;
    log_in(&browser, "ann").await;
    let failed = support::query(&server, "SELECT max(id) FROM webhook_deliveries WHERE status = 503");
    let delivery = format!("/ann/tool/settings/webhooks/2/deliveries/{failed}");
    let inside = [
        ("feed", "/"),
        ("your-repositories", "/?tab=repositories"),
        ("repo-activity", "/ann/tool/activity"),
        ("lively-repo", "/ann/tool"),
        ("explore", "/explore"),
        ("search", "/search?q=weather"),
        ("explore-activity", "/explore/activity"),
        ("trending", "/trending?since=day"),
        ("bob", "/bob"),
        ("bob-stars", "/bob?tab=stars"),
        ("bob-activity", "/bob/activity"),
        ("inbox", "/notifications"),
        ("inbox-all", "/notifications?all=1"),
        ("settings-notifications", "/settings/notifications"),
        ("webhooks", "/ann/tool/settings/webhooks"),
        ("webhook", "/ann/tool/settings/webhooks/2"),
        ("webhook-delivery", &delivery),
        ("issues", "/ann/tool/issues"),
        ("issue", "/ann/tool/issues/1"),
        ("admin-events", "/admin/events"),
    ];
    take(&browser, &directory, &inside).await;
    browser.close().await;
}

async fn take(browser: &Browser, directory: &std::path::Path, pages: &[(&str, &str)]) {
    for (name, path) in pages {
        for (width, height) in [(1400, 900), (360, 740)] {
            for scheme in ["light", "dark"] {
                browser.looks(width, height, scheme).await;
                browser.go(path).await;
                browser.picture(&directory.join(format!("{name}-{width}-{scheme}.png"))).await;
            }
        }
    }
}
