//! Everything below `/{owner}/{repo}`.
//!
//! `head.rs` opens the repository and loads the header of its pages; each other file is a page.

mod activity;
mod attention;
mod blame;
mod blob;
mod commit;
mod commits;
mod compare;
mod fork;
mod head;
mod issues;
mod nostr;
mod raw;
mod refs;
mod settings;
mod tombstone;
mod tree;
mod view;
mod waiting;

pub(super) use head::{Elsewhere, Shown};

use super::Route;
use axum::routing::{get, post};

pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        ("/{owner}/{repo}", get(tree::home)),
        ("/r/{repo}", get(tree::permalink)),
        ("/{owner}/{repo}/tree/{*rest}", get(tree::show)),
        ("/{owner}/{repo}/blob/{*rest}", get(blob::show)),
        ("/{owner}/{repo}/raw/{*rest}", get(raw::show)),
        ("/{owner}/{repo}/blame/{*rest}", get(blame::show)),
        ("/{owner}/{repo}/commits", get(commits::front)),
        ("/{owner}/{repo}/commits/{*rest}", get(commits::show)),
        ("/{owner}/{repo}/commit/{oid}", get(commit::show)),
        ("/{owner}/{repo}/compare", get(compare::show)),
        ("/{owner}/{repo}/compare/{*rest}", get(compare::spec)),
        ("/{owner}/{repo}/branches", get(refs::branches)),
        ("/{owner}/{repo}/tags", get(refs::tags)),
        ("/{owner}/{repo}/fork", get(fork::show).post(fork::fork)),
        ("/{owner}/{repo}/proposals", get(nostr::pr_events::show)),
        ("/{owner}/{repo}/nostr/{event}", get(nostr::thread::show)),
        ("/{owner}/{repo}/activity", get(activity::show)),
        ("/{owner}/{repo}/activity.atom", get(activity::atom)),
        ("/{owner}/{repo}/star", post(attention::star)),
        ("/{owner}/{repo}/stargazers", get(attention::stargazers)),
        ("/{owner}/{repo}/watch", post(attention::watch)),
        ("/{owner}/{repo}/watchers", get(attention::watchers)),
        ("/{owner}/{repo}/settings", get(settings::general::show).post(settings::general::save)),
        ("/{owner}/{repo}/settings/collaborators", get(settings::people::show).post(settings::people::set)),
        ("/{owner}/{repo}/settings/collaborators/remove", get(settings::people::ask).post(settings::people::remove)),
        ("/{owner}/{repo}/settings/rename", get(settings::rename::ask).post(settings::rename::rename)),
        ("/{owner}/{repo}/settings/transfer", get(settings::transfer::ask).post(settings::transfer::offer)),
        ("/{owner}/{repo}/settings/archive", get(settings::archive::ask).post(settings::archive::archive)),
        ("/{owner}/{repo}/settings/unarchive", get(settings::archive::ask_back).post(settings::archive::unarchive)),
        ("/{owner}/{repo}/settings/visibility", get(settings::visibility::ask).post(settings::visibility::set)),
        ("/{owner}/{repo}/settings/delete", get(settings::delete::ask).post(settings::delete::delete)),
        ("/{owner}/{repo}/settings/old-names", get(settings::old_names::show)),
        (
            "/{owner}/{repo}/settings/old-names/release",
            get(settings::old_names::ask).post(settings::old_names::release),
        ),
        ("/{owner}/{repo}/settings/audit", get(settings::audit::show)),
    ];
    routes.extend(issues::routes());
    routes.extend(settings::webhooks::routes());
    routes
}
