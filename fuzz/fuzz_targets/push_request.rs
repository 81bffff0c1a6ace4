//! The commands of a push are read from any bytes, within their limits.
#![no_main]

use abide_git::ReceiveLimits;
use abide_git::receive::parse_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = ReceiveLimits { commands: 8, ..ReceiveLimits::default() };
    let Ok((request, taken)) = parse_request(bytes, &limits) else { return };
    assert!(taken <= bytes.len());
    if let Some(request) = request {
        assert!(request.updates.len() <= limits.commands);
        assert!(request.updates.iter().all(|update| update.name.as_str().starts_with("refs/")));
    }
});
