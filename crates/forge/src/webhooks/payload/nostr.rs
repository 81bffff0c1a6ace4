//! Issues, pull requests and comments that came by nostr. They have no number here: `number` is null, and `nostr` names the
//! event.

use super::details::Details;
use super::draft::{CommentDraft, Draft, IssueDraft};
use super::sender::Sender;
use crate::Forge;
use crate::github::{SimpleUser, Urls, time};
use crate::relay::readable;
use crate::threads::emit;
use abide_core::Timestamp;
use abide_core::event::NostrAddition;
use abide_nostr::git::{Issue, PrEvent, Status, title};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::repos::Repo;
use abide_store::{Conn, StoreError, Tx, nostr};
use serde::Serialize;

/// Issue or pull request of nostr. Title and text are filled in before the first attempt ([`refresh`]).
#[derive(Debug, Serialize)]
pub(super) struct Thread {
    id: Option<i64>,
    node_id: Option<String>,
    number: Option<i64>,
    url: String,
    html_url: String,
    state: &'static str,
    draft: bool,
    title: &'static str,
    body: Option<String>,
    user: Sender,
    labels: Vec<LabelName>,
    assignee: Option<SimpleUser>,
    assignees: Vec<SimpleUser>,
    milestone: Option<i64>,
    locked: bool,
    created_at: String,
    updated_at: String,
    nostr: EventName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_request: Option<Links>,
}

/// A pull request, in its own events.
#[derive(Debug, Serialize)]
pub(super) struct PullRequest {
    #[serde(flatten)]
    thread: Thread,
    merged: bool,
    head: Head,
    base: Base,
}

#[derive(Debug, Serialize)]
struct LabelName {
    name: String,
}

#[derive(Debug, Serialize)]
struct EventName {
    id: String,
    kind: u16,
    pubkey: String,
}

#[derive(Debug, Serialize)]
struct Links {
    url: String,
    html_url: String,
}

#[derive(Debug, Serialize)]
struct Head {
    #[serde(rename = "ref")]
    branch: Option<String>,
    sha: Option<String>,
}

#[derive(Debug, Serialize)]
struct Base {
    #[serde(rename = "ref")]
    branch: String,
}

/// Comment of nostr, in the draft of a payload.
#[derive(Debug, Serialize)]
struct Comment {
    id: Option<i64>,
    node_id: Option<String>,
    url: String,
    html_url: String,
    issue_url: String,
    body: &'static str,
    user: Sender,
    created_at: String,
    updated_at: String,
    nostr: EventName,
}

/// Details with an issue or pull request; `None` if its first event is gone.
pub(super) async fn thread(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    addition: &NostrAddition,
    is_merged: bool,
) -> Result<Option<Details>, StoreError> {
    let Some((root, thread)) = root(tx, forge, repo, addition).await? else { return Ok(None) };
    Ok(Some(if root.kind.as_u16() == kinds::ISSUE {
        Details { issue: Some(IssueDraft::of(&thread)), ..Details::default() }
    } else {
        let pull_request = PullRequest::of(repo, &root, thread, is_merged);
        Details { number: Some(None), pull_request: Some(pull_request), ..Details::default() }
    }))
}

/// Details with a comment and its thread; `None` if one of them is gone.
pub(super) async fn commented(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    addition: &NostrAddition,
) -> Result<Option<Details>, StoreError> {
    let Some((root, thread)) = root(tx, forge, repo, addition).await? else { return Ok(None) };
    let Some(comment) = load(tx, &addition.event).await? else { return Ok(None) };
    let url = thread_url(forge, repo, &root);
    let comment = Comment {
        id: None,
        node_id: None,
        html_url: format!("{url}#event-{}", comment.id.to_hex()),
        issue_url: url.clone(),
        url,
        body: "",
        user: author(tx, forge, &comment.pubkey).await?,
        created_at: at(&comment),
        updated_at: at(&comment),
        nostr: named(&comment),
    };
    let (issue, comment) = (IssueDraft::of(&thread), CommentDraft::of(&comment));
    Ok(Some(Details { issue: Some(issue), comment: Some(comment), ..Details::default() }))
}

