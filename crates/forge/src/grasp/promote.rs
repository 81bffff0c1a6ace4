//! Promotion out of purgatory: a repository with git data gets its row, and its announcement is served. Everything
//! happens in the transaction that ends the push.

use super::authority::GraspPushes;
use super::signed::{Signed, serve_state};
use super::{attached, context, left, spread};
use crate::attention::watch;
use crate::circle::announcement;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit, emit_key_account};
use crate::git::push::{Brought, finish};
use crate::relay::{readable, to_record};
use crate::{Fault, Forge, GraspSettings};
use abide_core::event::{AnnouncementPromoted, Payload, RepoCreated};
use abide_core::repo::{Governance, Visibility};
use abide_core::{RefName, RefUpdate, RepoId, RepoName, UserId};
use abide_nostr::git::{Announcement, Identifier};
use abide_nostr::grasp::names::forge_names;
use abide_nostr::{Event, PublicKey, nip19};
use abide_store::accounts::users;
use abide_store::leases::{self, Lease};
use abide_store::nostr::{self, purgatory};
use abide_store::repos::pushes::{self, Intent, Outcome};
use abide_store::repos::redirects;
use abide_store::repos::{self, Content, NewRepo, Repo};
use abide_store::sync::relays;
use abide_store::{StoreError, Tx};
use serde_json::json;
use std::collections::BTreeMap;

/// A description is one line in a list; longer text is cut.
const LONGEST_DESCRIPTION: usize = 350;

/// Data that is written when a waiting repository has its git data in place.
#[derive(Debug, Clone)]
pub(super) struct Promotion {
    pub settings: GraspSettings,
    pub entry: purgatory::Announcement,
    pub id: RepoId,
    pub event: Event,
    pub announcement: Announcement,
    /// Announcements of maintainers that wait beside this one.
    pub beside: Vec<(purgatory::Announcement, Event)>,
    pub lease: Lease,
    pub transport: &'static str,
    pub updates: Vec<RefUpdate>,
    pub brought: Brought,
    pub head: RefName,
    pub signed: Signed,
    pub actor: Option<UserId>,
    pub ip: Option<String>,
}

/// Writes the promotion, and returns the events that waited with it and are served from now on. `None` if the
/// announcement no longer waits: it expired, was deleted, or a newer one replaced it.
pub(super) async fn write(tx: &mut Tx, promotion: &Promotion) -> Result<Option<Vec<Event>>, Fault> {
    let Promotion { entry, id, announcement, .. } = promotion;
    leases::check(tx, &promotion.lease).await?;
    if !purgatory::take_announcement(tx, entry).await? {
        return Ok(None);
    }
    let owner = account(tx, &nip19::npub(&announcement.owner)).await?;
    let name = free_name(tx, owner, &announcement.identifier).await?;
    let new = NewRepo {
        owner_id: owner,
        name: name.clone(),
        description: description(announcement),
        visibility: Visibility::Public,
        governance: Governance::Nostr,
        default_branch: promotion.head.clone(),
    };
    let content = Content { fork_of: None, pushed_at: Some(tx.now()) };
    repos::insert_filled(tx, *id, &new, content).await?;
    nostr::repos::insert(tx, *id, &entry.pubkey, &entry.identifier).await?;
    relays::promoted(tx, &entry.pubkey, &entry.identifier).await?;
    redirects::take(tx, owner, &name, *id, Some(owner).into()).await?;
    nostr::events::insert(tx, &to_record(&promotion.event)).await?;
    left("announcement", "promotion");
    let mut attached = attached::promote(tx, &promotion.settings, &entry.pubkey, &entry.identifier).await?;
    spread::enqueue_for(tx, *id).await?;
    for (waiting, event) in &promotion.beside {
        if purgatory::take_announcement(tx, waiting).await? {
            nostr::events::insert(tx, &to_record(event)).await?;
            left("announcement", "promotion");
            attached.extend(attached::promote(tx, &promotion.settings, &waiting.pubkey, &waiting.identifier).await?);
        }
    }
    // A key without a username reads no notifications, so it watches nothing.
    if users::by_id(tx, owner).await?.is_some_and(|user| user.name.is_some()) {
        watch::on_ownership(tx, owner, *id).await?;
    }
    let repo = repos::by_id(tx, *id, None).await?.ok_or(StoreError::Missing)?;
    let who = Who { user: promotion.actor.or(Some(owner)), ip: promotion.ip.clone() };
    let promoted = Payload::AnnouncementPromoted(AnnouncementPromoted {
        pubkey: hex::encode(entry.pubkey),
        identifier: entry.identifier.clone(),
    });
    audit_repo(tx, &who, AuditAction::AnnouncementPromoted, &repo, promoted.details()).await?;
    let meta = json!({ "slug": repo.slug(), "visibility": repo.visibility.as_str() });
    audit_repo(tx, &who, AuditAction::RepoCreated, &repo, meta).await?;
    let created = Payload::RepoCreated(RepoCreated { default_branch: repo.default_branch.to_string() });
    for payload in [created, promoted] {
        emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    }
    let intent = Intent {
        repo_id: *id,
        actor: who.user,
        transport: promotion.transport,
        incoming: String::new(),
        updates: promotion.updates.clone(),
        signed: Some(promotion.signed.encode()),
    };
    let push = pushes::begin(tx, &intent, &promotion.lease).await?;
    finish(tx, &push, &GraspPushes(promotion.settings.clone()), &promotion.brought, None, Outcome::Done, &who).await?;
    crate::git::maintain::enqueue(tx, *id).await?;
    leases::release(tx, &promotion.lease).await?;
    attached.extend(untracking(tx, promotion).await?);
    Ok(Some(attached))
}

