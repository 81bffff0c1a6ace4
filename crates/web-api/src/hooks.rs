//! The webhooks of a repository, and what they sent.

use super::error::ApiError;
use super::input::Input;
use super::keyset::Keyset;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::{RepoItemPath, RepoPath, Segments};
use super::shape::{self, HIDDEN, Hook, HookConfig, HookDelivery, HookDeliveryDetail};
use crate::App;
use abide_core::DeliveryId;
use abide_core::policy::Action;
use abide_forge::Caller;
use abide_forge::repos::Repo;
use abide_forge::webhooks::show::Seen;
use abide_forge::webhooks::{Change, Secret, ask, create, edit, remove, show};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

type DeliveryPath = Segments<(String, String, String, String)>;

/// Configuration of a webhook.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = WebhookConfigRequest)]
pub(super) struct Config {
    url: Option<String>,
    /// `json` (the default) or `form`.
    content_type: Option<String>,
    /// Secret that signs deliveries.
    secret: Option<String>,
    /// Certificates are always verified: anything but `0` is refused.
    insecure_ssl: Option<Flag>,
}

/// `0` or `1`, as clients write it.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = WebhookFlag)]
pub(super) enum Flag {
    Number(i64),
    Text(String),
}

impl Flag {
    fn is_set(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0,
            Self::Text(text) => text != "0",
        }
    }
}

impl Config {
    /// `unnamed`: what becomes of a secret that is not mentioned.
    fn change(self, unnamed: Secret) -> Change {
        let secret = match self.secret {
            None => unnamed,
            // The placeholder of our own response, sent back: the secret stays.
            Some(text) if text == HIDDEN => Secret::Keep,
            Some(text) if text.is_empty() => Secret::Remove,
            Some(text) => Secret::Set(text),
        };
        Change {
            url: self.url,
            content_type: self.content_type,
            secret,
            insecure_ssl: self.insecure_ssl.is_some_and(|flag| flag.is_set()),
            events: None,
            active: None,
        }
    }
}

async fn hook(
    app: &App,
    caller: &Caller,
    (owner, name, id): (String, String, String),
) -> Result<(Repo, Seen), ApiError> {
    let repo = repos::at(app, caller, (owner, name), Action::WebhookList).await?;
    let seen = show::hook(&app.forge, caller, &repo, &id).await?;
    Ok((repo, seen))
}

/// The same for a change: refused before anything is looked up.
async fn managed(
    app: &App,
    caller: &Caller,
    (owner, name, id): (String, String, String),
) -> Result<(Repo, Seen), ApiError> {
    let repo = repos::at(app, caller, (owner, name), Action::WebhookManage).await?;
    let seen = show::hook(&app.forge, caller, &repo, &id).await?;
    Ok((repo, seen))
}

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): RepoPath,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::WebhookList).await?;
    let (found, total) = show::list(&app.forge, &caller, &repo, paged.page()).await?;
    let items: Vec<_> = found.iter().map(|seen| shape::hook(&app, &repo, seen)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// A new webhook.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewWebhook)]
pub(super) struct Create {
    /// Always `web`.
    name: Option<String>,
    config: Config,
    /// Subscribed events; `push` if not given, `*` for everything.
    events: Option<Vec<String>>,
    active: Option<bool>,
}

pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): RepoPath,
    Input(body): Input<Create>,
) -> Result<(StatusCode, Json<Hook>), ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::WebhookManage).await?;
    if body.name.is_some_and(|name| name != "web") {
        return Err(ApiError::invalid("Hook", "name", "invalid", "is always web"));
    }
    let change = Change { events: body.events, active: body.active, ..body.config.change(Secret::Remove) };
    let made = create::create(&app.forge, &caller, &repo, &change).await?;
    let seen = show::hook(&app.forge, &caller, &repo, &made.id.to_string()).await?;
    Ok((StatusCode::CREATED, Json(shape::hook(&app, &repo, &seen))))
}

pub(super) async fn show_one(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
) -> Result<Json<Hook>, ApiError> {
    let (repo, seen) = hook(&app, &caller, at).await?;
    Ok(Json(shape::hook(&app, &repo, &seen)))
}