/// The first event of a thread, and the thread in the shape of an issue.
async fn root(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    addition: &NostrAddition,
) -> Result<Option<(Event, Thread)>, StoreError> {
    let Some(root) = load(tx, &addition.thread).await? else { return Ok(None) };
    let status = emit::status(tx, &forge.settings().grasp, repo, &root).await?;
    let thread = Thread::of(tx, forge, repo, &root, status).await?;
    Ok(Some((root, thread)))
}

async fn load(conn: &mut Conn, id: &str) -> Result<Option<Event>, StoreError> {
    let Ok(id) = EventId::from_hex(id) else { return Ok(None) };
    let found = nostr::events::by_id(conn, id.as_bytes()).await?.filter(|found| !found.hidden);
    Ok(found.and_then(|found| readable(&found.json)))
}

async fn author(tx: &mut Tx, forge: &Forge, key: &PublicKey) -> Result<Sender, StoreError> {
    Sender::signer(tx, forge, &nip19::npub(key)).await
}

fn named(event: &Event) -> EventName {
    EventName { id: event.id.to_hex(), kind: event.kind.as_u16(), pubkey: event.pubkey.to_hex() }
}

fn at(event: &Event) -> String {
    let micros = event.created_at.as_secs().saturating_mul(1_000_000);
    time(Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)))
}

fn thread_url(forge: &Forge, repo: &Repo, root: &Event) -> String {
    Urls::of(forge, repo).page(&format!("/nostr/{}", root.id.to_hex()))
}

impl Thread {
    async fn of(tx: &mut Tx, forge: &Forge, repo: &Repo, root: &Event, status: Status) -> Result<Self, StoreError> {
        let url = thread_url(forge, repo, root);
        let labels =
            Issue::parse(root).map(|issue| issue.labels).or_else(|_| PrEvent::parse(root).map(|found| found.labels));
        let links = Links { url: url.clone(), html_url: url.clone() };
        Ok(Self {
            id: None,
            node_id: None,
            number: None,
            html_url: url.clone(),
            url,
            state: if matches!(status, Status::Open | Status::Draft) { "open" } else { "closed" },
            draft: status == Status::Draft,
            title: "",
            body: None,
            user: author(tx, forge, &root.pubkey).await?,
            labels: labels.unwrap_or_default().into_iter().map(|name| LabelName { name }).collect(),
            assignee: None,
            assignees: Vec::new(),
            milestone: None,
            locked: false,
            created_at: at(root),
            updated_at: at(root),
            nostr: named(root),
            pull_request: (root.kind.as_u16() != kinds::ISSUE).then_some(links),
        })
    }
}

impl PullRequest {
    fn of(repo: &Repo, root: &Event, thread: Thread, is_merged: bool) -> Self {
        let pr_event = PrEvent::parse(root).ok();
        let sha = pr_event.as_ref().and_then(|found| found.commit).map(|commit| commit.to_string());
        Self {
            thread,
            merged: is_merged,
            head: Head { branch: pr_event.and_then(|found| found.branch), sha },
            base: Base { branch: repo.default_branch.as_str().to_owned() },
        }
    }
}

/// Fills in titles and texts from the stored events. Texts of a deleted event stay empty.
pub(super) async fn refresh(conn: &mut Conn, draft: &mut Draft) -> Result<(), StoreError> {
    if let Some(issue) = &mut draft.issue
        && let Some(named) = &issue.nostr
        && let Some(event) = load(conn, &named.id).await?
    {
        issue.title = title(&event);
        issue.body = Some(event.content);
    }
    if let Some(pull_request) = &mut draft.pull_request
        && let Some(named) = &pull_request.nostr
        && let Some(event) = load(conn, &named.id).await?
    {
        pull_request.title = title(&event);
        pull_request.body = Some(event.content);
    }
    if let Some(comment) = &mut draft.comment
        && let Some(named) = &comment.nostr
        && let Some(event) = load(conn, &named.id).await?
    {
        comment.body = event.content;
    }
    Ok(())
}