/// Serves the states without refs that waited: there is no git data that would bring them out. The newest of each
/// maintainer; the state that was followed is stored by now, and has taken older ones of its author with it.
async fn untracking(tx: &mut Tx, promotion: &Promotion) -> Result<Vec<Event>, Fault> {
    let Promotion { settings, announcement, .. } = promotion;
    let context =
        context::GraspContext::load(settings, tx, announcement.identifier.as_str(), announcement.owner).await?;
    let maintainers = context.maintainers(announcement.owner);
    let mut newest: BTreeMap<PublicKey, &context::SignedState> = BTreeMap::new();
    for said in context.waiting.iter().filter(|said| !said.state.tracks()) {
        let author = said.state.author;
        let before = newest.get(&author).is_some_and(|other| other.state.rank > said.state.rank);
        if maintainers.contains(&author) && !before {
            newest.insert(author, said);
        }
    }
    let mut served = Vec::with_capacity(newest.len());
    for said in newest.into_values() {
        serve_state(tx, &said.event).await?;
        served.push(said.event.clone());
    }
    Ok(served)
}

/// The account of a key; created here if the key has none. Nobody logged in, so no address is recorded.
async fn account(tx: &mut Tx, npub: &str) -> Result<UserId, StoreError> {
    match nostr::repos::user_of(tx, npub).await? {
        Some(user) => Ok(user),
        None => {
            let user = nostr::repos::user_for(tx, npub).await?;
            emit_key_account(tx, user, npub, None).await?;
            Ok(user)
        }
    }
}

/// The first free name among the owner's repositories.
pub(super) async fn free_name(tx: &mut Tx, owner: UserId, identifier: &Identifier) -> Result<RepoName, StoreError> {
    for name in forge_names(identifier) {
        if !repos::name_taken(tx, owner, &name).await? {
            return Ok(name);
        }
    }
    Err(StoreError::Missing)
}

/// Description of a repository, from its announcement.
pub(super) fn description(announcement: &Announcement) -> String {
    let text = announcement.description.as_deref().unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(LONGEST_DESCRIPTION).collect()
}

/// The announcements that wait beside this one and are promoted with it.
pub(super) async fn waiting_beside(
    forge: &Forge,
    context: &context::GraspContext,
    entry: &purgatory::Announcement,
    owner: abide_nostr::PublicKey,
) -> Result<Vec<(purgatory::Announcement, Event)>, Fault> {
    let maintainers = context.maintainers(owner);
    let authors: Vec<_> = maintainers.iter().map(|author| author.to_bytes()).collect();
    let mut conn = forge.store().read().await?;
    let waiting = purgatory::announcements_by(&mut conn, &entry.identifier, &authors, context::OTHER_BYTES).await?;
    drop(conn);
    let beside = waiting.into_iter().filter(|other| other.repo_id.is_none()).filter_map(|other| {
        let listed = announcement(&forge.settings().grasp, &other.json)?;
        let event = readable(&other.json)?;
        maintainers.contains(&listed.owner).then_some((other, event))
    });
    Ok(beside.collect())
}

/// Updates a repository's description from its newest announcement.
pub(super) async fn describe(tx: &mut Tx, repo: &Repo, announcement: &Announcement) -> Result<(), StoreError> {
    let wanted = description(announcement);
    if wanted != repo.description {
        repos::set_about(tx, repo.id, &wanted, &repo.default_branch).await?;
    }
    Ok(())
}
