//! A request of protocol version 2 is judged from any bytes; what we answer ourselves is asked for in full.
#![no_main]

use abide_git::v2::{V2Request, parse_request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let V2Request::LsRefs(request) = parse_request(bytes) {
        let _ = request.matches(b"refs/heads/main");
        assert!(bytes.windows(7).any(|window| window == b"ls-refs"));
    }
});
