//! Payloads of deliveries, in GitHub's shapes.
//!
//! Everything is as the repository's administrators see it, at the moment in which an event is taken in: about a second
//! after it happened. Texts that people wrote are those of the first try: a delivery that waits holds none. The API has the
//! same names and values. `details.rs`: the parts by kind of event. `repository.rs`: repositories and people. `issue.rs`:
//! issues. `nostr.rs`: threads that came by nostr. `push.rs`: pushes, whose commits are read from the repository before the
//! first try.

mod details;
mod issue;
mod nostr;
mod push;
mod repository;

use super::Hook;
use crate::emit::Who;
use crate::{Fault, Forge};
use abide_core::event::{Body, Payload, Push, PushedRef};
use abide_core::webhooks::{ContentType, HookEvent, Kind};
use abide_core::{HookId, RefUpdate, RepoId, UserId};
use abide_store::accounts::users;
use abide_store::events::Numbered;
use abide_store::repos::pushes;
use abide_store::repos::{self, Repo};
use abide_store::webhooks::deliveries::{self, Delivery, NewDelivery};
use abide_store::{StoreError, Tx};
use serde_json::{Map, Value as Json, json};

/// Something to be sent.
#[derive(Debug, Clone)]
pub(super) struct Message {
    kind: Kind,
    action: Option<&'static str>,
    payload: Json,
}

impl Message {
    /// A draft: what people wrote is left out of it, and read from the live rows when it is sent first.
    fn new(kind: Kind, action: Option<&'static str>, mut said: Json) -> Self {
        if said["repository"].is_object() {
            said["repository"]["description"] = Json::Null;
        }
        issue::blank(&mut said);
        Self { kind, action, payload: said }
    }

    /// The same for one hook.
    pub(super) fn for_hook(&self, hook: HookId, guid: String, event: Option<(i64, i64)>) -> NewDelivery {
        NewDelivery {
            hook_id: hook,
            guid,
            event,
            kind: self.kind,
            action: self.action.map(str::to_owned),
            redelivery_of: None,
            payload: self.payload.to_string(),
            content_type: None,
            draft: true,
        }
    }
}

/// The payload and content type of a delivery, from its first try on. The commits of a push are read from the repository. Texts are those of
/// the live rows, so that what was removed or edited away while a delivery waited is not sent.
pub(super) async fn complete(forge: &Forge, hook: &Hook, delivery: &Delivery) -> Result<(String, ContentType), Fault> {
    let mut said: Json = serde_json::from_str(&delivery.payload).map_err(|error| Fault::Internal(error.to_string()))?;
    let mut conn = forge.store().read().await?;
    if let Some(first) = delivery.redelivery_of {
        // Asked for while the first one waited, which was sent since.
        let first = deliveries::by_id(&mut conn, hook.id, first).await?;
        if let Some(first) = first.filter(|first| !first.draft) {
            return Ok((first.payload, first.content_type.unwrap_or(hook.content_type)));
        }
    }
    let repo = repos::by_id(&mut conn, hook.repo_id, None).await?;
    if let Some(repo) = repo.as_ref().filter(|_| said["repository"].is_object()) {
        said["repository"]["description"] = text(repo.description.clone());
        if matches!(delivery.kind, Kind::Issues | Kind::IssueComment | Kind::PullRequest) {
            issue::refresh(&mut conn, forge, repo, &mut said).await?;
            nostr::refresh(&mut conn, &mut said).await?;
        }
    }
    drop(conn);
    let payload = match delivery.kind {
        Kind::Push => push::complete(forge, repo, said).await?,
        _ => said.to_string(),
    };
    Ok((payload, hook.content_type))
}

/// An optional text, as GitHub gives it.
fn text(text: String) -> Json {
    if text.is_empty() { Json::Null } else { text.into() }
}

