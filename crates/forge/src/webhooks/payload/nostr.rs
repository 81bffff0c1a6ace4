//! Threads that came by nostr, in the shapes of issues and pull requests. They have no number here: `number` is null, and
//! `nostr` names the event.

use super::repository::{Urls, person};
use crate::Forge;
use crate::relay::readable;
use crate::threads::emit;
use abide_core::event::NostrAddition;
use abide_nostr::git::{Issue, PrEvent, Status, title};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::accounts::user_keys;
use abide_store::repos::Repo;
use abide_store::{Conn, StoreError, Tx, nostr};
use serde_json::{Map, Value as Json, json};

type Said = Map<String, Json>;

/// Puts a thread into a message. `false` if the thread is gone.
pub(super) async fn thread(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    addition: &NostrAddition,
    is_merged: bool,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let Some((root, shape)) = root(tx, forge, repo, addition).await? else { return Ok(false) };
    if root.kind.as_u16() == kinds::ISSUE {
        said.insert("issue".into(), shape);
    } else {
        said.insert("number".into(), Json::Null);
        said.insert("pull_request".into(), pull(repo, &root, shape, is_merged));
    }
    Ok(true)
}

/// Puts a comment on a thread into a message. `false` if the thread or the comment is gone.
pub(super) async fn commented(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    addition: &NostrAddition,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let Some((root, shape)) = root(tx, forge, repo, addition).await? else { return Ok(false) };
    let Some(comment) = load(tx, &addition.event).await? else { return Ok(false) };
    said.insert("comment".into(), self::comment(tx, forge, repo, &root, &comment).await?);
    said.insert("issue".into(), shape);
    Ok(true)
}

/// The first event of a thread, and the thread in the shape of an issue.
async fn root(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    addition: &NostrAddition,
) -> Result<Option<(Event, Json)>, StoreError> {
    let Some(root) = load(tx, &addition.thread).await? else { return Ok(None) };
    let status = emit::status(tx, &forge.settings().grasp, repo, &root).await?;
    let shape = shape(tx, forge, repo, &root, status).await?;
    Ok(Some((root, shape)))
}

/// The signer: the account of a key, or the key itself.
pub(super) async fn signer(tx: &mut Tx, forge: &Forge, npub: &str) -> Result<Json, StoreError> {
    Ok(match user_keys::by_npub(tx, npub).await? {
        Some(user) => person(forge, user.id, user.handle().as_ref(), user.site_admin),
        None => json!({
            "login": npub,
            "id": null,
            "node_id": null,
            "avatar_url": "",
            "gravatar_id": "",
            "html_url": format!("{}/{npub}", forge.settings().public_url),
            "type": "User",
            "site_admin": false,
        }),
    })
}

async fn load(conn: &mut Conn, id: &str) -> Result<Option<Event>, StoreError> {
    let Ok(id) = EventId::from_hex(id) else { return Ok(None) };
    let found = nostr::events::by_id(conn, id.as_bytes()).await?.filter(|found| !found.hidden);
    Ok(found.and_then(|found| readable(&found.json)))
}

async fn author(tx: &mut Tx, forge: &Forge, key: &PublicKey) -> Result<Json, StoreError> {
    signer(tx, forge, &nip19::npub(key)).await
}

fn named(event: &Event) -> Json {
    json!({ "id": event.id.to_hex(), "kind": event.kind.as_u16(), "pubkey": event.pubkey.to_hex() })
}

fn at(event: &Event) -> String {
    let micros = event.created_at.as_secs().saturating_mul(1_000_000);
    abide_core::Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)).to_string()
}

/// The fields that issues and pull requests share. Title and text are put in before the first try, see [`refresh`].
async fn shape(tx: &mut Tx, forge: &Forge, repo: &Repo, root: &Event, status: Status) -> Result<Json, StoreError> {
    let page = Urls::of(forge, repo).page(&format!("/nostr/{}", root.id.to_hex()));
    let labels =
        Issue::parse(root).map(|issue| issue.labels).or_else(|_| PrEvent::parse(root).map(|found| found.labels));
    let labels: Vec<Json> = labels.unwrap_or_default().into_iter().map(|name| json!({ "name": name })).collect();
    let mut shape = json!({
        "id": null,
        "node_id": null,
        "number": null,
        "url": page,
        "html_url": page,
        "state": if matches!(status, Status::Open | Status::Draft) { "open" } else { "closed" },
        "draft": status == Status::Draft,
        "title": "",
        "body": null,
        "user": author(tx, forge, &root.pubkey).await?,
        "labels": labels,
        "assignee": null,
        "assignees": [],
        "milestone": null,
        "locked": false,
        "created_at": at(root),
        "updated_at": at(root),
        "nostr": named(root),
    });
    if root.kind.as_u16() != kinds::ISSUE {
        shape["pull_request"] = json!({ "url": page, "html_url": page });
    }
    Ok(shape)
}

fn pull(repo: &Repo, root: &Event, mut shape: Json, is_merged: bool) -> Json {
    let pr_event = PrEvent::parse(root).ok();
    let commit = pr_event.as_ref().and_then(|found| found.commit).map(|commit| commit.to_string());
    let branch = pr_event.and_then(|found| found.branch);
    shape["merged"] = is_merged.into();
    shape["head"] = json!({ "ref": branch, "sha": commit });
    shape["base"] = json!({ "ref": repo.default_branch.as_str() });
    shape
}

async fn comment(tx: &mut Tx, forge: &Forge, repo: &Repo, root: &Event, comment: &Event) -> Result<Json, StoreError> {
    let page = Urls::of(forge, repo).page(&format!("/nostr/{}", root.id.to_hex()));
    Ok(json!({
        "id": null,
        "node_id": null,
        "url": page,
        "html_url": format!("{page}#event-{}", comment.id.to_hex()),
        "issue_url": page,
        "body": "",
        "user": author(tx, forge, &comment.pubkey).await?,
        "created_at": at(comment),
        "updated_at": at(comment),
        "nostr": named(comment),
    }))
}

/// Puts titles and texts into what is said of a thread, from the events as they are now; a deleted event says nothing.
pub(super) async fn refresh(conn: &mut Conn, said: &mut Json) -> Result<(), StoreError> {
    for part in ["issue", "pull_request", "comment"] {
        let Some(id) = said[part]["nostr"]["id"].as_str() else { continue };
        let Some(event) = load(conn, id).await? else { continue };
        if part != "comment" {
            said[part]["title"] = title(&event).into();
        }
        said[part]["body"] = event.content.into();
    }
    Ok(())
}
