//! Sample payloads of domain events, from the golden files of `abide-core`.

use abide_core::event::{Body, Kind, Payload};
use std::path::Path;

/// A payload of a kind.
pub fn sample_payload(kind: Kind) -> Payload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../core/tests/golden/events/{kind}.json"));
    let json = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Body::parse(kind.as_str(), &json).unwrap_or_else(|error| panic!("{}: {error}", path.display())).payload
}
