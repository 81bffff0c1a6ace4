//! Admission of announcements.

use super::align::{LANE_WAIT, client_of};
use super::context::{GraspContext, Stage};
use super::life::{self, Fate};
use super::promote::describe;
use super::quota::Allowance;
use super::settle::{self, settle_after};
use super::{Halt, attached, ensure_room, entry, id, left, notice, seconds, stop};
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::relay::{Relay, to_record};
use crate::{Fault, Forge, GraspSettings};
use abide_core::RepoId;
use abide_core::event::{AnnouncementReplaced, Payload};
use abide_core::sync::attempts::Origin;
use abide_nostr::event::seconds as whole_seconds;
use abide_nostr::git::{Announcement, Service};
use abide_nostr::grasp::Answer;
use abide_nostr::grasp::announcement::{
    Access, Deleted, Facts, Known, Listing, Maintains, Verdict, Withdrawn, access, judge,
};
use abide_nostr::grasp::signer::Signer;
use abide_nostr::{Event, EventId, Rank, kinds, nip19};
use abide_outbound::RelayUrl;
use abide_store::nostr::events::deleted;
use abide_store::nostr::{self, purgatory};
use abide_store::repos::{self, Repo, purges};
use abide_store::sync::relays;
use abide_store::{StoreError, Tx};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Relays of one announcement that are followed.
const RELAYS: usize = 8;

/// Bytes of the URL of a relay that is followed.
const RELAY_BYTES: usize = 512;

/// Coordinate of a key's announcement, as deletions record it.
pub(super) fn target(event: &Event, identifier: &str) -> String {
    format!("a:{}:{}:{identifier}", kinds::ANNOUNCEMENT, event.pubkey.to_hex())
}

/// Decides about an announcement.
pub(super) async fn admit(
    forge: &Forge,
    event: &Event,
    announcement: Announcement,
    from: Option<IpAddr>,
    allowance: Allowance,
) -> Result<Answer, Fault> {
    let identifier = announcement.identifier.as_str().to_owned();
    let mut tries = 0;
    let done = loop {
        let mut conn = forge.store().read().await?;
        let context = GraspContext::load(&forge.settings().grasp, &mut conn, &identifier, event.pubkey).await?;
        drop(conn);
        let unit = Unit {
            event: event.clone(),
            announcement: announcement.clone(),
            access: access_of(forge, event, allowance.signer),
            allowance: allowance.clone(),
            lists_us: service(forge).is_some_and(|service| announcement.lists(&service)),
            maintains: maintains(&context, event),
            from,
            settings: forge.settings().grasp.clone(),
            grace: forge.settings().lifecycle.grace,
            delay: forge.settings().sync.delay(allowance.origin),
            relays: other_relays(&announcement, service(forge).as_ref()),
            ask_after: forge.settings().sync.delays.of(Origin::Published),
        };
        match forge.store().write(unit, |tx, unit| Box::pin(write_and_settle(tx, unit))).await {
            Ok(done) => break done,
            Err(Halt::Refused(refusal)) => return Ok(Answer::Refused(refusal)),
            // Another version of the announcement arrived at the same moment; look again.
            Err(Halt::Store(StoreError::Unique)) if tries < 5 => tries += 1,
            Err(Halt::Store(error)) => return Err(error.into()),
        }
    };
    // The announcement is stored, whatever fails from here on: the sweep and the queued job do the remaining work.
    if let Some(repo) = done.clear
        && let Err(fault) = life::clear_directory(forge, repo).await
    {
        tracing::warn!(error = %fault, repo = repo.get(), "cannot remove a directory; the sweep removes it");
    }
    if done.answer == Answer::Stored {
        Relay::of(forge).publish(&[Arc::new(event.clone())]);
    }
    if done.answer.accepted() {
        match client_of(forge, &event.pubkey, from).await {
            Ok(client) => {
                let client = client.waiting_at_most(LANE_WAIT);
                settle_after(forge, &identifier, event.pubkey, client).await;
            }
            Err(fault) => {
                tracing::warn!(error = %fault, identifier, "cannot settle an announcement; its job retries")
            }
        }
    }
    // If another maintainer's state governs the repository already, it was promoted by now.
    let served = done.answer == Answer::Waiting && matches!(super::waits(forge, &event.id).await, Ok(false));
    Ok(if served { Answer::Stored } else { done.answer })
}

/// The access that the operator's settings give an author.
fn access_of(forge: &Forge, event: &Event, signer: Signer) -> Access {
    let settings = &forge.settings().grasp;
    let listing = match (settings.deny.contains(&event.pubkey), settings.allow.contains(&event.pubkey)) {
        (true, _) => Listing::Denied,
        (false, true) => Listing::Allowed,
        (false, false) => Listing::Unlisted,
    };
    access(forge.settings().announce(), forge.settings().signup.mode, listing, signer)
}

/// This server as announcements name it.
pub(super) fn service(forge: &Forge) -> Option<Service> {
    Service::parse(&forge.settings().public_url).ok()
}

