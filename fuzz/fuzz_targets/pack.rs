//! A pack is looked through whatever its bytes are, and its end is found.
#![no_main]

use abide_git::incoming::scan_pack;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(length)) = scan_pack(bytes, 1 << 20) {
        assert!(length <= bytes.len());
        assert_eq!(scan_pack(&bytes[..length], 1 << 20), Ok(Some(length)), "what follows a pack changes nothing");
    }
    let whole = [b"PACK\0\0\0\x02\0\0\0\x03".as_slice(), bytes].concat();
    let _ = scan_pack(&whole, 1 << 20);
});
