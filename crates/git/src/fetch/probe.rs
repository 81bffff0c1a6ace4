//! Asks a server which objects it has, without fetching them.

use super::discover::{MAX_LIST, Source};
use super::error::FetchError;
use super::offer::{MAX_REFS, Offer, OldOffer, V2Offer, listed};
use super::remote::RemoteRequest;
use super::reply::{Packets, ask, line};
use super::request::{self, MAX_HAVES};
use crate::ProtocolVersion;
use crate::pktline::Packet;
use abide_core::Oid;
use bytes::Bytes;
use gix::bstr::ByteSlice as _;
use std::collections::{HashMap, HashSet};

/// Largest size of the acknowledgments in a response to [`MAX_HAVES`] haves.
const MAX_ACKNOWLEDGMENTS: usize = 64 * (MAX_HAVES + 4);

/// Largest number of requests about the same objects. One is enough if the server has all of them, or none.
const ROUNDS: usize = 4;

/// Whether a server has an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Has,
    /// The server answered a question for exactly this object, and lacks it.
    Lacks,
    /// The server does not say. It may have the object.
    Unknown,
}

/// Presence of each object that was asked about, in the order of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe(pub Vec<(Oid, Presence)>);

impl Probe {
    /// Objects that the server may have, so that a fetch can try them.
    pub fn worth_fetching(&self) -> Vec<Oid> {
        self.0.iter().filter(|(_, presence)| *presence != Presence::Lacks).map(|(oid, _)| *oid).collect()
    }
}

impl Source<'_> {
    /// Asks which of these objects the server has. Objects are asked for by id where the server can answer that (git since
    /// 2.32); elsewhere only objects that refs point to are known. `Has` does not say that the object can be fetched.
    pub async fn probe(&self, oids: &[Oid]) -> Result<Probe, FetchError> {
        match self.offer() {
            Offer::V2(offer) if offer.wait_for_done => self.ask_haves(offer, oids).await,
            Offer::V2(offer) if offer.ls_refs => self.ask_refs(offer, oids).await,
            Offer::V2(_) => Ok(Probe(oids.iter().map(|oid| (*oid, Presence::Unknown)).collect())),
            Offer::Old(offer) => Ok(among_refs(offer, oids)),
        }
    }

    async fn ask_haves(&self, offer: &V2Offer, oids: &[Oid]) -> Result<Probe, FetchError> {
        let mut probe = Vec::with_capacity(oids.len());
        for some in oids.chunks(MAX_HAVES) {
            let presence = self.presence(offer, some).await?;
            probe.extend(some.iter().map(|oid| (*oid, presence[oid])));
        }
        Ok(Probe(probe))
    }

    /// git does not acknowledge a commit whose child stands before it in the request. So a missing acknowledgment means
    /// absence only if there is none at all, and objects without one are asked for again without the others.
    async fn presence(&self, offer: &V2Offer, oids: &[Oid]) -> Result<HashMap<Oid, Presence>, FetchError> {
        let mut presence: HashMap<Oid, Presence> = oids.iter().map(|oid| (*oid, Presence::Unknown)).collect();
        for _ in 0..ROUNDS {
            let is_open = |oid: &&Oid| presence[*oid] == Presence::Unknown;
            let open: Vec<Oid> = oids.iter().filter(is_open).copied().collect();
            if open.is_empty() {
                break;
            }
            let packets = self.command(request::haves(offer, &open), "the acknowledgments", MAX_ACKNOWLEDGMENTS);
            let common = acknowledged(packets.await?).await?;
            let found: Vec<Oid> = open.iter().filter(|oid| common.contains(oid)).copied().collect();
            if found.is_empty() {
                presence.extend(open.into_iter().map(|oid| (oid, Presence::Lacks)));
                break;
            }
            presence.extend(found.into_iter().map(|oid| (oid, Presence::Has)));
        }
        Ok(presence)
    }

    /// Looks for the objects among the refs, until all are found. A list over the limit is read no further.
    async fn ask_refs(&self, offer: &V2Offer, oids: &[Oid]) -> Result<Probe, FetchError> {
        let mut packets = self.command(request::ls_refs(offer), "the list of refs", MAX_LIST).await?;
        let mut missing: HashSet<Oid> = oids.iter().copied().collect();
        for _ in 0..MAX_REFS {
            let packet = match packets.next().await {
                Ok(packet) if !missing.is_empty() => packet,
                Ok(_) | Err(FetchError::TooLarge { .. }) => break,
                Err(error) => return Err(error),
            };
            match packet {
                Packet::Data(data) => listed_oids(line(&data), &mut missing)?,
                Packet::Flush => break,
                _ => return Err(FetchError::Protocol("the list of refs has more than one section".into())),
            }
        }
        let presence = |oid| if missing.contains(oid) { Presence::Unknown } else { Presence::Has };
        Ok(Probe(oids.iter().map(|oid| (*oid, presence(oid))).collect()))
    }

    async fn command(&self, body: Bytes, what: &'static str, limit: usize) -> Result<Packets, FetchError> {
        let request = RemoteRequest::command(body, ProtocolVersion::V2);
        Ok(Packets::new(ask(self.remote(), request).await?, what, limit))
    }
}

/// Reads the acknowledged objects.
async fn acknowledged(mut packets: Packets) -> Result<HashSet<Oid>, FetchError> {
    let mut common = HashSet::new();
    match packets.next().await? {
        Packet::Data(data) if line(&data) == b"acknowledgments" => {}
        other => return Err(FetchError::Protocol(format!("expected acknowledgments, not {other:?}"))),
    }
    loop {
        match packets.next().await? {
            Packet::Data(data) => match line(&data) {
                b"NAK" => {}
                line => {
                    let oid = line.strip_prefix(b"ACK ").and_then(|oid| Oid::from_hex(oid).ok());
                    let oid = oid.ok_or_else(|| FetchError::unexpected("expected ACK or NAK, not", line))?;
                    common.insert(oid);
                }
            },
            Packet::Flush => return Ok(common),
            _ => return Err(FetchError::Protocol("the server sends a pack that was not asked for".into())),
        }
    }
}

/// Takes the objects of a line `<oid> <name>[ peeled:<oid>]…` of `ls-refs` from the missing ones. An unborn HEAD has none.
fn listed_oids(line: &[u8], missing: &mut HashSet<Oid>) -> Result<(), FetchError> {
    if line.starts_with(b"unborn ") {
        return Ok(());
    }
    let (oid, rest) = listed(line)?;
    missing.remove(&oid);
    for peeled in rest.split_str(b" ").filter_map(|word| Oid::from_hex(word.strip_prefix(b"peeled:")?).ok()) {
        missing.remove(&peeled);
    }
    Ok(())
}

fn among_refs(offer: &OldOffer, oids: &[Oid]) -> Probe {
    let has = |oid| offer.tips.contains(oid) || offer.peeled.contains(oid);
    let presence = |oid| if has(oid) { Presence::Has } else { Presence::Unknown };
    Probe(oids.iter().map(|oid| (*oid, presence(oid))).collect())
}