/// Relays that an announcement names, without this server: the first few, each once, in their normal spelling.
fn other_relays(announcement: &Announcement, ours: Option<&Service>) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for relay in announcement.relays.iter().filter(|relay| Service::of_relay(relay).as_ref() != ours) {
        let Ok(url) = relay.parse::<RelayUrl>() else { continue };
        let url = url.to_string();
        if urls.len() < RELAYS && url.len() <= RELAY_BYTES && !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// Whether the author maintains somebody else's repository of this identifier.
fn maintains(context: &GraspContext, event: &Event) -> Maintains {
    let mut found = Maintains::Nothing;
    for known in context.ruled_by(event.pubkey).filter(|known| known.owner() != event.pubkey) {
        match known.stage {
            Stage::Served(_) => return Maintains::Served,
            Stage::Waiting(..) => found = Maintains::Waiting,
            Stage::Beside => {}
        }
    }
    found
}

struct Unit {
    event: Event,
    announcement: Announcement,
    access: Access,
    allowance: Allowance,
    lists_us: bool,
    maintains: Maintains,
    from: Option<IpAddr>,
    settings: GraspSettings,
    grace: Duration,
    /// Delay before git data is fetched from its clone URLs; `None` if nothing is fetched.
    delay: Option<Duration>,
    /// Other relays that it names, and the time after which they are asked for its states while it waits.
    relays: Vec<String>,
    ask_after: Duration,
}

struct Done {
    answer: Answer,
    /// Repository whose directory must be deleted.
    clear: Option<RepoId>,
}

impl Done {
    fn of(answer: Answer) -> Self {
        Self { answer, clear: None }
    }
}

/// State of the author's repository on this server, locked until the unit ends.
struct Here {
    known: Known,
    deleted: Option<Deleted>,
    entry: Option<purgatory::Announcement>,
    repo: Option<Repo>,
}

async fn look(tx: &mut Tx, unit: &Unit) -> Result<Here, StoreError> {
    let (owner, identifier) = (unit.event.pubkey.to_bytes(), unit.announcement.identifier.as_str());
    let entry = purgatory::lock_announcement(tx, &owner, identifier).await?;
    let repo = nostr::repos::lock(tx, &owner, identifier).await?;
    let kept = nostr::events::in_slot(tx, kinds::ANNOUNCEMENT, &owner, identifier).await?;
    let rank =
        |id: [u8; 32], at: i64| Rank { created_at: u64::try_from(at).unwrap_or(0), id: EventId::from_byte_array(id) };
    let live = repo.as_ref().is_some_and(Repo::is_live);
    let known = match (&entry, &kept) {
        (Some(entry), _) if entry.repo_id.is_some() => Known::Waiting(rank(entry.event_id, entry.event_at)),
        (Some(entry), _) => Known::Beside(rank(entry.event_id, entry.event_at)),
        (None, Some(kept)) if live => Known::Served(rank(kept.id, kept.created_at)),
        (None, Some(kept)) if !kept.hidden => Known::Beside(rank(kept.id, kept.created_at)),
        (None, _) => Known::Nothing,
    };
    let noted = deleted::at(tx, &owner, &target(&unit.event, identifier)).await?;
    let by_id = deleted::at(tx, &owner, &format!("e:{}", unit.event.id.to_hex())).await?;
    let by_web = repo.as_ref().and_then(|repo| repo.deleted_at);
    // The row still exists, so the sweep has not begun to remove the repository: it can be restored even after the
    // grace period.
    let restorable = by_web.is_some();
    let at = [noted, by_id, by_web.map(|at| i64::try_from(whole_seconds(at)).unwrap_or(i64::MAX))];
    let deleted = at.into_iter().flatten().max().map(|at| Deleted { at: u64::try_from(at).unwrap_or(0), restorable });
    Ok(Here { known, deleted, entry, repo })
}

/// Writes the decision, and queues the job that settles the identifier.
async fn write_and_settle(tx: &mut Tx, unit: &Unit) -> Result<Done, Halt> {
    let done = write(tx, unit).await?;
    if done.answer.accepted() {
        let owner = unit.event.pubkey.to_bytes();
        let identifier = unit.announcement.identifier.as_str();
        settle::enqueue_named(tx, &owner, identifier).await?;
        let now = tx.now();
        let from_at = if done.answer == Answer::Stored { now } else { now.plus(unit.ask_after) };
        relays::name(tx, &owner, identifier, &unit.relays, from_at).await?;
        // States may wait that an earlier announcement left, or that lack the URLs which this one names.
        if !purgatory::states(tx, identifier, 1, i64::MAX).await?.is_empty() {
            notice(tx, identifier, unit.delay).await?;
        }
    }
    Ok(done)
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Done, Halt> {
    let here = look(tx, unit).await?;
    let facts = Facts {
        rank: unit.announcement.rank,
        lists_us: unit.lists_us,
        access: unit.access,
        known: here.known,
        maintains: unit.maintains,
        deleted: here.deleted,
    };
    let (identifier, owner) = (unit.announcement.identifier.as_str(), unit.event.pubkey.to_bytes());
    let until = unit.settings.expiry.of_arrival(tx.now());
    let entry = entry(&unit.event, identifier, unit.from, until);
    match judge(&facts) {
        Verdict::Refuse(refusal) => Err(refusal.into()),
        Verdict::Wait => {
            unit.allowance.repo(tx).await?;
            ensure_room(tx, &unit.settings.caps, &entry).await?;
            unit.allowance.event(tx, entry.json.len()).await?;
            let repo = repos::reserve_id(tx).await?;
            purgatory::put_announcement(tx, &entry, Some(repo)).await?;
            Ok(Done::of(Answer::Waiting))
        }
        Verdict::ReplaceWaiting => {
            left("announcement", "replacement");
            unit.allowance.replacement(tx, entry.json.len()).await?;
            let repo = here.entry.and_then(|entry| entry.repo_id);
            purgatory::put_announcement(tx, &entry, repo).await?;
            Ok(Done::of(Answer::Waiting))
        }
        Verdict::Replace => {
            unit.allowance.replacement(tx, entry.json.len()).await?;
            nostr::events::insert(tx, &to_record(&unit.event)).await?;
            if let Some(repo) = &here.repo {
                describe(tx, repo, &unit.announcement).await?;
                let who = author(tx, unit).await?;
                let payload = Payload::AnnouncementReplaced(AnnouncementReplaced { event: unit.event.id.to_hex() });
                audit_repo(tx, &who, AuditAction::AnnouncementReplaced, repo, payload.details()).await?;
                emit(tx, &who, Subject::Repo(repo), repo.visibility.into(), payload).await?;
            }
            Ok(Done::of(Answer::Stored))
        }
        Verdict::Restore => {
            let Some(repo) = here.repo else { return Err(StoreError::Missing.into()) };
            unit.allowance.replacement(tx, entry.json.len()).await?;
            let who = author(tx, unit).await?;
            life::restore(tx, &unit.settings, &who, &repo).await.map_err(stop)?;
            nostr::events::insert(tx, &to_record(&unit.event)).await?;
            describe(tx, &repo, &unit.announcement).await?;
            Ok(Done::of(Answer::Stored))
        }
        Verdict::Beside { served, withdrawn } => {
            let clear = withdraw(tx, unit, withdrawn, &here).await?;
            let answer = if served {
                match here.known {
                    Known::Nothing => unit.allowance.event(tx, entry.json.len()).await?,
                    _ => unit.allowance.replacement(tx, entry.json.len()).await?,
                }
                nostr::events::insert(tx, &to_record(&unit.event)).await?;
                // Withdrawing the repository hides this slot. The new announcement supports other maintainers'
                // repositories, so show it.
                nostr::events::set_hidden(tx, &id(&unit.event.id), false).await?;
                Answer::Stored
            } else {
                if here.entry.is_none() {
                    ensure_room(tx, &unit.settings.caps, &entry).await?;
                    unit.allowance.event(tx, entry.json.len()).await?;
                }
                purgatory::put_announcement(tx, &entry, None).await?;
                Answer::Waiting
            };
            Ok(Done { answer, clear })
        }
        Verdict::Withdraw(withdrawn, refusal) => {
            let clear = withdraw(tx, unit, Some(withdrawn), &here).await?;
            let note = target(&unit.event, identifier);
            deleted::note(tx, &owner, &note, seconds(&unit.event), &id(&unit.event.id)).await?;
            Ok(Done { answer: Answer::Refused(refusal), clear })
        }
    }
}

/// Withdraws the entry or repository that a newer announcement no longer lists on this server. Returns the repository
/// whose directory must be deleted.
async fn withdraw(tx: &mut Tx, unit: &Unit, what: Option<Withdrawn>, here: &Here) -> Result<Option<RepoId>, Halt> {
    match what {
        None => Ok(None),
        Some(Withdrawn::Entry) => {
            let Some(entry) = &here.entry else { return Ok(None) };
            purgatory::take_announcement(tx, entry).await?;
            left("announcement", "service change");
            attached::drop_with(tx, &entry.pubkey, &entry.identifier, "service change").await?;
            if let Some(repo) = entry.repo_id {
                purges::insert(tx, repo, &format!("{}/{}", nip19::npub(&unit.event.pubkey), entry.identifier)).await?;
            }
            Ok(entry.repo_id)
        }
        Some(Withdrawn::Repo) => {
            let Some(repo) = &here.repo else { return Ok(None) };
            let who = author(tx, unit).await?;
            life::soft_delete(tx, &unit.settings, &who, repo, unit.grace, Fate::Withdrawn).await.map_err(stop)?;
            Ok(None)
        }
    }
}

/// The author, as the logs name them.
async fn author(tx: &mut Tx, unit: &Unit) -> Result<Who, StoreError> {
    let user = nostr::repos::user_of(tx, &nip19::npub(&unit.event.pubkey)).await?;
    Ok(Who { user, ip: unit.from.map(|ip| ip.to_string()) })
}
