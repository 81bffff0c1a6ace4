//! Requests of a fetch. All of them are short: at most 256 wants and 256 haves.

use super::offer::{OldOffer, V2Offer};
use crate::pktline::{put_data, put_delim, put_flush};
use abide_core::Oid;
use bytes::{Bytes, BytesMut};

/// Largest number of objects that one fetch asks for.
pub const MAX_WANTS: usize = 256;
/// Largest number of own objects that one request names. git itself names as many in its third round.
pub const MAX_HAVES: usize = 256;

const AGENT: &str = concat!("agent=abide/", env!("CARGO_PKG_VERSION"));

/// Asks for all refs with the targets of tags.
pub(super) fn ls_refs(offer: &V2Offer) -> Bytes {
    let mut out = command("ls-refs", offer);
    line(&mut out, "peel");
    finish(out)
}

/// Asks which of these objects the server has. `wait-for-done` keeps it from sending a pack.
pub(super) fn haves(offer: &V2Offer, oids: &[Oid]) -> Bytes {
    let mut out = command("fetch", offer);
    line(&mut out, "wait-for-done");
    oids.iter().for_each(|oid| line(&mut out, &format!("have {oid}")));
    finish(out)
}

/// Asks for a pack in version 2. `done` ends the negotiation in this request.
pub(super) fn fetch_v2(offer: &V2Offer, wants: &[Oid], haves: &[Oid]) -> Bytes {
    let mut out = command("fetch", offer);
    for argument in ["thin-pack", "no-progress", "ofs-delta"] {
        line(&mut out, argument);
    }
    wants.iter().for_each(|oid| line(&mut out, &format!("want {oid}")));
    haves.iter().for_each(|oid| line(&mut out, &format!("have {oid}")));
    line(&mut out, "done");
    finish(out)
}

/// Asks for a pack in version 0. Capabilities follow the first want; only offered ones may be named.
pub(super) fn fetch_old(offer: &OldOffer, wants: &[Oid], haves: &[Oid]) -> Bytes {
    let offered = [
        (offer.thin_pack, "thin-pack"),
        (offer.no_progress, "no-progress"),
        (offer.ofs_delta, "ofs-delta"),
        (offer.object_format, "object-format=sha1"),
        (offer.agent, AGENT),
    ];
    let mut capabilities = " side-band-64k".to_owned();
    for (_, name) in offered.iter().filter(|(is_offered, _)| *is_offered) {
        capabilities.push(' ');
        capabilities.push_str(name);
    }
    let mut out = BytesMut::new();
    for oid in wants {
        line(&mut out, &format!("want {oid}{}\n", std::mem::take(&mut capabilities)));
    }
    put_flush(&mut out);
    haves.iter().for_each(|oid| line(&mut out, &format!("have {oid}\n")));
    line(&mut out, "done\n");
    out.freeze()
}

/// Head of a version 2 command. A capability that the server does not offer would be an error there.
fn command(name: &str, offer: &V2Offer) -> BytesMut {
    let mut out = BytesMut::new();
    line(&mut out, &format!("command={name}"));
    if offer.agent {
        line(&mut out, AGENT);
    }
    if offer.object_format {
        line(&mut out, "object-format=sha1");
    }
    put_delim(&mut out);
    out
}

fn finish(mut out: BytesMut) -> Bytes {
    put_flush(&mut out);
    out.freeze()
}

fn line(out: &mut BytesMut, text: &str) {
    put_data(out, text.as_bytes());
}
