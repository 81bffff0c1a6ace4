//! Nostr events and repositories, stored as the relay and a push would store them.

use crate::beside::with_store;
use crate::support::{Person, person, query};
use abide_core::Timestamp;
use abide_nostr::event::to_json;
use abide_nostr::git::StatusEvent;
use abide_nostr::{Event, nip19};
use abide_store::nostr::events::{NewEvent, tag_key};
use abide_store::nostr::purgatory::{self, Entry};
use abide_store::nostr::{self};
use abide_store::{StoreError, repos};
use abide_testkit::{Key, Server};
use std::time::Duration;

/// A key as people write it.
pub fn npub(key: &Key) -> String {
    nip19::npub(&key.public())
}

/// Keeps events, as the relay does.
pub fn keep(server: &Server, events: &[Event]) {
    let events: Vec<NewEvent> = events.iter().map(new_event).collect();
    let kept: Result<_, StoreError> = with_store(server, async |store| {
        store.write(events, |tx, events| Box::pin(async move { nostr::events::insert_many(tx, events).await })).await
    });
    kept.expect("events are kept");
}

fn new_event(event: &Event) -> NewEvent {
    let value = |tag: &nostr_tag::Tag| (tag.0.chars().next(), tag.0.chars().count(), tag.1.clone());
    let tags: Vec<_> = nostr_tag::all(event).iter().map(value).collect();
    let slot = tags.iter().find(|(letter, len, _)| (*letter, *len) == (Some('d'), 1)).map(|(.., value)| value.clone());
    let mut keys: Vec<i64> = tags
        .iter()
        .filter(|(_, len, _)| *len == 1)
        .filter_map(|(letter, _, value)| Some(tag_key((*letter)?, value)))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    NewEvent {
        id: event.id.to_bytes(),
        pubkey: event.pubkey.to_bytes(),
        kind: event.kind.as_u16(),
        created_at: i64::try_from(event.created_at.as_secs()).expect("a time of our century"),
        slot: slot.filter(|_| (30_000..40_000).contains(&event.kind.as_u16())),
        expires_at: None,
        json: to_json(event),
        tags: keys,
        status_of: StatusEvent::parse(event).ok().map(|status| status.root.to_bytes()),
    }
}

mod nostr_tag {
    //! Tags by name and first value, from the event's own JSON.

    use abide_nostr::Event;
    use serde_json::Value;

    pub struct Tag(pub String, pub String);

    pub fn all(event: &Event) -> Vec<Tag> {
        let json: Value = serde_json::from_str(&abide_nostr::event::to_json(event)).expect("an event is JSON");
        let tags = json["tags"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        tags.iter().map(|tag| Tag(text(&tag[0]), text(&tag[1]))).collect()
    }
}

/// Bytes as SQL writes them.
pub fn blob(server: &Server, bytes: &[u8]) -> String {
    let digits = hex::encode(bytes);
    if server.database().url().is_some() { format!("'\\x{digits}'") } else { format!("X'{digits}'") }
}

/// A repository that a key governs, with git data and its announcement: made by someone, then handed to the key as a
/// promotion would have. Its number.
pub fn governed(server: &Server, key: &Key, identifier: &str, push: impl FnOnce(&Person)) -> i64 {
    let maker = person(server, "maker");
    let id = maker.create(server, "tool", false)["id"].as_i64().expect("a repository has a number");
    push(&maker);
    let npub = npub(key);
    let owner: Result<_, StoreError> = with_store(server, async |store| {
        store.write(npub, |tx, npub| Box::pin(async move { nostr::repos::user_for(tx, npub).await })).await
    });
    let owner = owner.expect("an account is made");
    query(server, &format!("UPDATE repos SET owner_id = {owner}, governance = 'nostr' WHERE id = {id}"));
    let pubkey = blob(server, key.public().as_bytes());
    query(
        server,
        &format!(
            "INSERT INTO nostr_repos (repo_id, pubkey, identifier) VALUES ({id}, {pubkey}, '{}')",
            quoted(identifier)
        ),
    );
    keep(server, &[key.announcement(Key::now() - 100, identifier, &server.url())]);
    id
}

/// Text as SQL quotes it.
pub fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

fn entry(event: &Event, identifier: &str, until: Timestamp) -> Entry {
    Entry {
        event_id: event.id.to_bytes(),
        pubkey: event.pubkey.to_bytes(),
        identifier: identifier.to_owned(),
        event_at: i64::try_from(event.created_at.as_secs()).expect("a time of our century"),
        json: to_json(event),
        address: None,
        expires_at: until,
    }
}

/// Puts an announcement, and a state if there is one, where they wait.
pub fn wait(server: &Server, identifier: &str, announcement: Event, state: Option<Event>) {
    let unit = (identifier.to_owned(), announcement, state);
    let put: Result<(), StoreError> = with_store(server, async |store| {
        store
            .write(unit, |tx, (identifier, announcement, state)| {
                Box::pin(async move {
                    let until = in_a_while();
                    let id = repos::reserve_id(tx).await?;
                    purgatory::put_announcement(tx, &entry(announcement, identifier, until), Some(id)).await?;
                    if let Some(state) = state {
                        purgatory::put_state(tx, &entry(state, identifier, until)).await?;
                    }
                    Ok(())
                })
            })
            .await
    });
    put.expect("it waits");
}

/// Puts states where they wait, whoever signed them.
pub fn wait_states(server: &Server, identifier: &str, states: Vec<Event>) {
    let unit = (identifier.to_owned(), states);
    let put: Result<(), StoreError> = with_store(server, async |store| {
        store
            .write(unit, |tx, (identifier, states)| {
                Box::pin(async move {
                    for state in states {
                        purgatory::put_state(tx, &entry(state, identifier, in_a_while())).await?;
                    }
                    Ok(())
                })
            })
            .await
    });
    put.expect("they wait");
}

fn in_a_while() -> Timestamp {
    let now = i64::try_from(Key::now()).expect("a time of our century");
    Timestamp::from_micros(now * 1_000_000).plus(Duration::from_secs(1800))
}
