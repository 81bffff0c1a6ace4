//! The routes of webhooks.

use crate::api::about::about;
use crate::api::hooks;
use crate::api::scoped::Access::{Both, Logged};
use crate::api::scoped::Routes;
use crate::api::shape::{Hook, HookConfig, HookDelivery, HookDeliveryDetail};
use abide_core::scope::Scope;

pub(super) fn webhooks() -> Routes {
    let scope = Logged(Scope::Hooks);
    Routes::of("Webhooks")
        .get(
            "/repos/{owner}/{repo}/hooks",
            scope,
            hooks::list,
            about("A repository's webhooks, the oldest first").gives_page::<Hook>(),
        )
        .post(
            "/repos/{owner}/{repo}/hooks",
            scope,
            hooks::create,
            about("Add a webhook; it is pinged at once")
                .takes::<hooks::Create>()
                .gives_with::<Hook>(201, "The webhook was added."),
        )
        .get("/repos/{owner}/{repo}/hooks/{hook}", scope, hooks::show_one, about("A webhook").gives::<Hook>())
        .patch(
            "/repos/{owner}/{repo}/hooks/{hook}",
            scope,
            hooks::edit,
            about("Change a webhook; what failed before gets a fresh start").takes::<hooks::Edit>().gives::<Hook>(),
        )
        .delete(
            "/repos/{owner}/{repo}/hooks/{hook}",
            scope,
            hooks::remove,
            about("Remove a webhook with its deliveries").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/hooks/{hook}/config",
            scope,
            hooks::config,
            about("Where a webhook sends to, and how").gives::<HookConfig>(),
        )
        .patch(
            "/repos/{owner}/{repo}/hooks/{hook}/config",
            scope,
            hooks::edit_config,
            about("Change where a webhook sends to; what is not mentioned stays")
                .takes::<hooks::Config>()
                .gives::<HookConfig>(),
        )
        .post(
            "/repos/{owner}/{repo}/hooks/{hook}/pings",
            scope,
            hooks::ping,
            about("Ping a webhook").takes_nothing().gives_nothing(),
        )
        .post(
            "/repos/{owner}/{repo}/hooks/{hook}/tests",
            scope,
            hooks::test,
            about("Send the latest push to a webhook that wants pushes").takes_nothing().gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/hooks/{hook}/deliveries",
            scope,
            hooks::deliveries,
            about("What a webhook sent and is going to send, the latest first").gives_log::<HookDelivery>(),
        )
        .get(
            "/repos/{owner}/{repo}/hooks/{hook}/deliveries/{delivery}",
            Both(Scope::Hooks, Scope::RepoRead),
            hooks::delivery,
            about("A delivery with what was sent and what was answered").gives::<HookDeliveryDetail>(),
        )
        .post(
            "/repos/{owner}/{repo}/hooks/{hook}/deliveries/{delivery}/attempts",
            Both(Scope::Hooks, Scope::RepoRead),
            hooks::redeliver,
            about("Send a delivery again, under the same id")
                .takes_nothing()
                .gives_with::<HookDelivery>(202, "It is queued behind what waits."),
        )
}
