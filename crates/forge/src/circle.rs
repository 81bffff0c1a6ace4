//! Announcements that decide the maintainers of a key's repository: its own, those of the keys that it lists, and so on.
//! They are looked up by author, so announcements of the same identifier by strangers are never read.

use crate::GraspSettings;
use crate::relay::{bytes_of, readable};
use abide_nostr::git::Announcement;
use abide_nostr::grasp::maintainers::{Model, maintainers};
use abide_nostr::{PublicKey, kinds};
use abide_store::nostr::events::Found;
use abide_store::nostr::{self, purgatory};
use abide_store::{Conn, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of announcements that are read for one repository: two hundred maintainers with a few KiB each, and the largest
/// announcement of a key that lists nobody.
const BYTES: i64 = 1 << 20;

/// Whether announcements that wait for their git data list maintainers too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    Served,
    ServedAndWaiting,
}

/// The announcements of a key and of all keys that it reaches.
#[derive(Debug, Default)]
pub(crate) struct Circle {
    /// Stored announcements that are visible.
    pub kept: Vec<Found>,
    pub waiting: Vec<purgatory::Announcement>,
    /// Keys of the maintainers, including the owner.
    pub members: BTreeSet<PublicKey>,
}

impl Circle {
    pub(crate) async fn load(
        conn: &mut Conn,
        settings: &GraspSettings,
        identifier: &str,
        owner: PublicKey,
        counting: Counting,
    ) -> Result<Self, StoreError> {
        let mut circle = Self { members: BTreeSet::from([owner]), ..Self::default() };
        let mut listed: BTreeMap<PublicKey, Vec<PublicKey>> = BTreeMap::new();
        let (mut asked, mut left) = (BTreeSet::new(), BYTES);
        // Each round asks for the keys that the round before found. Where their number is bounded, so are the rounds.
        loop {
            let next: Vec<[u8; 32]> = reached(settings, &circle.members, &listed)
                .filter(|key| asked.insert(*key))
                .map(|key| key.to_bytes())
                .collect();
            if next.is_empty() || left <= 0 {
                return Ok(circle);
            }
            let found = nostr::events::of_slot_by(conn, kinds::ANNOUNCEMENT, identifier, &next, left).await?;
            left -= bytes_of(found.iter().map(|found| found.json.as_str()));
            let found = found.into_iter().filter(|found| !found.hidden);
            let lists = |json: &str| announcement(settings, json).map(|known| (known.owner, known.maintainers));
            for found in found {
                listed.extend(lists(&found.json));
                circle.kept.push(found);
            }
            if counting == Counting::ServedAndWaiting {
                let waiting = purgatory::announcements_by(conn, identifier, &next, left.max(0)).await?;
                left -= bytes_of(waiting.iter().map(|entry| entry.json.as_str()));
                // An announcement that waits is newer than one that is kept beside it.
                listed.extend(waiting.iter().filter_map(|entry| lists(&entry.json)));
                circle.waiting.extend(waiting);
            }
            circle.members = maintainers(owner, &listed, settings.maintainers, settings.maintainer_bounds);
        }
    }
}

/// The keys whose announcements decide: the members, and in the reciprocal model the keys that members list, which may list
/// one back.
fn reached<'a>(
    settings: &GraspSettings,
    members: &'a BTreeSet<PublicKey>,
    listed: &'a BTreeMap<PublicKey, Vec<PublicKey>>,
) -> impl Iterator<Item = PublicKey> + 'a {
    let candidates = members.iter().filter_map(|key| listed.get(key)).flatten();
    let most = match settings.maintainers {
        Model::Recursive => 0,
        Model::Reciprocal => settings.maintainer_bounds.size,
    };
    members.iter().chain(candidates.take(most)).copied()
}

/// Parses a stored announcement.
pub(crate) fn announcement(settings: &GraspSettings, json: &str) -> Option<Announcement> {
    let event = readable(json)?;
    Announcement::parse(&event, &settings.limits).ok()
}
