//! An object id is forty digits, and reads and writes the same.
#![no_main]

use abide_core::Oid;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(oid) = Oid::from_hex(bytes) {
        assert_eq!(oid.to_string().as_bytes(), bytes);
    }
});