/// Fields of a webhook to change.
#[derive(Deserialize, ToSchema)]
#[schema(as = WebhookEdit)]
pub(super) struct Edit {
    /// Replaces the whole configuration: without `secret`, the secret is removed.
    config: Option<Config>,
    /// Replaces the subscribed events.
    events: Option<Vec<String>>,
    add_events: Option<Vec<String>>,
    remove_events: Option<Vec<String>>,
    active: Option<bool>,
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
    Input(body): Input<Edit>,
) -> Result<Json<Hook>, ApiError> {
    let (repo, seen) = managed(&app, &caller, at).await?;
    let words = || seen.hook.events.words().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let events = match (body.events, body.add_events, body.remove_events) {
        (None, None, None) => None,
        (events, add, remove) => {
            let mut events = events.unwrap_or_else(words);
            events.extend(add.into_iter().flatten());
            events.retain(|event| !remove.iter().flatten().any(|gone| gone == event));
            Some(events)
        }
    };
    let change = body.config.map_or_else(Change::default, |config| config.change(Secret::Remove));
    let change = Change { events, active: body.active, ..change };
    changed(&app, &caller, &repo, &seen, &change).await.map(|seen| Json(shape::hook(&app, &repo, &seen)))
}

async fn changed(app: &App, caller: &Caller, repo: &Repo, seen: &Seen, change: &Change) -> Result<Seen, ApiError> {
    let hook = edit::edit(&app.forge, caller, repo, seen.hook.id, change).await?;
    Ok(show::hook(&app.forge, caller, repo, &hook.id.to_string()).await?)
}

pub(super) async fn remove(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let (repo, seen) = managed(&app, &caller, at).await?;
    remove::remove(&app.forge, &caller, &repo, seen.hook.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn config(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
) -> Result<Json<HookConfig>, ApiError> {
    let (_, seen) = hook(&app, &caller, at).await?;
    Ok(Json(HookConfig::of(&seen.hook)))
}

pub(super) async fn edit_config(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
    Input(body): Input<Config>,
) -> Result<Json<HookConfig>, ApiError> {
    let (repo, seen) = managed(&app, &caller, at).await?;
    let seen = changed(&app, &caller, &repo, &seen, &body.change(Secret::Keep)).await?;
    Ok(Json(HookConfig::of(&seen.hook)))
}

pub(super) async fn ping(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let (repo, seen) = managed(&app, &caller, at).await?;
    ask::ping(&app.forge, &caller, &repo, &seen.hook).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn test(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let (repo, seen) = managed(&app, &caller, at).await?;
    ask::latest_push(&app.forge, &caller, &repo, &seen.hook).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn deliveries(
    State(app): State<App>,
    Who(caller): Who,
    Segments(at): RepoItemPath,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let (repo, seen) = hook(&app, &caller, at).await?;
    let before = keyset.before.map(DeliveryId::new);
    let found = show::deliveries(&app.forge, &seen.hook, before, keyset.limit()).await?;
    Ok(keyset.answer(&app, &found, |delivery| delivery.id.get(), |delivery| HookDelivery::of(&repo, delivery)))
}

pub(super) async fn delivery(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, id, delivery)): DeliveryPath,
) -> Result<Json<HookDeliveryDetail>, ApiError> {
    let (repo, seen) = hook(&app, &caller, (owner, name, id)).await?;
    let found = show::delivery(&app.forge, &seen.hook, &delivery).await?;
    Ok(Json(HookDeliveryDetail::of(&repo, &seen.hook, &found)))
}

pub(super) async fn redeliver(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, id, delivery)): DeliveryPath,
) -> Result<(StatusCode, Json<HookDelivery>), ApiError> {
    let (repo, seen) = managed(&app, &caller, (owner, name, id)).await?;
    let found = show::delivery(&app.forge, &seen.hook, &delivery).await?;
    let again = ask::redeliver(&app.forge, &caller, &repo, &seen.hook, found.id).await?;
    let queued = show::delivery(&app.forge, &seen.hook, &again.to_string()).await?;
    Ok((StatusCode::ACCEPTED, Json(HookDelivery::of(&repo, &queued))))
}
