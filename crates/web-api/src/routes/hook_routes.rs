//! The routes of webhooks.

use crate::about::about;
use crate::hooks;
use crate::scoped::Access::{Both, Logged};
use crate::scoped::Routes;
use crate::shape::{Hook, HookConfig, HookDelivery, HookDeliveryDetail};
use abide_core::scope::Scope;

pub(super) fn webhooks() -> Routes {
    let scope = Logged(Scope::Hooks);
    Routes::of("Webhooks")
        .get(
            "/repos/{owner}/{repo}/hooks",
            scope,
            hooks::list,
            about("List webhooks, oldest first").gives_page::<Hook>(),
        )
        .post(
            "/repos/{owner}/{repo}/hooks",
            scope,
            hooks::create,
            about("Create a webhook; a ping is sent at once")
                .takes::<hooks::Create>()
                .gives_with::<Hook>(201, "The webhook was created."),
        )
        .get("/repos/{owner}/{repo}/hooks/{hook}", scope, hooks::show_one, about("Get a webhook").gives::<Hook>())
        .patch(
            "/repos/{owner}/{repo}/hooks/{hook}",
            scope,
            hooks::edit,
            about("Update a webhook; this resets its failure count").takes::<hooks::Edit>().gives::<Hook>(),
        )
        .delete(
            "/repos/{owner}/{repo}/hooks/{hook}",
            scope,
            hooks::remove,
            about("Delete a webhook with its deliveries").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/hooks/{hook}/config",
            scope,
            hooks::config,
            about("Get the configuration of a webhook").gives::<HookConfig>(),
        )
        .patch(
            "/repos/{owner}/{repo}/hooks/{hook}/config",
            scope,
            hooks::edit_config,
            about("Update the configuration of a webhook; omitted fields do not change")
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
            about("Send the latest push to a webhook subscribed to push events").takes_nothing().gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/hooks/{hook}/deliveries",
            scope,
            hooks::deliveries,
            about("List deliveries, including queued ones, newest first").gives_log::<HookDelivery>(),
        )
        .get(
            "/repos/{owner}/{repo}/hooks/{hook}/deliveries/{delivery}",
            Both(Scope::Hooks, Scope::RepoRead),
            hooks::delivery,
            about("Get a delivery with its request and response").gives::<HookDeliveryDetail>(),
        )
        .post(
            "/repos/{owner}/{repo}/hooks/{hook}/deliveries/{delivery}/attempts",
            Both(Scope::Hooks, Scope::RepoRead),
            hooks::redeliver,
            about("Redeliver a delivery with the same id")
                .takes_nothing()
                .gives_with::<HookDelivery>(202, "Queued behind pending deliveries."),
        )
}
