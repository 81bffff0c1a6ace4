//! Events to publish and to store.

use abide_nostr::{Event, PublicKey, Signature};
use nostr::event::{Kind, UnsignedEvent};
use nostr::types::Timestamp;

pub(crate) use nostr::event::Tag;
pub(crate) use nostr::key::Keys;

pub(crate) type Secp = secp256k1::Secp256k1<secp256k1::All>;

/// Timestamp of the events, in seconds.
const AT: u64 = 1_700_000_000;

/// Text of a typical issue.
const TEXT: &str = "The build fails on a fresh clone: the lock file names a version that is not there any more. \
    Steps: clone, build. Expected: a binary. Seen: an error.";

/// A repository, and signed events about it.
pub(crate) struct Batch {
    pub announcement: Event,
    pub repo: String,
    pub events: Vec<Event>,
    keys: Keys,
    secp: Secp,
}

impl Batch {
    /// One more event about the repository, newer than all others.
    pub(crate) fn another(&self, number: usize) -> Event {
        let tags = [Tag::parse(["a", &self.repo]).expect("a tag has a name")];
        sign(&self.secp, &self.keys, 1621, AT + 1_000_000, tags, &format!("{number} {TEXT}"))
    }
}

/// A key pair with a predictable secret.
pub(crate) fn keys(number: u64) -> Keys {
    Keys::parse(&format!("{:064x}", number + 1)).expect("small numbers are keys")
}

pub(crate) fn sign(
    secp: &Secp,
    keys: &Keys,
    kind: u16,
    at: u64,
    tags: impl IntoIterator<Item = Tag>,
    content: &str,
) -> Event {
    let unsigned = UnsignedEvent::new(keys.public_key(), Timestamp::from_secs(at), Kind::from_u16(kind), tags, content);
    let id = unsigned.compute_id();
    let signature = keys.sign_schnorr_with_aux_rand(secp, id.as_bytes(), &[7; 32]);
    unsigned.add_signature(signature).expect("the signature is right")
}

/// A repository and `count` issues and comments, by twenty authors.
pub(crate) fn signed(count: usize) -> Batch {
    let secp = Secp::new();
    let owner = keys(0);
    let repo = format!("30617:{}:bench", owner.public_key());
    let named = [Tag::parse(["d", "bench"]).expect("a tag has a name")];
    let announcement = sign(&secp, &owner, 30_617, AT, named, "");
    let authors: Vec<Keys> = (1..=20).map(keys).collect();
    let mut events: Vec<Event> = Vec::with_capacity(count);
    for number in 0..count {
        let author = &authors[number % authors.len()];
        let content = format!("{number} {TEXT}");
        let mut tags = vec![Tag::parse(["a", &repo]).expect("a tag has a name")];
        let kind = if number.is_multiple_of(4) {
            tags.push(Tag::parse(["subject", "It fails"]).expect("a tag has a name"));
            1621
        } else {
            tags.push(Tag::parse(["p", &author.public_key().to_hex()]).expect("a tag has a name"));
            1111
        };
        events.push(sign(&secp, author, kind, AT + number as u64, tags, &content));
    }
    Batch { announcement, repo, events, keys: owner, secp }
}

/// Events about other repositories, without valid signatures; they are stored directly.
pub(crate) fn filling(count: usize) -> Vec<Event> {
    let authors: Vec<PublicKey> = (100..1_100).map(|number| keys(number).public_key()).collect();
    let event = |number: usize| {
        let author = authors[number % authors.len()];
        let repo = format!("30617:{}:repo-{}", authors[number * 7 % authors.len()], number % 500);
        let tags = [Tag::parse(["a", &repo]).expect("a tag has a name")];
        let kind = if number.is_multiple_of(4) { 1621 } else { 1111 };
        let (at, content) = (Timestamp::from_secs(AT + number as u64), format!("{number} {TEXT}"));
        let unsigned = UnsignedEvent::new(author, at, Kind::from_u16(kind), tags.clone(), content.clone());
        let id = unsigned.compute_id();
        Event::new(id, author, at, Kind::from_u16(kind), tags, content, Signature::from_byte_array([0; 64]))
    };
    (0..count).map(event).collect()
}

/// A coordinate and an author of [`filling`].
pub(crate) fn filled(number: usize) -> (String, PublicKey) {
    let author = |number: usize| keys(100 + (number % 1_000) as u64).public_key();
    (format!("30617:{}:repo-{}", author(number * 7), number % 500), author(number))
}
