//! Threads from nostr: `pr_events.rs` and `thread.rs` are pages, the list of issues shows the rest.

pub(super) mod pr_events;
pub(super) mod thread;

use super::head::{Elsewhere, Room};
use crate::App;
use crate::problem::Problem;
use crate::show::text::readable;
use abide_forge::grasp::status::{self, WaitingPrEvents, WaitingState};
use abide_forge::repos::Repo;
use abide_forge::threads::{self, Governed};
use abide_forge::{Caller, Fault};
use abide_nostr::git::Status;
use abide_web::relay_url;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Maintainers on the page.
const NAMED: usize = 20;

/// Most states and PR events in purgatory that a page lists.
const WAITING: usize = 3;

/// The key that owns a repository, for its pages.
pub(super) struct Governance {
    pub npub: String,
    pub clone_http: String,
    pub clone_nostr: String,
    pub clone_id: String,
    /// Keys with their shown names.
    pub maintainers: Vec<(String, String)>,
    pub more_maintainers: usize,
    /// States of maintainers that wait for their git data.
    pub waiting: Vec<WaitingState>,
    /// Number of PR events of which a half is missing.
    pub pr_events: WaitingPrEvents,
    /// URL of the page about waiting events.
    pub status: String,
}

impl Governance {
    pub(super) async fn of(app: &App, caller: &Caller, repo: &Repo) -> Option<Self> {
        let slug = repo.nostr_slug()?;
        let governed = match threads::governed(&app.forge, repo).await {
            Ok(found) => found?,
            Err(error) => {
                tracing::error!(%error, repo = repo.id.get(), "cannot read the maintainers of a repository");
                return None;
            }
        };
        let (waiting, pr_events) = waiting(app, caller, repo, &governed).await.unwrap_or_else(|error| {
            tracing::error!(%error, repo = repo.id.get(), "cannot read the purgatory entries of a repository");
            Default::default()
        });
        let keys = governed.maintainer_npubs();
        let (npub, identifier) = slug.split_once('/')?;
        Some(Self {
            clone_http: app.url(&format!("/{slug}.git")),
            clone_nostr: format!("nostr://{npub}/{}/{identifier}", hint(&app.url(""))),
            clone_id: app.url(&format!("/r/{}.git", repo.id)),
            more_maintainers: keys.len().saturating_sub(NAMED),
            maintainers: keys.into_iter().take(NAMED).map(|key| (key.clone(), readable(&key))).collect(),
            status: format!("/api/v3/grasp/{slug}/status"),
            npub: npub.to_owned(),
            waiting,
            pr_events,
        })
    }
}

async fn waiting(
    app: &App,
    caller: &Caller,
    repo: &Repo,
    governed: &Governed,
) -> Result<(Vec<WaitingState>, WaitingPrEvents), Fault> {
    let states = status::newest_states(&app.forge, caller, repo.id, governed, WAITING).await?;
    Ok((states, status::pr_events(&app.forge, &governed.owner, &governed.identifier, WAITING).await?))
}

/// Relay hint in `nostr://` URLs: only the host, unless the site has no TLS.
fn hint(site: &str) -> String {
    match site.strip_prefix("https://") {
        Some(host) => host.to_owned(),
        None => utf8_percent_encode(&relay_url(site), NON_ALPHANUMERIC).to_string(),
    }
}

/// Maintainers of the repository; 404 if an account owns it.
pub(super) async fn governed(app: &App, room: &Room) -> Result<Governed, Elsewhere> {
    let governed = threads::governed(&app.forge, room.repo()).await?;
    Ok(governed.ok_or_else(|| Problem::absent("This page exists only for repositories that belong to a nostr key."))?)
}

/// Text and class of a status badge.
pub(super) fn badge(status: Status, issue: bool) -> (&'static str, &'static str) {
    match (status, issue) {
        (Status::Open, _) => ("Open", "ok"),
        (Status::Applied, true) => ("Resolved", "warn"),
        (Status::Applied, false) => ("Merged", "warn"),
        (Status::Closed, _) => ("Closed", "warn"),
        (Status::Draft, _) => ("Draft", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_hint_is_the_host_unless_it_is_not_encrypted() {
        assert_eq!(hint("https://git.example.org"), "git.example.org");
        assert_eq!(hint("https://git.example.org:8443"), "git.example.org:8443");
        assert_eq!(hint("http://127.0.0.1:7464"), "ws%3A%2F%2F127%2E0%2E0%2E1%3A7464");
    }
}
