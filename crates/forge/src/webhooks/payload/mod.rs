//! Payloads of deliveries, in GitHub's shapes ([`crate::github`]).
//!
//! A payload shows its subject as the repository's administrators see it when the consumer reads the event, about a second
//! after it happened. It is stored as a draft without texts that people wrote (`draft.rs`). Before its first attempt,
//! [`complete`] reads the texts from the live rows and the commits of a push from the repository.
//!
//! `details.rs`: the parts of each kind of event. `issue.rs`, `nostr.rs`, `push.rs`: their content. `repository.rs`:
//! repositories, also deleted ones. `sender.rs`: who caused an event.

mod details;
mod draft;
mod issue;
mod nostr;
mod push;
mod repository;
mod sender;

use super::Hook;
use crate::emit::Who;
use crate::github::{self, Repository};
use crate::{Fault, Forge};
use abide_core::event::{Body, Payload, Push, PushedCommit, PushedRef};
use abide_core::webhooks::{ContentType, HookEvent, Kind};
use abide_core::{HookId, RefUpdate, RepoId, UserId};
use abide_store::events::Numbered;
use abide_store::repos::pushes;
use abide_store::repos::{self, Repo};
use abide_store::webhooks::deliveries::{self, Delivery, NewDelivery};
use abide_store::{StoreError, Tx};
use details::Details;
use draft::{Draft, PushDraft};
use sender::Sender;
use serde::Serialize;

/// A draft, for any webhook that subscribes to its kind.
#[derive(Debug, Clone)]
pub(super) struct Message {
    kind: Kind,
    action: Option<&'static str>,
    payload: String,
}

impl Message {
    fn new(kind: Kind, action: Option<&'static str>, payload: &impl Serialize) -> Self {
        Self { kind, action, payload: text(payload) }
    }

    /// The row of the delivery to one webhook.
    pub(super) fn for_hook(&self, hook: HookId, guid: String, event: Option<(i64, i64)>) -> NewDelivery {
        NewDelivery {
            hook_id: hook,
            guid,
            event,
            kind: self.kind,
            action: self.action.map(str::to_owned),
            redelivery_of: None,
            payload: self.payload.clone(),
            content_type: None,
            draft: true,
        }
    }
}

/// Text of a payload, with sorted keys. Without the sorting, the order would depend on whether some dependency switches on
/// `preserve_order` of serde_json, as one of the tests does.
fn text(payload: &impl Serialize) -> String {
    let mut json = serde_json::to_value(payload).expect("payloads have text keys and no failing fields");
    json.sort_all_objects();
    json.to_string()
}

/// Payload of an event without commits.
#[derive(Debug, Serialize)]
struct EventPayload {
    action: Option<&'static str>,
    #[serde(flatten)]
    details: Details,
    repository: Repository,
    sender: Sender,
}

/// Payload of a ping.
#[derive(Debug, Serialize)]
struct PingPayload {
    zen: &'static str,
    hook_id: i64,
    hook: github::Hook,
    repository: Repository,
    sender: Sender,
}

/// The final payload and content type of a delivery, for its first attempt. Texts come from the live rows, so a text that
/// was edited or deleted while the delivery waited is not sent.
pub(super) async fn complete(forge: &Forge, hook: &Hook, delivery: &Delivery) -> Result<(String, ContentType), Fault> {
    let mut conn = forge.store().read().await?;
    if let Some(first) = delivery.redelivery_of {
        // The redelivery was requested while the first delivery waited; that one was sent since.
        let first = deliveries::by_id(&mut conn, hook.id, first).await?;
        if let Some(first) = first.filter(|first| !first.draft) {
            return Ok((first.payload, first.content_type.unwrap_or(hook.content_type)));
        }
    }
    let repo = repos::by_id(&mut conn, hook.repo_id, None).await?;
    let payload = match delivery.kind {
        Kind::Push => {
            drop(conn);
            push::complete(forge, repo, PushDraft::parse(&delivery.payload)?).await
        }
        kind => {
            let mut draft = Draft::parse(&delivery.payload)?;
            if let (Some(repo), Some(shown)) = (&repo, &mut draft.repository) {
                shown.describe(repo);
                if matches!(kind, Kind::Issues | Kind::IssueComment | Kind::PullRequest) {
                    issue::refresh(&mut conn, forge, repo, &mut draft).await?;
                    nostr::refresh(&mut conn, &mut draft).await?;
                }
            }
            text(&draft)
        }
    };
    Ok((payload, hook.content_type))
}

/// The messages of one webhook event; none if its subject is gone.
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
    let Some(details) = details::of(tx, forge, event, &body.payload, &repo, sent.kind).await? else {
        return Ok(Vec::new());
    };
    let repository = repository::draft(tx, forge, &repo).await?;
    let sender = match body.payload.nostr() {
        Some(addition) if event.actor.is_none() => Sender::signer(tx, forge, &addition.author).await?,
        _ => Sender::of(tx, forge, event.actor).await?,
    };
    let payload = EventPayload { action: sent.action, details, repository, sender };
    Ok(vec![Message::new(sent.kind, sent.action, &payload)])
}

/// One message for each ref that moved, up to a limit.
async fn pushed(tx: &mut Tx, forge: &Forge, event: &Numbered, push: &Push, repo: &Repo) -> Result<Vec<Message>, Fault> {
    // The row of the push has every ref; the event may have fewer.
    let mut updates = match push.push_id {
        Some(id) => pushes::updates(tx, id).await?,
        None => Vec::new(),
    };
    if updates.is_empty() {
        updates = push.refs().iter().filter_map(PushedRef::update).collect();
    }
    let mut messages = Vec::new();
    for update in updates.iter().take(forge.settings().webhooks.refs_per_push) {
        let of_event = push.refs().iter().find(|pushed| pushed.name == update.name.as_str());
        let commits = of_event.map(|pushed| &pushed.commits[..]).unwrap_or_default();
        messages.push(self::push(tx, forge, event.actor, repo, update, commits).await?);
    }
    Ok(messages)
}

/// Draft of a push of one ref, with the commits that its event names.
pub(super) async fn push(
    tx: &mut Tx,
    forge: &Forge,
    pusher: Option<UserId>,
    repo: &Repo,
    update: &RefUpdate,
    commits: &[PushedCommit],
) -> Result<Message, StoreError> {
    let sender = Sender::of(tx, forge, pusher).await?;
    let repository = repository::draft(tx, forge, repo).await?;
    let payload = push::PushPayload::new(forge, repo, update, commits, repository, sender);
    Ok(Message::new(Kind::Push, None, &payload))
}

/// Payload of a ping: the webhook itself.
pub(super) async fn ping(
    tx: &mut Tx,
    forge: &Forge,
    who: &Who,
    repo: &Repo,
    hook: &Hook,
) -> Result<Message, StoreError> {
    let payload = PingPayload {
        zen: "A repository is an identity with a life, not a path.",
        hook_id: hook.id.get(),
        hook: github::Hook::in_ping(forge, repo, hook),
        repository: repository::draft(tx, forge, repo).await?,
        sender: Sender::of(tx, forge, who.user).await?,
    };
    Ok(Message::new(Kind::Ping, None, &payload))
}
