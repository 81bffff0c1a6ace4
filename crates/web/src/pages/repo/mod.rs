//! Everything below `/{owner}/{repo}`.
//!
//! `head.rs` opens the repository and gathers what its pages have in common; each other file is a page.

mod blame;
mod blob;
mod commit;
mod commits;
mod compare;
mod fork;
mod head;
mod issues;
mod raw;
mod refs;
mod settings;
mod tree;
mod view;

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
        ("/{owner}/{repo}/settings", get(settings::general::show).post(settings::general::save)),
        ("/{owner}/{repo}/settings/collaborators", get(settings::people::show).post(settings::people::set)),
        ("/{owner}/{repo}/settings/collaborators/remove", post(settings::people::remove)),
        (
            "/{owner}/{repo}/settings/visibility",
            get(settings::danger::ask_visibility).post(settings::danger::visibility),
        ),
        ("/{owner}/{repo}/settings/delete", get(settings::danger::ask_delete).post(settings::danger::delete)),
    ];
    routes.extend(issues::routes());
    routes
}