/// The messages of one webhook event. None, if their subject is gone.
pub(super) async fn of_event(
    tx: &mut Tx,
    forge: &Forge,
    event: &Numbered,
    body: &Body,
    repo_id: RepoId,
    sent: HookEvent,
) -> Result<Vec<Message>, Fault> {
    let found = repos::by_id(tx, repo_id, None).await?;
    let Some(repo) = found.or_else(|| repository::kept(event, body)) else { return Ok(Vec::new()) };
    if let Payload::Push(push) = &body.payload {
        return pushed(tx, forge, event, push, &repo).await;
    }
    let mut said = Map::new();
    said.insert("action".into(), sent.action.into());
    if !details::put(tx, forge, event, &body.payload, &repo, sent.kind, &mut said).await? {
        return Ok(Vec::new());
    }
    said.insert("repository".into(), repository::full(tx, forge, &repo).await?);
    let sender = match body.payload.nostr() {
        Some(addition) if event.actor.is_none() => nostr::signer(tx, forge, &addition.author).await?,
        _ => someone(tx, forge, event.actor).await?,
    };
    said.insert("sender".into(), sender);
    Ok(vec![Message::new(sent.kind, sent.action, Json::Object(said))])
}

/// One message for each ref that moved, up to a limit.
async fn pushed(tx: &mut Tx, forge: &Forge, event: &Numbered, push: &Push, repo: &Repo) -> Result<Vec<Message>, Fault> {
    // The row of the push has every ref; the event may have less.
    let mut updates = match push.push_id {
        Some(id) => pushes::updates(tx, id).await?,
        None => Vec::new(),
    };
    if updates.is_empty() {
        updates = push.refs().iter().filter_map(PushedRef::update).collect();
    }
    let mut messages = Vec::new();
    for update in updates.iter().take(forge.settings().webhooks.refs_per_push) {
        let mut message = self::push(tx, forge, event.actor, repo, update).await?;
        push::remember(forge, repo, push, &mut message.payload);
        messages.push(message);
    }
    Ok(messages)
}

/// Payload of a push of one ref, without its commits.
pub(super) async fn push(
    tx: &mut Tx,
    forge: &Forge,
    pusher: Option<UserId>,
    repo: &Repo,
    update: &RefUpdate,
) -> Result<Message, StoreError> {
    let sender = someone(tx, forge, pusher).await?;
    let repository = repository::full(tx, forge, repo).await?;
    let payload = push::draft(forge, repo, update, repository, sender);
    Ok(Message::new(Kind::Push, None, payload))
}

/// Payload of a ping: the webhook itself.
pub(super) async fn ping(
    tx: &mut Tx,
    forge: &Forge,
    who: &Who,
    repo: &Repo,
    hook: &Hook,
) -> Result<Message, StoreError> {
    let payload = json!({
        "zen": "A repository is an identity with a life, not a path.",
        "hook_id": hook.id.get(),
        "hook": described(forge, repo, hook),
        "repository": repository::full(tx, forge, repo).await?,
        "sender": someone(tx, forge, who.user).await?,
    });
    Ok(Message::new(Kind::Ping, None, payload))
}

/// A hook as its receiver may see it.
fn described(forge: &Forge, repo: &Repo, hook: &Hook) -> Json {
    let at = format!("{}/api/v3/repos/{}/hooks/{}", forge.settings().public_url, repo.slug(), hook.id);
    json!({
        "type": "Repository",
        "id": hook.id.get(),
        "name": "web",
        "active": hook.active,
        "events": hook.events.words(),
        "config": {
            "url": hook.url,
            "content_type": ContentType::as_str(hook.content_type),
            "insecure_ssl": "0",
            "secret": hook.secret.as_ref().map(|_| "********"),
        },
        "created_at": hook.created_at.to_string(),
        "updated_at": hook.updated_at.to_string(),
        "url": at,
        "ping_url": format!("{at}/pings"),
        "test_url": format!("{at}/tests"),
        "deliveries_url": format!("{at}/deliveries"),
    })
}

/// Who did something; nobody is the server itself.
async fn someone(tx: &mut Tx, forge: &Forge, id: Option<UserId>) -> Result<Json, StoreError> {
    let found = match id {
        Some(id) => users::by_id(tx, id).await?,
        None => None,
    };
    Ok(match (found, id) {
        (Some(user), _) => repository::person(forge, user.id, user.handle().as_ref(), user.site_admin),
        (None, Some(id)) => repository::person(forge, id, None, false),
        (None, None) => repository::server(forge),
    })
}
